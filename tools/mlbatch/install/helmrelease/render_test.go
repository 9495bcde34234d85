// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// bundle has the charts of this checkout, packaged once for all tests.
var bundle = sync.OnceValues(func() (packaging.Bundle, error) { return packaging.Build(context.Background(), "../../../..") })

// on returns the capabilities of a cluster with the given version.
func on(version string) Capabilities {
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	return Capabilities{Version: &chartutil.KubeVersion{Version: version, Major: major, Minor: minor}}
}

// render renders a chart of this checkout.
func render(t *testing.T, r Release, c Capabilities) (string, error) {
	t.Helper()
	all, err := bundle()
	if err != nil {
		t.Fatal(err)
	}
	packaged, err := all.Chart(r.Name)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := packaged.Archive()
	if err != nil {
		t.Fatal(err)
	}
	values, err := r.MergedValues()
	if err != nil {
		t.Fatal(err)
	}
	return r.Render(archive, values, c)
}

func objectsOf(t *testing.T, r Release) []Object {
	t.Helper()
	manifest, err := render(t, r, on("v1.34.4"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := Decode(manifest)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestEveryPartIsFoundInWhatIsInstalled(t *testing.T) {
	objects := objectsOf(t, Release{Name: "mlbatch", Namespace: DefaultNamespace, Profiles: []string{"every-part"}})
	byPart := map[string]int{}
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		part, known := parts.Of(o.GetName())
		if !known || part.Name != o.Part {
			t.Errorf("the Deployment %s comes from the chart %q and is taken for %q", o.GetName(), o.Part, part.Name)
		}
		byPart[o.Part]++
	}
	want := map[string]int{"coscheduler": 2}
	for _, p := range parts.All {
		want[p.Name] = max(want[p.Name], 1)
	}
	if diff := cmp.Diff(want, byPart); diff != "" {
		t.Errorf("Deployments of each part: %s", diff)
	}
}

func TestAPartIsOnOrOffAsTheChartUnderstandsIt(t *testing.T) {
	all, err := bundle()
	if err != nil {
		t.Fatal(err)
	}
	packaged, err := all.Chart("mlbatch")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := packaged.Archive()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Release{}.Load(archive)
	if err != nil {
		t.Fatal(err)
	}
	values, err := chartutil.CoalesceValues(loaded, map[string]any{"kueue": map[string]any{"enabled": false}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts.All {
		if want := !p.Optional && p.Name != "kueue"; p.Enabled(values) != want {
			t.Errorf("%s is taken for on: %t", p.Name, !want)
		}
	}
}

func TestANullOfAProfileTakesADefaultAway(t *testing.T) {
	for profile, want := range map[string]bool{"kubernetes": true, "openshift": false} {
		for _, o := range objectsOf(t, Release{Name: "mlbatch", Namespace: DefaultNamespace, Profiles: []string{"laptop", profile}}) {
			if o.GetKind() != "Deployment" || o.Part != "training-operator" {
				continue
			}
			text, err := o.MarshalJSON()
			if got := strings.Contains(string(text), "runAsUser"); err != nil || got != want {
				t.Errorf("with %s the operator names its user: %t (%v)", profile, got, err)
			}
		}
	}
}

func TestAProfileThatIsNotThereIsNamed(t *testing.T) {
	_, err := Release{Profiles: []string{"openshit"}}.MergedValues()
	wording.Wanted(t, err, `there is no profile "openshit"; choose one of every-part, kubernetes, `, "production")
	if names := setup.Profiles(); !slices.Contains(names, "openshift-ai") {
		t.Errorf("the profiles are %q", names)
	}
}

func TestWhatChartsSayAgainstValuesIsPlain(t *testing.T) {
	for name, c := range map[string]struct {
		set     []string
		version string
		want    string
	}{
		"a misspelt part": {[]string{"kueu.enabled=false"}, "v1.34.4",
			"the chart does not take these values: mlbatch: nothing is called 'kueu' here"},
		"a combination": {[]string{"coscheduler.scheduler.name=mine"}, "v1.34.4",
			`mlbatch: pods would wait for a scheduler that does not exist: appwrapper.config.appwrapper.schedulerName is "scheduler-plugins-scheduler", ` +
				`coscheduler.scheduler.name is "mine", training-operator.gangSchedulerName is "scheduler-plugins-scheduler"; set all of them to the same name`},
		"an older Kubernetes": {[]string{"coscheduler.scheduler.image.tag=v0.34.7"}, "v1.33.1",
			"mlbatch: the scheduler v0.34.7 is newer than Kubernetes 1.33 and could not start pods there: set coscheduler.scheduler.image.tag and " +
				"coscheduler.controller.image.tag to a release v0.33.x (or, with helm template, pass the cluster's version as --kube-version)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, Release{Name: "mlbatch", Namespace: DefaultNamespace, Set: c.set}, on(c.version))
			if err == nil {
				t.Fatal("it is rendered")
			}
			if diff := cmp.Diff(c.want, Explain(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOfAlternativesTheOneThatWasMeantIsSaidWrong(t *testing.T) {
	team := `{"teams": [{"name": "blue", "quota": {"h100": {"cpu": 1, "memory": %s}}}]}`
	for quota, want := range map[string]string{
		`"512GB"`:                      "teams: teams/0/quota/h100/memory: '512GB' is no amount: write a number, and a unit such as m, k, M, G, Ki, Mi or Gi",
		`{"nominal": "1Gi", "low": 1}`: "teams: teams/0/quota/h100/memory: nothing is called 'low' here",
		`{"nominal": "all"}`:           "teams: teams/0/quota/h100/memory/nominal: 'all' is no amount: ",
		`"-1"`:                         "teams: teams/0/quota/h100/memory: '-1' is no amount: ",
		`-1`:                           "teams: teams/0/quota/h100/memory: is -1, and must be at least 0",
		`true`:                         "teams: teams/0/quota/h100/memory: is true or false, and must be a number; teams/0/quota/h100/memory: is true or false, and must be a text; ",
	} {
		values := filepath.Join(t.TempDir(), "teams.yaml")
		if err := os.WriteFile(values, fmt.Appendf(nil, team, quota), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := render(t, Release{Name: "teams", Namespace: DefaultNamespace, Values: []string{values}}, on("v1.34.4"))
		if err == nil {
			t.Fatalf("%s is rendered", quota)
		}
		if got := Explain(err); !strings.HasPrefix(got, "the chart does not take these values: "+want) || strings.Contains(got, "anyOf") ||
			strings.Contains(want, "is no amount") && strings.Contains(got, ";") {
			t.Errorf("of %s it says %s", quota, got)
		}
	}
}

// What administrators get wrong in the values, in one sentence each.
func TestWrongFormatsAreSaidInWords(t *testing.T) {
	for set, want := range map[string]string{
		"global.imageRegistry=https://registry.example.com": "global/imageRegistry: 'https://registry.example.com' is no registry: write HOST or HOST/FOLDER in lower case, without https:// or oci://",
		"global.imageRegistry=oci://registry.example.com/a": "global/imageRegistry: 'oci://registry.example.com/a' is no registry: ",
		"global.gpuResourceName=a//b":                       "global/gpuResourceName: 'a//b' is no name of a resource or label: write NAME or DOMAIN/NAME, such as nvidia.com/gpu",
		"coscheduler.scheduler.name=Gangs":                  "scheduler/name: 'Gangs' is no name: use lower-case letters and digits, and - between them",
		"training-operator.webhookTimeoutSeconds=0":         "webhookTimeoutSeconds: is 0, and must be at least 1",
		"kueue.enabled=no":                                  "kueue/enabled: is a text, and must be true or false",
	} {
		t.Run(set, func(t *testing.T) {
			_, err := render(t, Release{Name: "mlbatch", Namespace: DefaultNamespace, Set: []string{set}}, on("v1.34.4"))
			if err == nil {
				t.Fatal("it is rendered")
			}
			if got := Explain(err); !strings.Contains(got, want) || strings.Contains(got, "\n") {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestKindsThatThePlatformBringsAreNotMissed(t *testing.T) {
	kinds := DefinedKinds(objectsOf(t, Release{Name: "mlbatch", Namespace: DefaultNamespace}))
	for _, o := range objectsOf(t, Release{Name: "teams", Namespace: DefaultNamespace, Values: []string{"../../../../setup/teams/demo.yaml"}}) {
		gk := o.GroupVersionKind().GroupKind()
		if strings.HasSuffix(gk.Group, "x-k8s.io") && !kinds[gk] {
			t.Errorf("the teams need %s, which is none of %v", gk, slices.Collect(maps.Keys(kinds)))
		}
	}
}
