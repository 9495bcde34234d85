// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/artifacts/compiler"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/controller"
	"github.com/mlbatch/mlbatch/tools/artifacts/release/sbom"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// A release is the output of one run.
type release struct {
	versions setup.Versions
	// charts and sources are the checkouts of the charts and the programs.
	charts, sources string
	out             string
	progress        io.Writer
	signers         signers
	// compile compiles mlbatch into a file.
	compile func(ctx context.Context, command compiler.Program, out string) error

	// The results so far.
	bundle packaging.Bundle
	images map[string]string // archives by the names of images
	files  []sbom.File
}

// write writes all files of the release to its folder.
func (r *release) write(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.writeCharts, r.writeImages, r.writeCommands,
		r.writeBill, // lists all files written before it
		r.writeSums,
		r.writeSignatures, // of the checksums, too
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// push pushes the images, and then the charts that need them.
func (r *release) push(ctx context.Context) error {
	for _, image := range controller.All {
		if err := r.pushImage(ctx, r.images[image.Name], image.Reference(r.versions)); err != nil {
			return err
		}
	}
	folder := strings.TrimPrefix(r.versions.ChartRepository, "oci://")
	for _, chart := range r.bundle.Charts {
		reference := folder + "/" + chart.Name + ":" + chart.Version
		if err := pushChart(filepath.Join(r.out, chart.FileName()), reference, r.progress); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) writeCharts(ctx context.Context) (err error) {
	if r.bundle, err = packaging.BuildAs(ctx, r.charts, r.versions); err != nil {
		return err
	}
	if _, err := r.bundle.Write(r.out); err != nil {
		return err
	}
	ours := []string{r.versions.ControllerImage()}
	pulls := map[string][]string{"appwrapper": ours, "mlbatch": parts.References(r.versions, parts.All...)}
	for _, chart := range r.bundle.Charts {
		err = errors.Join(err, r.add(sbom.File{Name: chart.FileName(), Images: pulls[chart.Name]}))
	}
	return errors.Join(err, r.add(sbom.File{Name: "install.yaml", Images: ours}))
}

// writeImages writes our own images, the only ones that we publish.
func (r *release) writeImages(ctx context.Context) error {
	r.images = map[string]string{}
	for _, image := range controller.All {
		path, err := image.BuildAs(ctx, r.versions, r.sources, r.out, controller.Published...)
		if err != nil {
			return err
		}
		r.images[image.Name] = path
		programs, err := programsOf(ctx, path, r.versions.Version)
		if err != nil {
			return err
		}
		if err := r.add(sbom.File{Name: filepath.Base(path), Programs: programs}); err != nil {
			return err
		}
	}
	return nil
}

// A platform is what a command is compiled for.
type platform struct{ os, arch string }

// platforms are those that users have. 'make platforms' compiles for the same.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

func (p platform) fileName() string {
	name := "mlbatch-" + p.os + "-" + p.arch
	if p.os == "windows" {
		name += ".exe"
	}
	return name
}

// writeCommands compiles mlbatch for each platform.
func (r *release) writeCommands(ctx context.Context) error {
	for _, p := range platforms {
		name := p.fileName()
		file := filepath.Join(r.out, name)
		command := compiler.Program{Dir: r.sources, Packages: []string{"./tools/mlbatch"}, OS: p.os, Arch: p.arch}
		if err := r.compile(ctx, command, file); err != nil {
			return fmt.Errorf("cannot build mlbatch for %s/%s: %w", p.os, p.arch, err)
		}
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return fmt.Errorf("cannot read the build info of %s: %w", file, err)
		}
		if err := r.add(sbom.File{Name: name, Programs: []*debug.BuildInfo{info}}); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) writeBill(context.Context) error {
	bill, err := sbom.Of(r.versions, r.files)
	if err != nil {
		return err
	}
	const name = "sbom.cdx.json"
	if err := os.WriteFile(filepath.Join(r.out, name), bill, 0o644); err != nil {
		return fmt.Errorf("cannot write the bill of materials: %w", err)
	}
	return r.add(sbom.File{Name: name})
}

// checksums is the file that sha256sum --check reads.
const checksums = "SHA256SUMS"

// writeSums writes checksums for sha256sum --check.
func (r *release) writeSums(context.Context) error {
	var sums strings.Builder
	for _, file := range r.files {
		fmt.Fprintf(&sums, "%s  %s\n", file.SHA256, file.Name)
	}
	path := filepath.Join(r.out, checksums)
	if err := os.WriteFile(path, []byte(sums.String()), 0o644); err != nil {
		return fmt.Errorf("cannot write the checksums: %w", err)
	}
	fmt.Fprintln(r.progress, path)
	return nil
}

// add adds a written file to the release.
func (r *release) add(file sbom.File) error {
	path := filepath.Join(r.out, file.Name)
	written, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	defer written.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, written); err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	file.SHA256 = fmt.Sprintf("%x", sum.Sum(nil))
	r.files = append(r.files, file)
	fmt.Fprintln(r.progress, path)
	return nil
}
