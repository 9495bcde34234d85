// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
)

func TestReadmesMatchTheValues(t *testing.T) {
	for _, name := range ownCharts {
		t.Run(name, func(t *testing.T) {
			text := must(packaging.Readme(packaged(t, name)))(t)
			golden.Compare(t, filepath.Join(name, "README.md"), text)
		})
	}
}

func TestNotesNameTheNextCommand(t *testing.T) {
	for name, in := range map[string]map[string]any{"mlbatch": nil, "appwrapper": nil, "teams": exampleTeams(t)["one-team.in.yaml"]} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, name, in)
			if err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile(`(?m)^  (kubectl|helm) `).MatchString(rendered.Info.Notes) {
				t.Errorf("the notes name no command:\n%s", rendered.Info.Notes)
			}
			if command := regexp.MustCompile(`(?m)^  (kubectl|helm) .*[<>].*$`).FindString(rendered.Info.Notes); command != "" {
				t.Errorf("a shell would read a part of it as a redirection: %s", command)
			}
		})
	}
}

func TestNotesExplainHowToConfigureExistingParts(t *testing.T) {
	off := map[string]any{"enabled": false}
	for _, row := range [][2]string{
		{"kueue", "List workload.codeflare.dev/appwrapper in integrations.frameworks"},
		{"kueue", "kubeflow.org/pytorchjob, ray.io/rayjob and ray.io/raycluster"},
		{"kueue", "set appwrapper.config.appwrapper.podSetLimit to 8"},
		{"kuberay-operator", "set networkPolicy.kuberayNamespace to the namespace of your KubeRay"},
		{"coscheduler", "does not start without the PodGroup CRD of scheduling.x-k8s.io/v1alpha1"},
		{"training-operator", "run it with --gang-scheduler-name=" + must(versions())(t).SchedulerName},
		{"jobset", "(jobset.enabled=true)"},
		{"leaderworkerset", "(leaderworkerset.enabled=true)"},
		{"appwrapper", "make sure that exactly one runs"},
		{"priorities", "Work may name only PriorityClasses that exist in the cluster"},
		{"roles", "the teams chart binds members (mlbatch-edit, mlbatch-view-queues)"},
	} {
		part, sentence := row[0], row[1]
		t.Run(part, func(t *testing.T) {
			for is, in := range map[bool]map[string]any{true: {part: off}, false: {part: map[string]any{"enabled": true}}} {
				rendered, err := renderLight(t, here(t), "mlbatch", in)
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Contains(rendered.Info.Notes, sentence); got != is {
					t.Errorf("disabled: %t, and the notes are\n%s", is, rendered.Info.Notes)
				}
			}
		})
	}
}

func TestNotesWarnAboutWhatKubeRayMayDo(t *testing.T) {
	for is, values := range map[bool]map[string]any{
		true:  nil,
		false: {"kuberay-operator": map[string]any{"watchNamespaces": []any{"blue"}}},
	} {
		rendered := must(render(t, "mlbatch", values))(t)
		if got := strings.Contains(rendered.Info.Notes, "every Secret of the cluster"); got != is {
			t.Errorf("limited: %t, and the notes are\n%s", !is, rendered.Info.Notes)
		}
	}
}

func TestArtifactHubAnnotationsListTheImages(t *testing.T) {
	for _, name := range []string{"mlbatch", "appwrapper", "teams", "pytorchjob-generator"} {
		t.Run(name, func(t *testing.T) {
			annotations := load(t, name).Metadata.Annotations
			for _, key := range []string{"license", "category", "prerelease", "links"} {
				if annotations["artifacthub.io/"+key] == "" {
					t.Errorf("annotation artifacthub.io/%s is missing", key)
				}
			}
			if icon := load(t, name).Metadata.Icon; !strings.HasSuffix(icon, "/docs/images/icon.svg") {
				t.Errorf("its icon is %q", icon)
			}
			if _, has := annotations["artifacthub.io/changes"]; has != (name == "mlbatch") {
				t.Errorf("it lists changes: %t", has)
			}
			var listed []struct{ Image string }
			if err := yaml.Unmarshal([]byte(annotations["artifacthub.io/images"]), &listed); err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for _, image := range listed {
				want = append(want, image.Image)
			}
			if name != "teams" && name != "pytorchjob-generator" {
				got = imagesOf(t, name)
			}
			slices.Sort(want)
			slices.Sort(got)
			got = slices.Compact(got) // our controllers are in one image
			if !slices.Equal(got, want) {
				t.Errorf("the chart runs %q, and its annotation lists %q", got, want)
			}
		})
	}
}

func imagesOf(t *testing.T, name string) []string {
	t.Helper()
	in := map[string]any{}
	if name == "mlbatch" {
		in = optionalParts()
	}
	rendered, err := render(t, name, in)
	if err != nil {
		t.Fatal(err)
	}
	var images []string
	for _, o := range objects(t, rendered.Manifest) {
		images = append(images, o.images()...)
	}
	return images
}

// forbidden are functions that make two renderings of the same values differ, or that
// GitOps tools do not support.
var forbidden = regexp.MustCompile(`\b(lookup|rand\w+|gen(CA|SelfSignedCert|SignedCert|PrivateKey)\w*|uuidv4|now|derivePassword|htpasswd|bcrypt|getHostByName)\b`)

// Fields of a PriorityClass are immutable, so Helm must know those of an older release. GitOps
// tools get them by values.
const looksUp = "templates/priorities.yaml"

func TestTemplatesUseNoLookupsAndNoRandomValues(t *testing.T) {
	action := regexp.MustCompile(`(?s){{.*?}}`)
	comment := regexp.MustCompile(`(?s){{-?\s*/\*.*?\*/\s*-?}}`)
	var look func(*chart.Chart)
	look = func(c *chart.Chart) {
		for _, template := range c.Templates {
			text := comment.ReplaceAllString(string(template.Data), "")
			for _, found := range action.FindAllString(text, -1) {
				if word := forbidden.FindString(stripped(found)); word != "" && (word != "lookup" || template.Name != looksUp) {
					t.Errorf("chart %s: %s uses %s in %s", c.Name(), template.Name, word, found)
				}
			}
			if strings.Contains(text, "helm.sh/hook") {
				t.Errorf("chart %s: %s is a hook", c.Name(), template.Name)
			}
		}
		for _, part := range c.Dependencies() {
			look(part)
		}
	}
	for _, name := range []string{"mlbatch", "appwrapper", "teams", "pytorchjob-generator"} {
		look(load(t, name))
	}
}

// stripped is a template action without its string literals.
func stripped(action string) string {
	return regexp.MustCompile("\"(\\\\.|[^\"])*\"|`[^`]*`").ReplaceAllString(action, "")
}

func TestRenderingIsDeterministic(t *testing.T) {
	for _, name := range []string{"mlbatch", "appwrapper", "teams"} {
		first, err1 := render(t, name, nil)
		renderings.Clear() // it has the first one
		second, err2 := render(t, name, nil)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if first.Manifest != second.Manifest {
			t.Errorf("chart %s renders different objects the second time", name)
		}
	}
}
