// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/tools/artifacts/debian"
	"github.com/mlbatch/mlbatch/tools/artifacts/filecache"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/archive"
	"github.com/mlbatch/mlbatch/tools/artifacts/subprocess"
)

// edition must increase when a change to this file, other than to the lists below, changes the
// root folder. It is in the cache key, so a new edition rebuilds the image.
const edition = 2

// spaceNeeded is the temporary space of a build: packages, root, layer, archive.
const spaceNeeded = 4 << 30

// packages are PyTorch and the tools that shell scripts of jobs expect in any image.
var packages = []string{
	"python3-torch", "python3-minimal",
	"base-files", "libc-bin", "coreutils", "dash", "bash", "hostname", "grep", "sed",
	"libblas3", "liblapack3",
}

// without names large packages that PyTorch depends on through OpenCV and Qt and that nothing
// here loads: GPU drivers, maps, fonts, tests.
var without = []string{
	"libllvm15", "libgl1-mesa-dri", "libtorch-test",
	"proj-data", "iso-codes", "fonts-dejavu-core", "shared-mime-info", "xkb-data", "libx11-data",
	"perl-base", "dpkg", "debconf", "openssl", "passwd",
}

// trimmed are files of the remaining packages that are useless in a container. Copyright files
// stay.
var trimmed = []string{
	"usr/share/locale", "usr/share/man", "usr/share/info", "usr/share/gdal", "usr/share/gdcm-3.0",
	"usr/share/doc/*/[^c]*", "usr/share/doc/*/changelog*",
	"usr/include",
	"usr/lib/*/libmfxhw64.so*", "usr/lib/*/libmfx-tracer.so*", "usr/lib/*/mfx", "usr/lib/*/qt5",
	"usr/lib/python3/dist-packages/torch/bin/test_*", "usr/lib/python3/dist-packages/torch/include",
	"usr/lib/python3/dist-packages/sympy/*/tests", "usr/lib/python3/dist-packages/sympy/integrals/rubi/rubi_tests",
}

func recipeKey() string {
	sum := sha256.Sum256(fmt.Append(nil, edition, runtime.GOARCH, packages, without, trimmed))
	return hex.EncodeToString(sum[:])[:keyLength]
}

// layerFile is the root folder of the image as a tar file.
const layerFile = "root.tar"

// layer returns the layer with Debian's packages, and builds it if the cache lacks it.
func layer(ctx context.Context, cacheDir string, progress io.Writer) (*archive.Layer, error) {
	entry := filecache.Entry{Path: filepath.Join(cacheDir, "torch-"+recipeKey()), Title: "the training image", Fill: func(dir string) error {
		return makeLayer(ctx, dir, progress)
	}}
	return archive.Tar(filepath.Join(entry.Path, layerFile)), entry.Get(ctx, progress)
}

func makeLayer(ctx context.Context, dir string, progress io.Writer) error {
	if err := preflight(dir, os.Geteuid(), spaceNeeded); err != nil {
		return err
	}
	work := filepath.Join(dir, "work")
	root := filepath.Join(work, "root")
	if err := makeRoot(ctx, root, filepath.Join(work, "packages"), progress); err != nil {
		return fmt.Errorf("cannot build the training image: %w", err)
	}
	fmt.Fprintln(progress, "training image: packing")
	if err := archive.WriteTar(filepath.Join(dir, layerFile), archive.Tree(root)); err != nil {
		return fmt.Errorf("cannot pack the training image: %w", err)
	}
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("cannot remove the scratch folder of the training image: %w", err)
	}
	return nil
}

// preflight fails early if the build would fail after minutes.
func preflight(dir string, uid int, needed uint64) error {
	if uid != 0 {
		return errors.New("cannot build the training image: this needs root, to run the Python in it")
	}
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("cannot read the free space for the training image: %w", err)
	}
	if free := s.Bavail * uint64(s.Bsize); free < needed {
		return fmt.Errorf("cannot build the training image: it needs %d MiB, and %s has %d MiB free", needed>>20, dir, free>>20)
	}
	return nil
}

// makeRoot unpacks Debian's packages, and does what PyTorch needs of their maintainer scripts.
func makeRoot(ctx context.Context, root, scratch string, progress io.Writer) error {
	if err := debian.Unpack(ctx, debian.Request{Packages: packages, Without: without, Root: root, Scratch: scratch, Progress: progress}); err != nil {
		return err
	}
	fmt.Fprintln(progress, "training image: trimming and compiling")
	if err := trim(root); err != nil {
		return err
	}
	if err := linkAlgebra(root); err != nil {
		return err
	}
	if err := errors.Join(mendTorchrun(root), mendStores(root)); err != nil {
		return err
	}
	for _, step := range [][]string{
		{"ldconfig"},
		// Unprivileged users cannot store compiled modules, so Python would compile at each
		// start. Hashes are unchecked, because all files have the same time.
		{"sh", "-c", "exec python3 -m compileall -q --invalidation-mode unchecked-hash -x /sympy/ /usr/lib/python3*"},
		// Check that nothing needed was trimmed.
		{"python3", "-c", "import torch.distributed.run; assert torch.distributed.is_gloo_available()"},
	} {
		if err := inside(ctx, root, step...); err != nil {
			return err
		}
	}
	return nil
}

func trim(root string) error {
	for _, pattern := range trimmed {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, p := range paths {
			if err := os.RemoveAll(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// linkAlgebra creates the links of update-alternatives.
func linkAlgebra(root string) error {
	for _, name := range []string{"blas", "lapack"} {
		library := filepath.Join(name, "lib"+name+".so.3")
		found, err := filepath.Glob(filepath.Join(root, "usr/lib/*", library))
		if err != nil {
			return err
		}
		if len(found) != 1 {
			return fmt.Errorf("found %d copies of %s in Debian's packages instead of one", len(found), library)
		}
		dir := filepath.Dir(filepath.Dir(found[0]))
		if err := os.Symlink(library, filepath.Join(dir, filepath.Base(library))); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// mendTorchrun lets PyTorch 1.13 start on Python 3.11. Its Std.from_str looks for the value 0
// among the members of a flag. Since 3.11 those are only the ones with one bit, so it finds
// nothing and fails later. Other versions of PyTorch stay unchanged.
func mendTorchrun(root string) error {
	path := filepath.Join(root, "usr/lib/python3/dist-packages/torch/distributed/elastic/multiprocessing/api.py")
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	const broken, mended = "\n            v = int(v)\n", "\n            return Std(int(v))\n"
	return os.WriteFile(path, bytes.Replace(data, []byte(broken), []byte(mended), 1), 0o644)
}

// inside runs a program in the new root. It mounts this machine's /dev, because Python needs
// random numbers, in a mount namespace that ends with the program.
func inside(ctx context.Context, root string, command ...string) error {
	const script = `mount --bind /dev "$0/dev" && exec chroot "$0" "$@"`
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, root}, command...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if err := subprocess.Run(ctx, cmd); err != nil {
		return fmt.Errorf("%s inside the image: %w", command[0], err)
	}
	return nil
}
