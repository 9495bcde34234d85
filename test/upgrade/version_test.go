// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package upgrade_test

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install"
)

// version is a version of the platform: its packages and the names of its images.
type version struct {
	dir, number string
	images      map[string]string // by their names in this checkout
}

// crdMark is an annotation on the CRDs of the next version only.
const crdMark = "upgrade.mlbatch.dev/version"

// packageNext packages this checkout as a next version that differs only in the names of its
// images and in a mark on each CRD.
func (s *site) packageNext() version {
	s.Helper()
	now, err := setup.Load()
	s.must(err)
	next := version{dir: s.TempDir(), number: now.Version + "-next", images: map[string]string{}}
	later := now
	later.Version = next.number
	next.images[now.ControllerImage()] = later.ControllerImage()
	later.Platform = maps.Clone(now.Platform)
	for name, o := range later.Platform {
		for _, image := range []*string{&o.Image, &o.ControllerImage} {
			if *image != "" {
				next.images[*image] = *image + "-next"
				*image = next.images[*image]
			}
		}
		later.Platform[name] = o
	}
	bundle, err := packaging.BuildAs(s.Context(), s.Checkout, later)
	s.must(err)
	marked := 0
	for _, chart := range bundle.Charts {
		marked += markCRDs(chart)
	}
	if marked < 20 {
		s.Fatalf("only %d CustomResourceDefinitions were marked", marked)
	}
	_, err = bundle.Write(next.dir)
	s.must(err)
	return next
}

// markCRDs adds the mark to CRDs in one line of JSON, and to CRDs in YAML, where the first
// annotations are those of the CRD itself.
func markCRDs(chart packaging.Chart) int {
	marked := 0
	for name, text := range chart.Files {
		if !strings.Contains(name, "/crds/") && !strings.Contains(name, "/crd/") {
			continue
		}
		old, with := "\n  annotations:\n", "\n  annotations:\n    "+crdMark+": next\n"
		if bytes.HasPrefix(text, []byte("{\"")) {
			old, with = `"metadata":{"annotations":{`, `"metadata":{"annotations":{"`+crdMark+`":"next",`
		}
		if bytes.Contains(text, []byte(old)) {
			chart.Files[name] = bytes.Replace(text, []byte(old), []byte(with), 1)
			marked++
		}
	}
	return marked
}

// release returns one of the two releases in the next version.
func (s *site) release(chart string, values ...string) platform.Release {
	for i, v := range values {
		if !filepath.IsAbs(v) {
			values[i] = filepath.Join(s.Checkout, v)
		}
	}
	return platform.Release{
		Name: chart, Namespace: platform.Namespace, Values: values,
		Chart: filepath.Join(s.next.dir, chart+"-"+s.next.number+".tgz"),
	}
}

func (s *site) applyNext(chart string, values ...string) {
	s.Helper()
	s.must(install.Apply(s.Context(), s.release(chart, values...), s.Cluster.KubeconfigPath()))
}

// Values files: of the platform in the next version, and of the teams.
var nextPlatform = []string{"setup/profiles/localcluster.yaml", "setup/profiles/every-part.yaml", platformValues, "test/upgrade/testdata/next.yaml"}

const (
	platformValues = "test/upgrade/testdata/platform.yaml"
	teams          = "test/upgrade/testdata/teams.yaml"
	moreForGreen   = "test/upgrade/testdata/more-for-green.yaml"
)

func (v version) newImages() []string { return slices.Sorted(maps.Values(v.images)) }

func (v version) oldImages() []string { return slices.Sorted(maps.Keys(v.images)) }
