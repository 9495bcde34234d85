// SPDX-License-Identifier: Apache-2.0

package images_test

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/images"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

func versions(t *testing.T) setup.Versions {
	t.Helper()
	v, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func section(fields ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(fields); i += 2 {
		m[fields[i].(string)] = fields[i+1]
	}
	return m
}

// some is the platform with three parts.
func some() map[string]any {
	return section(
		"coscheduler", section("enabled", true,
			"scheduler", section("image", section("repository", "registry.k8s.io/s/scheduler", "tag", nil)),
			"controller", section("image", section("repository", "registry.k8s.io/s/controller", "tag", "v1"))),
		"training-operator", section("enabled", true,
			"image", section("repository", "ghcr.io/kubeflow/operator", "tag", "v2"),
			"pytorch", section("initContainer", section("image", "docker.io/library/alpine:3"))),
		"appwrapper", section("enabled", true, "image", section("repository", "ghcr.io/mlbatch/controller")),
		"kueue", section("enabled", false),
	)
}

func references(all []images.Image) []string {
	var refs []string
	for _, image := range all {
		refs = append(refs, image.Reference)
	}
	return refs
}

func TestTheImagesAreThoseOfTheValues(t *testing.T) {
	got, err := images.Of(some(), versions(t), "1.33")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"registry.k8s.io/s/scheduler:" + versions(t).Platform["coscheduler"].OtherKubernetes["1.33"],
		"registry.k8s.io/s/controller:v1",
		"ghcr.io/kubeflow/operator:v2",
		"docker.io/library/alpine:3",
		"ghcr.io/mlbatch/controller:" + versions(t).Version,
	}
	if diff := cmp.Diff(want, references(got)); diff != "" {
		t.Errorf("images: %s", diff)
	}
}

func TestWithoutAVersionThereAreTheImagesOfAll(t *testing.T) {
	got, err := images.Of(some(), versions(t), "")
	if err != nil {
		t.Fatal(err)
	}
	part, _ := parts.Named("coscheduler")
	for _, tag := range append([]string{part.Tag(versions(t))}, "v0.30.12", "v0.35.7") {
		if n := count(references(got), "registry.k8s.io/s/scheduler:"+tag); n != 1 {
			t.Errorf("%s is listed %d times", tag, n)
		}
	}
}

func count(all []string, one string) int {
	n := 0
	for _, other := range all {
		if other == one {
			n++
		}
	}
	return n
}

func TestAValueThatIsNoImageIsNamed(t *testing.T) {
	values := some()
	values["appwrapper"] = section("enabled", true, "image", section("tag", "v1"))
	if _, err := images.Of(values, versions(t), ""); err == nil || !strings.Contains(err.Error(), "the value appwrapper.image names no image") {
		t.Errorf("error: %v", err)
	}
}

// onlyOne sends the requests to every host to one server, and remembers the hosts.
type onlyOne struct {
	server *url.URL
	hosts  []string
}

func (o *onlyOne) RoundTrip(r *http.Request) (*http.Response, error) {
	if host := r.URL.Host; !slices.Contains(o.hosts, host) {
		o.hosts = append(o.hosts, host)
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = o.server.Scheme, o.server.Host
	return http.DefaultTransport.RoundTrip(r)
}

func TestImagesAreCopiedAndUsed(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	world := &onlyOne{server: at}
	all, err := images.Of(some(), versions(t), "1.33")
	if err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for _, reference := range references(all) { // each for two architectures
		index, err := random.Index(512, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		ref := parse(t, reference)
		if err := remote.WriteIndex(ref, index, remote.WithTransport(world)); err != nil {
			t.Fatal(err)
		}
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[ref.Context().RepositoryStr()+":"+ref.Identifier()] = digest.String()
	}
	const folder = "registry.example.com/mirror"
	var progress bytes.Buffer
	if err := (images.Mirror{Folder: folder, Progress: printing.NewLines(&progress), Transport: world}).Copy(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(progress.String(), "5 of 5: copying ghcr.io/mlbatch/controller:") {
		t.Errorf("progress:\n%s", progress.String())
	}

	world.hosts = nil
	for _, reference := range references(used(t, all, folder)) {
		copied, err := remote.Head(parse(t, reference), remote.WithTransport(world))
		if err != nil {
			t.Fatalf("%s cannot be pulled: %v", reference, err)
		}
		if want := digests[strings.TrimPrefix(reference, folder+"/")]; copied.Digest.String() != want {
			t.Errorf("%s has digest %s, want %s", reference, copied.Digest, want)
		}
	}
	if diff := cmp.Diff([]string{"registry.example.com"}, world.hosts); diff != "" {
		t.Errorf("registries that the cluster needs: %s", diff)
	}
}

// used returns the images that the platform pulls with the values of the mirror.
func used(t *testing.T, all []images.Image, folder string) []images.Image {
	t.Helper()
	pulled, err := images.From(images.Registry(images.Values(folder, "")), all)
	if err != nil {
		t.Fatal(err)
	}
	return pulled
}

func TestTheSecretIsNamedBesideTheRegistry(t *testing.T) {
	want := section("global", section("imageRegistry", "registry.example.com/mirror", "imagePullSecrets", []any{section("name", "company")}))
	if diff := cmp.Diff(want, images.Values("registry.example.com/mirror", "company")); diff != "" {
		t.Errorf("values (-want +got)\n%s", diff)
	}
}

func TestAnImageWithoutARegistryIsNamed(t *testing.T) {
	_, err := images.From("registry.example.com", []images.Image{{Reference: "kueue:v1"}})
	if err == nil || !strings.HasPrefix(err.Error(), `"kueue:v1" is not a whole image reference: `) {
		t.Errorf("error: %v", err)
	}
}

func TestWhatCannotBeCopiedIsNamed(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	m := images.Mirror{Folder: "registry.example.com/mirror", Progress: printing.NewLines(io.Discard), Transport: &onlyOne{server: at}}
	err = m.Copy(t.Context(), []images.Image{{Reference: "ghcr.io/mlbatch/nothing:v1"}})
	if err == nil || !strings.HasPrefix(err.Error(), "cannot pull ghcr.io/mlbatch/nothing:v1: ") {
		t.Errorf("error: %v", err)
	}
	m.Folder = "not a folder"
	err = m.Copy(t.Context(), []images.Image{{Reference: "ghcr.io/mlbatch/nothing:v1"}})
	if err == nil || !strings.HasPrefix(err.Error(), "cannot copy to not a folder: ") {
		t.Errorf("error: %v", err)
	}
}

func parse(t *testing.T, reference string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
