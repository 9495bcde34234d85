// SPDX-License-Identifier: Apache-2.0

// Package podcopy answers: how do files come into a container, and out of it? As with kubectl, tar runs in the
// container. What comes out is written below the destination only, whatever its names say.
package podcopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Exec runs a command in the container. Its error says what the command wrote to its standard error.
type Exec func(ctx context.Context, line []string, in io.Reader, out io.Writer) error

// Place is a path on this machine, or in a pod of some work.
type Place struct {
	// Work is NAME or KIND/NAME, or empty for this machine.
	Work string
	Path string
}

// Parse reads WORK:PATH, or a path of this machine. A drive letter is no work.
func Parse(text string) Place {
	work, inside, both := strings.Cut(text, ":")
	if !both || len(work) < 2 || strings.HasPrefix(work, ".") || strings.HasPrefix(work, "/") {
		return Place{Path: text}
	}
	return Place{work, inside}
}

// Pair checks that one of two places is in a pod, and returns its work.
func Pair(from, to Place) (work string, err error) {
	switch {
	case from.Path == "" || to.Path == "":
		return "", errors.New("name a path after the colon: NAME:PATH")
	case from.Work == "" && to.Work == "":
		return "", errors.New("neither is in a pod: write NAME:PATH for the one that is")
	case from.Work != "" && to.Work != "":
		return "", errors.New("both are in pods: copy to this machine first")
	}
	return from.Work + to.Work, nil
}

// inside is a path that no command takes for a flag.
func inside(remote string) string {
	if path.IsAbs(remote) {
		return path.Clean(remote)
	}
	return "./" + path.Clean(remote)
}

// Put copies a file or a folder of this machine into a container: into the folder that is there, or else as the path.
func Put(ctx context.Context, exec Exec, local, remote string) error {
	source, err := filepath.EvalSymlinks(local)
	if err != nil {
		return fmt.Errorf("cannot read what is to be copied: %w", err)
	}
	target := inside(remote)
	if strings.HasSuffix(remote, "/") || exec(ctx, []string{"test", "-d", target}, nil, io.Discard) == nil {
		target = path.Join(target, baseOf(local))
	}
	if !path.IsAbs(target) {
		target = "./" + target
	}
	reader, writer := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(source, path.Base(target), writer)
		packed <- err
		_ = writer.CloseWithError(err) // a nil error is the end of the archive
	}()
	err = exec(ctx, []string{"tar", "-xmf", "-", "-C", path.Dir(target)}, reader, io.Discard)
	_ = reader.CloseWithError(io.ErrClosedPipe) // tar may have ended early
	if wrong := <-packed; wrong != nil && !errors.Is(wrong, io.ErrClosedPipe) {
		return wrong
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", remote, printing.OneLineError(err))
	}
	return nil
}

// of is the folder in which tar finds what a path names, and its name there. A path may end without a name.
func of(remote string) (folder, name string) {
	if name = path.Base(remote); name == "." || name == ".." || name == "/" {
		return remote, "."
	}
	return path.Dir(remote), name
}

// followed is where a link leads, or the path if it is none.
func followed(ctx context.Context, exec Exec, source string) (string, error) {
	if exec(ctx, []string{"test", "-L", source}, nil, io.Discard) != nil {
		return source, nil
	}
	var target strings.Builder
	if err := exec(ctx, []string{"readlink", "-f", source}, nil, &target); err != nil {
		return "", err
	}
	return strings.TrimSuffix(target.String(), "\n"), nil
}

// Get copies a file or a folder out of a container: into the folder that is there, or else as the path. It follows a
// link that is named. It returns how many links and devices below the path it left out.
func Get(ctx context.Context, exec Exec, remote, local string) (left int, err error) {
	_, name := of(inside(remote))
	source, err := followed(ctx, exec, inside(remote))
	if err != nil {
		return 0, fmt.Errorf("cannot read %s: it is a link, and the container cannot say where it leads: %w", remote, printing.OneLineError(err))
	}
	folder, base := of(source)
	reader, writer := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := exec(ctx, []string{"tar", "-cf", "-", "-C", folder, "./" + base}, nil, writer)
		sent <- err
		_ = writer.CloseWithError(err)
	}()
	left, unpacked := unpack(reader, base, name, local)
	_, _ = io.Copy(io.Discard, reader) // tar fills its last block
	_ = reader.Close()
	if err := <-sent; err != nil {
		return left, fmt.Errorf("cannot read %s: %w", remote, printing.OneLineError(err))
	}
	return left, unpacked
}
