// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/mlbatch/mlbatch/tools/images/archive"
)

// cacheWithLayer is a cache folder that has a small stand-in for the layer, which
// takes root, the network and a minute to make.
func cacheWithLayer(t *testing.T) string {
	t.Helper()
	cache := t.TempDir()
	entry := filepath.Join(cache, "torch-"+recipeKey())
	layer := filepath.Join(entry, "root.tar")
	must(t, os.MkdirAll(entry, 0o755))
	must(t, archive.WriteTar(layer, archive.Files(archive.File{Path: "/usr/bin/python3", Mode: 0o755, Text: "python"})))
	must(t, seal(layer))
	return cache
}

func TestTheArchiveHoldsBothImages(t *testing.T) {
	path, err := Build(t.Context(), cacheWithLayer(t), io.Discard)
	must(t, err)
	for reference, want := range map[string][]string{
		Reference:       {"usr/bin/python3", "tmp/"},
		DigitsReference: {"usr/bin/python3", "tmp/", "workspace/train.py", "workspace/data/digits.csv", "workspace/data/README.md"},
	} {
		if missing := subtract(want, contents(t, path, reference)); len(missing) > 0 {
			t.Errorf("%s lacks %v", reference, missing)
		}
	}
}

func TestASecondBuildUsesTheFirstOnesArchive(t *testing.T) {
	cache := cacheWithLayer(t)
	first, err := Build(t.Context(), cache, io.Discard)
	must(t, err)
	before, err := os.Stat(first)
	must(t, err)

	var progress strings.Builder
	second, err := Build(t.Context(), cache, &progress)
	must(t, err)
	after, err := os.Stat(second)
	must(t, err)
	if !os.SameFile(before, after) || progress.String() != "" {
		t.Errorf("%s was made again as %s: %s", first, second, progress.String())
	}
}

func TestABrokenArchiveIsMadeAnew(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"it is cut short":                  func(path string) error { return os.Truncate(path, 1000) },
		"its digest was never written":     func(path string) error { return os.Remove(sealOf(path)) },
		"only its digest is there":         os.Remove,
		"it is of a former train.py":       func(path string) error { return os.Rename(path, filepath.Join(filepath.Dir(path), "digits-0.oci.tar")) },
		"the digest has some other digest": func(path string) error { return os.WriteFile(sealOf(path), []byte("0\n"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			cache := cacheWithLayer(t)
			path, err := Build(t.Context(), cache, io.Discard)
			must(t, err)
			must(t, damage(path))

			path, err = Build(t.Context(), cache, io.Discard)
			must(t, err)
			if !intact(path) {
				t.Error("the new archive is broken too")
			}
			archives, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.oci.tar"))
			must(t, err)
			if len(archives) != 1 {
				t.Errorf("the cache keeps %v", archives)
			}
		})
	}
}

func TestABrokenLayerIsNotUsed(t *testing.T) {
	layer := filepath.Join(cacheWithLayer(t), "torch-"+recipeKey(), "root.tar")
	if !intact(layer) {
		t.Fatal("a fresh layer is not intact")
	}
	must(t, os.Truncate(layer, 10))
	if intact(layer) {
		t.Error("a layer that was cut short is intact")
	}
}

func TestPreflightSaysInASentenceWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		uid    int
		needed uint64
		want   string
	}{
		"all is there":        {0, 1, ""},
		"an ordinary user":    {1000, 1, "only root can"},
		"a disk that is full": {0, 1 << 62, "MiB left"},
	} {
		t.Run(name, func(t *testing.T) {
			err := preflight(t.TempDir(), c.uid, c.needed)
			if c.want == "" {
				must(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error = %v, want one line with %q", err, c.want)
			}
		})
	}
}

func TestTorchrunIsMended(t *testing.T) {
	const api = "usr/lib/python3/dist-packages/torch/distributed/elastic/multiprocessing/api.py"
	for name, c := range map[string]struct{ before, after string }{
		"the loop of 1.13 is cut off": {
			"        def to_std(v):\n            v = int(v)\n            for s in Std:\n",
			"        def to_std(v):\n            return Std(int(v))\n            for s in Std:\n",
		},
		"later versions stay as they are": {
			"        def to_std(v: str) -> Std:\n            s = Std(int(v))\n",
			"        def to_std(v: str) -> Std:\n            s = Std(int(v))\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, map[string]string{api: c.before})
			must(t, mendTorchrun(root))
			got, err := os.ReadFile(filepath.Join(root, api))
			must(t, err)
			if diff := cmp.Diff(c.after, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTrimmingKeepsCopyrightsAndWhatRuns(t *testing.T) {
	root := tree(t, map[string]string{
		"usr/share/doc/zlib1g/copyright":                              "",
		"usr/share/doc/zlib1g/changelog.gz":                           "",
		"usr/share/doc/zlib1g/examples/zpipe.c":                       "",
		"usr/share/man/man1/ls.1.gz":                                  "",
		"usr/lib/python3/dist-packages/torch/bin/torch_shm_manager":   "",
		"usr/lib/python3/dist-packages/torch/bin/test_api":            "",
		"usr/lib/python3/dist-packages/torch/distributed/__init__.py": "",
	})
	must(t, trim(root))
	want := []string{
		"usr/lib/python3/dist-packages/torch/bin/torch_shm_manager",
		"usr/lib/python3/dist-packages/torch/distributed/__init__.py",
		"usr/share/doc/zlib1g/copyright",
	}
	if diff := cmp.Diff(want, files(t, root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAlgebraLibrariesAreFoundWithoutAlternatives(t *testing.T) {
	root := tree(t, map[string]string{
		"usr/lib/x86_64-linux-gnu/blas/libblas.so.3":     "blas",
		"usr/lib/x86_64-linux-gnu/lapack/liblapack.so.3": "lapack",
	})
	must(t, linkAlgebra(root))
	for _, name := range []string{"blas", "lapack"} {
		got, err := os.ReadFile(filepath.Join(root, "usr/lib/x86_64-linux-gnu/lib"+name+".so.3"))
		if err != nil || string(got) != name {
			t.Errorf("lib%s.so.3 leads to %q, %v", name, got, err)
		}
	}
	if err := linkAlgebra(t.TempDir()); err == nil {
		t.Error("libraries that are missing are not missed")
	}
}

// contents lists the files of an image in an archive.
func contents(t *testing.T, path, reference string) []string {
	t.Helper()
	tag, err := name.NewTag(reference)
	must(t, err)
	img, err := tarball.ImageFromPath(path, &tag)
	must(t, err)
	layers, err := img.Layers()
	must(t, err)
	var names []string
	for _, layer := range layers {
		r, err := layer.Uncompressed()
		must(t, err)
		names = append(names, entries(t, r)...)
	}
	return names
}
