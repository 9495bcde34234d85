// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/golden"
)

const kustomizePage = "../docs/migrate-kustomize.md"

// otherwise is what becomes of objects that the charts do not have, by the step of the page.
var otherwise = map[string]string{
	"Namespace/scheduler-plugins":                  "removed in step 4",
	"Deployment/scheduler-plugins-scheduler":       "removed in step 4, and made anew in `mlbatch-system`",
	"Deployment/scheduler-plugins-controller":      "removed in step 4, and made anew in `mlbatch-system`",
	"Namespace/mlbatch-system":                     "removed in step 4, and made anew",
	"CustomResourceDefinition/mxjobs.kubeflow.org": "stays, and nothing runs MXJobs any more. Remove it if you need none",
	"ClusterQueue/slack-cluster-queue":             "stays yours: see [the slack queue](slack-queue.md)",
	"RoleBinding/alice":                            "removed in step 8. The chart binds all members in one",
}

// anew are objects that the charts have, too, and that are removed before.
var anew = map[string]string{
	"CustomResourceDefinition/cohorts.kueue.x-k8s.io":    "removed in step 5, and made anew",
	"CustomResourceDefinition/topologies.kueue.x-k8s.io": "removed in step 5, and made anew",
	"Deployment/kueue-controller-manager":                "removed in step 4, and made anew",
	"Deployment/appwrapper-controller-manager":           "removed in step 4, and made anew",
	"Deployment/training-operator":                       "removed in step 4, and made anew",
	"Deployment/kuberay-operator":                        "removed in step 4, and made anew",
}

// The page about the kustomize set-up has values for the charts, and says what becomes of each object.
func TestTheKustomizeSetUpIsTakenOver(t *testing.T) {
	rendered := map[string]*unstructured.Unstructured{}
	for chart, in := range pageValues(t) {
		for _, o := range decoded(t, must(render(t, chart, in))(t).Manifest) {
			rendered[identity(o)] = o
		}
	}
	var table strings.Builder
	table.WriteString("| object | afterwards |\n|---|---|\n")
	for _, was := range decoded(t, string(must(os.ReadFile("testdata/kustomize/objects.yaml"))(t))) {
		id := was.GetKind() + "/" + was.GetName()
		is, has := rendered[identity(was)]
		what := "adopted"
		switch {
		case has && anew[id] != "":
			what = anew[id]
		case has:
			staysAsItMust(t, was, is)
		case otherwise[id] == "":
			t.Errorf("neither the charts nor the page say what becomes of %s", id)
		default:
			what = otherwise[id]
		}
		fmt.Fprintf(&table, "| %s `%s` | %s |\n", was.GetKind(), strings.TrimPrefix(was.GetNamespace()+"/"+was.GetName(), "/"), what)
	}
	golden.Between(t, kustomizePage, "<!-- objects: written by go test ./charts -run TestTheKustomizeSetUp -update -->\n", "<!-- end of objects -->", table.String())
}

// staysAsItMust compares what Kubernetes or Kueue refuse to change, and the quota.
func staysAsItMust(t *testing.T, was, is *unstructured.Unstructured) {
	t.Helper()
	for _, field := range [][2]string{
		{"value", "value"}, {"preemptionPolicy", "preemptionPolicy"}, {"globalDefault", "globalDefault"},
		{"spec.clusterQueue", "spec.clusterQueue"}, {"spec.cohort", "spec.cohortName"},
	} {
		before, has, _ := unstructured.NestedFieldNoCopy(was.Object, strings.Split(field[0], ".")...)
		after, _, _ := unstructured.NestedFieldNoCopy(is.Object, strings.Split(field[1], ".")...)
		if has && fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("%s of %s is %v, and would be %v", field[0], identity(was), before, after)
		}
	}
	if diff := cmp.Diff(quotaOf(t, was), quotaOf(t, is)); diff != "" {
		t.Errorf("the quota of %s: %s", identity(was), diff)
	}
}

// quotaOf is the quota of a ClusterQueue, by flavor and resource.
func quotaOf(t *testing.T, queue *unstructured.Unstructured) map[string]string {
	t.Helper()
	all := map[string]string{}
	groups, _, _ := unstructured.NestedSlice(queue.Object, "spec", "resourceGroups")
	for _, group := range groups {
		for _, flavor := range group.(map[string]any)["flavors"].([]any) {
			for _, r := range flavor.(map[string]any)["resources"].([]any) {
				quota := resource.MustParse(fmt.Sprint(r.(map[string]any)["nominalQuota"]))
				all[fmt.Sprint(flavor.(map[string]any)["name"], " ", r.(map[string]any)["name"])] = quota.String()
			}
		}
	}
	return all
}

// pageValues are the values on the page by chart. The first line of each block names its file.
func pageValues(t *testing.T) map[string]map[string]any {
	t.Helper()
	page := string(must(os.ReadFile(filepath.FromSlash(kustomizePage)))(t))
	found := map[string]map[string]any{}
	for i, block := range strings.Split(page, "```") {
		for file, chart := range map[string]string{"platform.yaml": "mlbatch", "teams.yaml": "teams"} {
			if text, is := strings.CutPrefix(block, "yaml\n   # "+file+"\n"); is && i%2 == 1 {
				found[chart] = values(t, []byte(text))
			}
		}
	}
	if len(found) != 2 {
		t.Fatalf("the page has values for %d charts", len(found))
	}
	return found
}

func decoded(t *testing.T, manifest string) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, document := range strings.Split(manifest, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
	return all
}

// identity names an object whatever the version of its kind.
func identity(o *unstructured.Unstructured) string {
	inNamespace := slices.Contains([]string{"Deployment", "RoleBinding", "LocalQueue"}, o.GetKind())
	space := map[bool]string{true: o.GetNamespace() + "/"}[inNamespace]
	return o.GroupVersionKind().Group + " " + o.GetKind() + " " + space + o.GetName()
}
