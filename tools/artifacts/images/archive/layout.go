// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nonrootUser is the default account of images, with the same number as in distroless images.
const nonrootUser = "65532:65532"

// Annotations from which importers take the names of images.
const (
	containerdName = "io.containerd.image.name"
	ociRefName     = "org.opencontainers.image.ref.name"
)

// A layout is a set of images as blobs with two indexes: the OCI index, and the older
// manifest.json for Docker engines without a containerd store. manifest.json does not
// support several platforms, so those images are only in the OCI index.
type layout struct {
	index  v1.IndexManifest
	docker []dockerImage
	blobs  []blob
	seen   map[v1.Hash]bool
}

type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func newLayout(images []Image) (*layout, error) {
	l := &layout{
		index: v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex},
		seen:  map[v1.Hash]bool{},
	}
	for _, i := range images {
		if err := l.add(i); err != nil {
			return nil, fmt.Errorf("cannot make image %s: %w", i.Reference, err)
		}
	}
	return l, nil
}

func (l *layout) add(i Image) error {
	repository, tag, ok := splitReference(i.Reference)
	switch {
	case !ok:
		return errors.New("the reference has no tag")
	case !strings.ContainsAny(strings.SplitN(repository, "/", 2)[0], ".:"):
		return errors.New("the reference does not begin with a host name")
	case len(i.Platforms) == 0:
		return errors.New("no platform is given")
	}
	names := map[string]string{containerdName: i.Reference, ociRefName: tag}
	if len(i.Platforms) == 1 {
		return l.addSingle(i, names)
	}
	return l.addIndex(i, names)
}

// splitReference splits at the last colon, unless it belongs to a port.
func splitReference(ref string) (repository, tag string, ok bool) {
	at := strings.LastIndex(ref, ":")
	if at < 0 || at == len(ref)-1 || strings.Contains(ref[at:], "/") {
		return "", "", false
	}
	return ref[:at], ref[at+1:], true
}

func (l *layout) addSingle(i Image, names map[string]string) error {
	img, err := i.build(i.Platforms[0])
	if err != nil {
		return err
	}
	d, err := partial.Descriptor(img)
	if err != nil {
		return err
	}
	d.Annotations = names
	d.Platform = i.Platforms[0].descriptor()
	l.index.Manifests = append(l.index.Manifests, *d)
	if err := l.addBlobs(img); err != nil {
		return err
	}
	return l.addDocker(i.Reference, img)
}

func (l *layout) addIndex(i Image, names map[string]string) error {
	ii := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range i.Platforms {
		img, err := i.build(p)
		if err != nil {
			return err
		}
		if err := l.addBlobs(img); err != nil {
			return err
		}
		ii = mutate.AppendManifests(ii, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: p.descriptor()}})
	}
	d, err := partial.Descriptor(ii)
	if err != nil {
		return err
	}
	raw, err := ii.RawManifest()
	if err != nil {
		return err
	}
	d.Annotations = names
	l.index.Manifests = append(l.index.Manifests, *d)
	l.addBytes(d.Digest, raw)
	return nil
}

func (p Platform) descriptor() *v1.Platform {
	return &v1.Platform{OS: p.OS, Architecture: p.Arch}
}

// build is the image of one platform for go-containerregistry.
func (i Image) build(p Platform) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, layer := range p.Layers {
		var err error
		if img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: layer.title, Created: v1.Time{Time: epoch}}}); err != nil {
			return nil, err
		}
	}
	c, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = p.OS, p.Arch, v1.Time{Time: epoch}
	c.Config = v1.Config{Entrypoint: i.Entrypoint, WorkingDir: i.WorkingDir, Env: i.env(), Labels: i.Labels, User: i.user()}
	return mutate.ConfigFile(img, c)
}

func (i Image) user() string {
	if i.User == "" {
		return nonrootUser
	}
	return i.User
}

// env starts with a PATH: images without one cannot even run sh.
func (i Image) env() []string {
	return append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, i.Env...)
}

func (l *layout) addBlobs(img v1.Image) error {
	manifest, err := img.RawManifest()
	if err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return err
	}
	name, err := img.ConfigName()
	if err != nil {
		return err
	}
	l.addBytes(digest, manifest)
	l.addBytes(name, config)
	return l.addLayers(img)
}

func (l *layout) addLayers(img v1.Image) error {
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return err
		}
		size, err := layer.Size()
		if err != nil {
			return err
		}
		l.addBlob(blob{digest: digest, size: size, open: layer.Compressed})
	}
	return nil
}

func (l *layout) addDocker(reference string, img v1.Image) error {
	m, err := img.Manifest()
	if err != nil {
		return err
	}
	d := dockerImage{Config: blobPath(m.Config.Digest), RepoTags: []string{reference}}
	for _, layer := range m.Layers {
		d.Layers = append(d.Layers, blobPath(layer.Digest))
	}
	l.docker = append(l.docker, d)
	return nil
}

func (l *layout) addBytes(digest v1.Hash, content []byte) {
	l.addBlob(blob{digest: digest, size: int64(len(content)), open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}})
}

func (l *layout) addBlob(b blob) {
	if !l.seen[b.digest] {
		l.seen[b.digest] = true
		l.blobs = append(l.blobs, b)
	}
}

// A blob is content named by its digest.
type blob struct {
	digest v1.Hash
	size   int64
	open   func() (io.ReadCloser, error)
}

func blobPath(digest v1.Hash) string {
	return "blobs/" + digest.Algorithm + "/" + digest.Hex
}

// writeTo verifies the digest: the source of a layer may have changed since the digest was
// computed.
func (b blob) writeTo(tw *tar.Writer) error {
	r, err := b.open()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := tw.WriteHeader(entry(blobPath(b.digest), b.size)); err != nil {
		return err
	}
	var c counter
	if _, err := io.Copy(io.MultiWriter(tw, c.reset()), r); err != nil {
		return err
	}
	if c.digest() != b.digest {
		return fmt.Errorf("the files of layer %s changed while they were read", b.digest)
	}
	return nil
}
