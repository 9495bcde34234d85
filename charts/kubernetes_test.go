// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
)

// oldestMinor and newestMinor are the minor versions of Kubernetes 1 in setup/versions.yaml.
const oldestMinor, newestMinor = 30, 37

func TestTheRangeOfKubernetesIsTheTestedOne(t *testing.T) {
	if want := fmt.Sprintf(">=1.%d.0-0 <1.%d.0-0", oldestMinor, newestMinor+1); must(versions())(t).Supported.Kubernetes != want {
		t.Errorf("the tests are for %s", want)
	}
}

// TestEveryProfileRendersOnEveryKubernetes: with the values of each profile, the scheduler of gangs is not newer
// than the API server, and every object is of a version that this API server has.
func TestEveryProfileRendersOnEveryKubernetes(t *testing.T) {
	for _, profile := range setup.Profiles() {
		in := values(t, must(setup.Profile(profile))(t))
		for minor := oldestMinor; minor <= newestMinor; minor++ {
			kubernetes := fmt.Sprintf("v1.%d.2-gke.100", minor)
			rendered, err := renderLight(t, kubernetes, "mlbatch", in)
			if err != nil {
				t.Errorf("%s on %s: %v", profile, kubernetes, err)
				continue
			}
			all := objects(t, rendered.Manifest)
			for _, o := range all {
				for _, problem := range []string{absent(o, minor), tooNew(o, minor)} {
					if problem != "" {
						t.Errorf("%s on %s: %s: %s", profile, kubernetes, o.id(), problem)
					}
				}
			}
			if len(all) < 10 {
				t.Errorf("%s on %s: there are %d objects", profile, kubernetes, len(all))
			}
		}
	}
}

// withoutCRDs is a chart without its CRDs, which are most of its size, and the same on all clusters.
func withoutCRDs(t *testing.T, name string) *chart.Chart {
	t.Helper()
	whole := packaged(t, name)
	light := packaging.Chart{Name: whole.Name, Version: whole.Version, Files: map[string][]byte{}}
	for file, text := range whole.Files {
		switch {
		case strings.Contains(file, "templates/crd/"):
		case strings.Contains(file, "files/crds/"): // a template looks for the file
			light.Files[file] = []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: light}\n")
		default:
			light.Files[file] = text
		}
	}
	return must(light.Load())(t)
}

// absent says why the API server of a minor version does not have the kind of an object. Kinds that are no part of
// Kubernetes come from CRDs.
func absent(o object, minor int) string {
	kind := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	if !scheme.Scheme.Recognizes(kind) {
		if strings.HasSuffix(kind.Group, ".k8s.io") && scheme.Scheme.IsGroupRegistered(kind.Group) || !strings.Contains(kind.Group, ".") {
			return o.APIVersion + " has no such kind"
		}
		return ""
	}
	made, err := scheme.Scheme.New(kind)
	if err != nil {
		return err.Error()
	}
	if since, is := made.(interface{ APILifecycleIntroduced() (major, minor int) }); is {
		if _, first := since.APILifecycleIntroduced(); first > minor {
			return fmt.Sprintf("%s is new in 1.%d", o.APIVersion, first)
		}
	}
	if until, is := made.(interface{ APILifecycleRemoved() (major, minor int) }); is {
		if _, gone := until.APILifecycleRemoved(); gone <= minor {
			return fmt.Sprintf("%s is gone in 1.%d", o.APIVersion, gone)
		}
	}
	return ""
}

// tooNew says which image of the Coscheduler is newer than a cluster, or more than two minor versions older.
func tooNew(o object, minor int) string {
	for _, image := range o.images() {
		_, tag, is := strings.Cut(image, "/scheduler-plugins/")
		if !is {
			continue
		}
		_, release, _ := strings.Cut(tag, ":v0.")
		of, err := strconv.Atoi(strings.Split(release, ".")[0])
		if err != nil || of > minor || of < minor-2 {
			return fmt.Sprintf("%s does not fit (%v)", image, err)
		}
	}
	return ""
}
