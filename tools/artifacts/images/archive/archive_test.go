// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/mlbatch/mlbatch/tools/artifacts/images/archive"
)

const reference = "images.local/mlbatch/thing:1"

// thing returns an image with a program for each architecture.
func thing(archs ...string) archive.Image {
	i := archive.Image{
		Reference:  reference,
		Entrypoint: []string{"/thing"},
		WorkingDir: "/home/nonroot",
		Env:        []string{"A=1"},
		Labels:     map[string]string{"org.opencontainers.image.version": "1"},
	}
	for _, arch := range archs {
		i.Platforms = append(i.Platforms, archive.Platform{OS: "linux", Arch: arch, Layers: []*archive.Layer{
			archive.Nonroot(),
			archive.Files(archive.File{Path: "/thing", Mode: 0o755, Text: "program for " + arch}),
		}})
	}
	return i
}

func TestAnImageOfOnePlatformReadsBackAsDescribed(t *testing.T) {
	path := write(t, thing("amd64"))

	img, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatalf("a Docker engine could not read it: %v", err)
	}
	fromDocker := diffIDs(t, img)
	index := read(t, path)
	manifest := manifests(t, index)[0]
	if manifest.Annotations["io.containerd.image.name"] != reference || manifest.Annotations["org.opencontainers.image.ref.name"] != "1" {
		t.Errorf("the index does not name the image: %v", manifest)
	}
	img, err = index.Image(manifest.Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		Entrypoint: []string{"/thing"},
		WorkingDir: "/home/nonroot",
		User:       "65532:65532",
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "A=1"},
		Labels:     map[string]string{"org.opencontainers.image.version": "1"},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if config.OS != "linux" || config.Architecture != "amd64" {
		t.Errorf("platform = %s/%s, want linux/amd64", config.OS, config.Architecture)
	}
	if diff := cmp.Diff(config.RootFS.DiffIDs, fromDocker); diff != "" {
		t.Errorf("layers by index.json and by manifest.json (-index +manifest):\n%s", diff)
	}
}

func TestAnImageOfTwoPlatformsIsAnIndexThatSharesTheBottomLayer(t *testing.T) {
	path := write(t, thing("amd64", "arm64"))

	index := read(t, path)
	top := manifests(t, index)
	if len(top) != 1 || !top[0].MediaType.IsIndex() || top[0].Annotations["io.containerd.image.name"] != reference {
		t.Fatalf("index.json = %v, want one named index", top)
	}
	inner, err := index.ImageIndex(top[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifests(t, inner) {
		platforms = append(platforms, m.Platform.String())
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	// Layers: one shared, one per platform. Then two configs, two manifests, one index.
	if got := blobs(t, path); len(got) != 8 {
		t.Errorf("%d blobs, want 8: %v", len(got), got)
	}
}

func TestTwoImagesOfOneArchiveStoreTheirSharedLayerOnce(t *testing.T) {
	base := archive.Files(archive.File{Path: "/base", Text: "much"})
	top := archive.Files(archive.File{Path: "/top", Text: "little"})
	platform := func(layers ...*archive.Layer) []archive.Platform {
		return []archive.Platform{{OS: "linux", Arch: "amd64", Layers: layers}}
	}

	path := write(t,
		archive.Image{Reference: "images.local/base:1", Platforms: platform(base)},
		archive.Image{Reference: "images.local/top:1", Platforms: platform(base, top)})

	if got := manifests(t, read(t, path)); len(got) != 2 {
		t.Errorf("%d references, want 2", len(got))
	}
	if got := blobs(t, path); len(got) != 6 {
		t.Errorf("%d blobs, want 2 layers, 2 configs and 2 manifests: %v", len(got), got)
	}
}

func TestArchivesAreReproducible(t *testing.T) {
	one, two := content(t, write(t, thing("amd64", "arm64"))), content(t, write(t, thing("amd64", "arm64")))
	if !bytes.Equal(one, two) {
		t.Error("two archives of one image differ")
	}
}

func TestImagesThatCannotBeImportedAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ reference, want string }{
		"a name without a tag": {"images.local/thing", "has no tag"},
		"a port is not a tag":  {"images.local:5000/thing", "has no tag"},
		"a name without a host, which containerd would look for on Docker Hub": {"local/thing:1", "host name"},
	} {
		t.Run(name, func(t *testing.T) {
			i := thing("amd64")
			i.Reference = c.reference
			err := archive.Write(filepath.Join(t.TempDir(), "x.tar"), i)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one that says %q", err, c.want)
			}
		})
	}
}

func TestAFailedWriteLeavesTheOldArchiveAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.tar")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "gone")

	err := archive.Write(path, archive.Image{Reference: reference, Platforms: []archive.Platform{archive.Program("amd64", source, "/p")}})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error = %v, want that the program does not exist", err)
	}

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(content(t, path)); len(entries) != 1 || got != "old" {
		t.Errorf("the folder holds %v, the archive %q", entries, got)
	}
}

func TestAFileThatChangesWhileItIsReadIsNoticed(t *testing.T) {
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	i := archive.Image{Reference: reference, Platforms: []archive.Platform{archive.Program("amd64", source, "/p")}}
	if _, err := i.Platforms[0].Layers[1].Digest(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source, []byte("after!"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := archive.Write(filepath.Join(t.TempDir(), "x.tar"), i); err == nil || !strings.Contains(err.Error(), "changed while") {
		t.Errorf("error = %v, want that the files changed", err)
	}
}

func TestALayerOfFilesHasParentsFirst(t *testing.T) {
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("ELF"), 0o600); err != nil {
		t.Fatal(err)
	}
	layer := archive.Files(
		archive.File{Path: "/opt/tool/bin/run", Mode: 0o755 | fs.ModeSetuid, Source: source},
		archive.File{Path: "/opt/tool/link", Mode: fs.ModeSymlink | 0o777, Text: "bin/run"},
		archive.File{Path: "/opt/tool", Mode: fs.ModeDir | 0o700, UID: 7, GID: 8},
		archive.File{Path: "/a", Mode: 0o644, Text: "hello"},
	)
	want := []string{
		"a - 0644 0:0 5",
		"opt/ d 0755 0:0 0",
		"opt/tool/ d 0700 7:8 0",
		"opt/tool/bin/ d 0755 0:0 0",
		"opt/tool/bin/run - 04755 0:0 3",
		"opt/tool/link l 0777 0:0 0 -> bin/run",
	}
	if diff := cmp.Diff(want, listing(t, layer)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestALayerOfATreeKeepsLinksModesAndOwners(t *testing.T) {
	root := t.TempDir()
	mustDo(t,
		os.Mkdir(filepath.Join(root, "sub"), 0o750),
		os.WriteFile(filepath.Join(root, "sub", "file"), []byte("hello"), 0o600),
		os.Link(filepath.Join(root, "sub", "file"), filepath.Join(root, "sub", "same")),
		os.Symlink("../nowhere", filepath.Join(root, "sub", "dangling")),
		os.WriteFile(filepath.Join(root, "su"), []byte("x"), 0o755),
		os.Chmod(filepath.Join(root, "su"), 0o755|fs.ModeSetuid),
		os.Chmod(filepath.Join(root, "sub"), 0o750|fs.ModeSticky),
	)
	owner := owner(t, root)
	want := []string{
		"su - 04755 " + owner + " 1",
		"sub/ d 01750 " + owner + " 0",
		"sub/dangling l 0777 " + owner + " 0 -> ../nowhere",
		"sub/file - 0600 " + owner + " 5",
		"sub/same h 0600 " + owner + " 0 -> sub/file",
	}
	if diff := cmp.Diff(want, listing(t, archive.Tree(root))); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestALayerCanBeStoredInAFile(t *testing.T) {
	layer := archive.Nonroot()
	path := filepath.Join(t.TempDir(), "layer.tar")
	if err := archive.WriteTar(path, layer); err != nil {
		t.Fatal(err)
	}
	want, err := layer.Digest()
	if err != nil {
		t.Fatal(err)
	}
	got, err := archive.Tar(path).Digest()
	if err != nil || got != want {
		t.Errorf("digest = %v, %v, want %v", got, err, want)
	}
}

// write makes an archive of the images and returns its path.
func write(t *testing.T, images ...archive.Image) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.oci.tar")
	if err := archive.Write(path, images...); err != nil {
		t.Fatal(err)
	}
	return path
}

// read unpacks an archive, checks its blobs, and lets go-containerregistry check
// that manifests, configs and layers fit together. It must not read the layers (Fast), because
// it expects every layer on disk to be compressed with gzip.
func read(t *testing.T, path string) v1.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	each(t, content(t, path), func(h *tar.Header, r io.Reader) {
		data, err := io.ReadAll(r)
		name := filepath.Join(dir, h.Name)
		if blob, ok := strings.CutPrefix(h.Name, "blobs/sha256/"); ok && blob != fmt.Sprintf("%x", sha256.Sum256(data)) {
			t.Errorf("blob %s does not have the digest %x of its content", blob, sha256.Sum256(data))
		}
		mustDo(t, err, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, data, 0o600))
	})
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index, validate.Fast); err != nil {
		t.Fatal(err)
	}
	return index
}

func manifests(t *testing.T, index v1.ImageIndex) []v1.Descriptor {
	t.Helper()
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	return m.Manifests
}

func blobs(t *testing.T, path string) []string {
	t.Helper()
	var names []string
	each(t, content(t, path), func(h *tar.Header, _ io.Reader) {
		if strings.HasPrefix(h.Name, "blobs/") {
			names = append(names, h.Name)
		}
	})
	return names
}

func diffIDs(t *testing.T, img v1.Image) []v1.Hash {
	t.Helper()
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return c.RootFS.DiffIDs
}

// listing shows a layer as `tar -tv` would.
func listing(t *testing.T, layer *archive.Layer) []string {
	t.Helper()
	r, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	each(t, data, func(h *tar.Header, _ io.Reader) {
		if h.ModTime.Unix() != 0 || h.Uname != "" {
			t.Errorf("%s carries traces of this machine: %v %q", h.Name, h.ModTime, h.Uname)
		}
		lines = append(lines, line(h))
	})
	return lines
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func each(t *testing.T, data []byte, visit func(*tar.Header, io.Reader)) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		visit(h, r)
	}
}

func mustDo(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func line(h *tar.Header) string {
	kinds := map[byte]string{tar.TypeReg: "-", tar.TypeDir: "d", tar.TypeSymlink: "l", tar.TypeLink: "h"}
	s := fmt.Sprintf("%s %s 0%o %d:%d %d", h.Name, kinds[h.Typeflag], h.Mode, h.Uid, h.Gid, h.Size)
	if h.Linkname != "" {
		s += " -> " + h.Linkname
	}
	return s
}

// owner returns "uid:gid" of a file that this test created; the test may not run as root.
func owner(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d", s.Uid, s.Gid)
}
