// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/mlbatch/mlbatch/tools/artifacts/filecache"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/archive"
)

// cacheWithLayer returns a cache folder with a small fake layer. Building the real one needs
// root, the network and a minute.
func cacheWithLayer(t *testing.T) string {
	t.Helper()
	cache := t.TempDir()
	layer := filecache.Entry{Path: filepath.Join(cache, "torch-"+recipeKey()), Fill: func(dir string) error {
		return archive.WriteTar(filepath.Join(dir, layerFile), archive.Files(archive.File{Path: "/usr/bin/python3", Mode: 0o755, Text: "python"}))
	}}
	must(t, layer.Get(t.Context(), io.Discard))
	return cache
}

func TestTheArchiveHoldsBothImages(t *testing.T) {
	path, err := Build(t.Context(), cacheWithLayer(t), io.Discard)
	must(t, err)
	for reference, want := range map[string][]string{
		torchReference:  {"usr/bin/python3", "tmp/"},
		digitsReference: {"usr/bin/python3", "tmp/", "workspace/train.py", "workspace/data/digits.csv", "workspace/data/README.md"},
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

func TestABrokenArchiveIsRebuilt(t *testing.T) {
	cache := cacheWithLayer(t)
	path, err := Build(t.Context(), cache, io.Discard)
	must(t, err)
	must(t, os.Truncate(path, 1000))
	path, err = Build(t.Context(), cache, io.Discard)
	must(t, err)
	if missing := subtract([]string{"usr/bin/python3"}, contents(t, path, torchReference)); len(missing) > 0 {
		t.Errorf("the new archive lacks %v", missing)
	}
}

func TestABrokenLayerIsNotUsed(t *testing.T) {
	cache := cacheWithLayer(t)
	must(t, os.Truncate(filepath.Join(cache, "torch-"+recipeKey(), layerFile), 10))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel() // so that it is not rebuilt
	if _, err := Build(cancelled, cache, io.Discard); err == nil {
		t.Error("there is an archive")
	}
}

func TestArchivesOfFormerSamplesAreRemoved(t *testing.T) {
	cache := cacheWithLayer(t)
	former := filepath.Join(cache, "pytorch-digits-0123456789abcdef")
	others := []string{former + ".building", former + ".lock", filepath.Join(cache, "pytorch-digits-of-mine")}
	for _, path := range append(others, former) {
		must(t, os.Mkdir(path, 0o700))
	}
	_, err := Build(t.Context(), cache, io.Discard)
	must(t, err)
	if _, err := os.Stat(former); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a former archive is there (%v)", err)
	}
	for _, path := range others {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("more than former archives was removed: %v", err)
		}
	}
}

func TestAnInterruptedStepIsReportedAsInterrupted(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := inside(cancelled, t.TempDir(), "ldconfig"); err == nil || err.Error() != "ldconfig inside the image: context canceled" {
		t.Errorf("got %v", err)
	}
}

func TestPreflightErrorsAreOneSentence(t *testing.T) {
	for name, c := range map[string]struct {
		uid    int
		needed uint64
		want   string
	}{
		"all is there":        {0, 1, ""},
		"an ordinary user":    {1000, 1, "this needs root"},
		"a disk that is full": {0, 1 << 62, "MiB free"},
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

func TestStoresDoNotUseWhatDebianLeavesOut(t *testing.T) {
	const asks = "    return query_dict.get(\"use_libuv\", os.environ.get(\"USE_LIBUV\", \"1\")) == \"1\"\n"
	const (
		says    = "        store = TCPStore(\n            host,\n            use_libuv=use_libuv,\n        )\n"
		silent  = "        store = TCPStore(  # type: ignore[call-arg]\n            host,\n            timeout=timedelta(seconds=1),\n        )\n"
		mended  = "        store = TCPStore(  # type: ignore[call-arg]\n            host,\n            timeout=timedelta(seconds=1), use_libuv=False,\n        )\n"
		example = "     store = TCPStore(\"localhost\")\n"
	)
	for name, c := range map[string]struct{ rendezvous, other, after, want string }{
		"2.6 of Debian 13": {
			asks, says + silent + example,
			"    return query_dict.get(\"use_libuv\", os.environ.get(\"USE_LIBUV\", \"0\")) == \"1\"\n", says + mended + example,
		},
		"1.13 does not know libuv": {"", silent, "", silent},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, map[string]string{distributed + "/rendezvous.py": c.rendezvous, distributed + "/elastic/static.py": c.other})
			must(t, mendStores(root))
			for file, want := range map[string]string{"rendezvous.py": c.after, "elastic/static.py": c.want} {
				got, err := os.ReadFile(filepath.Join(root, distributed, file))
				must(t, err)
				if diff := cmp.Diff(want, string(got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", file, diff)
				}
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
