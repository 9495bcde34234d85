// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/counted/variation"
)

const workers = `
apiVersion: example.dev/v1
kind: Work
metadata: {name: EPISODE-a, labels: {a/b: "1"}}
spec:
  suspend: true
  groups:
  - replicas: 1
    template: {spec: {containers: [{name: main, image: simulated}]}}
`

const schemaOfWork = `
type: object
properties:
  suspend: {type: boolean}
  mode: {type: string, enum: [A, B]}
  limit: {type: integer, minimum: 3, maximum: 7}
  share: {x-kubernetes-int-or-string: true}
  names: {type: array, items: {type: string}}
  groups:
    type: array
    items:
      type: object
      properties:
        replicas: {type: integer}
        template: {type: object, properties: {spec: {type: object, properties: {containers: {type: array, items: {type: object}}}}}}
`

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	inJSON, err := yaml.YAMLToJSON([]byte(text))
	o := &unstructured.Unstructured{}
	if err == nil {
		err = o.UnmarshalJSON(inJSON)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o.Object
}

func schema(t testing.TB, text string) (s map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func ofWork(t testing.TB) Grammar {
	t.Helper()
	work := Kind{Resource: "works.example.dev", Base: object(t, workers), Spec: schema(t, schemaOfWork)}
	wrapper := Kind{Resource: AppWrappers, Base: object(t, "{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {}, spec: {components: []}}"), Spec: schemaOfAppWrapper(t)}
	return Grammar{Created: []Kind{work, wrapper}, Wrapped: []Kind{work}, Others: []string{"pods"}}
}

// schemaOfAppWrapper is the real one.
func schemaOfAppWrapper(t testing.TB) map[string]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "charts", "appwrapper", "files", "*", "*appwrappers.yaml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("found %q, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	versions, _ := variation.At(schema(t, string(text)), []string{"spec", "versions"}).([]any)
	spec := variation.Object(variation.At(versions[0], []string{"schema", "openAPIV3Schema", "properties", "spec"}))
	if len(spec) == 0 {
		t.Fatal("the CRD has no schema")
	}
	return spec
}

func TestTheSameSeedDrawsTheSameCalls(t *testing.T) {
	g := ofWork(t)
	first := Script(g.Episode(7, 1, 30), "e1")
	if diff := cmp.Diff(first, Script(g.Episode(7, 1, 30), "e1")); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(first, Script(g.Episode(8, 1, 30), "e1")) || cmp.Equal(first, Script(g.Episode(7, 2, 30), "e1")) {
		t.Error("another seed, or another episode, draws the same")
	}
}

// Whatever is drawn can be sent and printed. Over some episodes, every sort of call is there.
func TestEveryMoveIsDrawn(t *testing.T) {
	g := ofWork(t)
	drawn := map[string]bool{}
	for number := range 300 {
		for _, c := range g.Episode(1, number, 20) {
			for twin := &c; twin != nil; twin = twin.Twin {
				drawn[string(twin.Verb)+twin.Type+twin.Propagation] = true
				text, err := Text(twin.Body, "e1", func(string, string) string { return "uid" })
				if err != nil {
					t.Fatalf("%+v: %v", twin, err)
				}
				drawn["work that ends"] = drawn["work that ends"] || twin.About == "" && strings.Contains(string(text), `"localcluster.mlbatch.dev/run-for":"3s"`)
			}
			drawn["twin"] = drawn["twin"] || c.Twin != nil
		}
	}
	for _, want := range []string{"create", "patchmerge", "patchjson", "patchapply", "delete", "deleteBackground", "deleteForeground", "deleteOrphan", "scale", "wait", "twin", "work that ends"} {
		if !drawn[want] {
			t.Errorf("nothing draws %s", want)
		}
	}
}

// Values of every corner of a schema are drawn, and every field is removed at times.
func TestCornersOfASchema(t *testing.T) {
	spec, base := schema(t, schemaOfWork), object(t, workers)["spec"]
	found := map[string]bool{}
	for i := range uint64(20000) {
		found[walk(nil, spec, base, rand.New(rand.NewPCG(i, 0))).String()] = true
	}
	for _, want := range []string{
		"suspend=false", "no suspend", "mode=A", "mode=B", "mode=NoMember", "mode=map[]", "limit=2", "limit=3", "limit=7", "limit=8", "limit=9223372036854775807",
		"share=50%", "share=1e400", "names=[]", "names=[kueue.x-k8s.io/multikueue]", "groups=[]", "no groups", "no groups.0", "no groups.0.replicas", "groups.0.replicas=90",
		"groups.0.template.spec.containers=[]",
	} {
		if !found[want] {
			t.Errorf("%s is never drawn", want)
		}
	}
}

func TestListsAreLongAtTimes(t *testing.T) {
	names, long := schema(t, "{type: array, items: {type: boolean}}"), 0
	for i := range uint64(200) {
		if list, is := corner(nil, names, []any{}, rand.New(rand.NewPCG(i, 0))).([]any); is && len(list) == many {
			long++
		}
	}
	if long == 0 || long > 100 {
		t.Errorf("%d of 200 lists are long", long)
	}
}

// Fields that operators share are found by their names, also where the object lacks them, and in no pod template.
func TestFieldsThatOperatorsShare(t *testing.T) {
	spec := schema(t, `
properties:
  suspend: {type: boolean}
  runPolicy: {properties: {managedBy: {type: string}, cleanPodPolicy: {type: string}, deep: {properties: {deeper: {properties: {replicas: {type: integer}}}}}}}
  replicaSpecs:
    additionalProperties:
      properties: {replicas: {type: integer}, template: {properties: {spec: {properties: {containers: {type: array}, schedulerName: {type: string}}}}}}
  other: {type: string}
`)
	var found []string
	for _, path := range spokenOf(nil, spec, map[string]any{"replicaSpecs": map[string]any{"Worker": map[string]any{}}}, nil, 0) {
		found = append(found, strings.Join(path, "."))
	}
	if diff := cmp.Diff([]string{"replicaSpecs.Worker.replicas", "runPolicy.cleanPodPolicy", "runPolicy.managedBy", "suspend"}, found); diff != "" {
		t.Error(diff)
	}
}

// Amounts that take hours are sent only to those who refuse them.
func TestCostlyAmountsAreDrawnOnDemand(t *testing.T) {
	g := ofWork(t)
	for _, want := range []bool{false, true} {
		g.Costly = want
		drawn := false
		for number := 0; number < 200 && !drawn; number++ {
			drawn = strings.Contains(strings.Join(Script(g.Episode(1, number, 20), "e1"), "\n"), "e-2000000000")
		}
		if drawn != want {
			t.Errorf("drawn is %t", drawn)
		}
	}
}

func TestKeysOfAnOperator(t *testing.T) {
	for _, c := range []struct {
		group, key string
		want       bool
	}{
		{"kubeflow.org", "training.kubeflow.org/job-name", true}, {"ray.io", "ray.io/cluster", true}, {"jobset.x-k8s.io", "jobset.sigs.k8s.io/jobset-name", true},
		{"batch", "batch.kubernetes.io/job-name", true}, {"ray.io", "kueue.x-k8s.io/managed", false}, {"", "example.com/any", false}, {"apps", "example.com/any", false},
		{"workload.codeflare.dev", "workload.codeflare.dev.appwrapper/retryLimit", true},
	} {
		if got := ownOf(c.group, c.key); got != c.want {
			t.Errorf("%+v: got %t", c, got)
		}
	}
}

// A merge patch and a JSON patch turn the object into what was drawn.
func TestPatchesDoWhatWasDrawn(t *testing.T) {
	g := ofWork(t)
	rapid.Check(t, func(t *rapid.T) {
		e := &episode{Grammar: g, random: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
		o := e.object()
		changes := []change{e.change(o)[0]}
		want := changed(o.body, changes)
		before := encoded(t, o.body)
		merged, err := jsonpatch.MergePatch(before, encoded(t, patch(Merge, o.body, want, changes)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(withoutNulls(t, want), withoutNulls(t, decoded(t, merged))); diff != "" {
			t.Errorf("%s, merged:\n%s", describe(changes), diff)
		}
		operations, err := jsonpatch.DecodePatch(encoded(t, patch(JSON, o.body, want, changes)))
		if err != nil {
			t.Fatal(err)
		}
		patched, err := operations.Apply(before)
		if err != nil {
			t.Fatalf("%s: %v", describe(changes), err)
		}
		if diff := cmp.Diff(decoded(t, encoded(t, want)), decoded(t, patched)); diff != "" {
			t.Errorf("%s, patched:\n%s", describe(changes), diff)
		}
	})
}

func encoded(t *rapid.T, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decoded(t *rapid.T, text []byte) (o map[string]any) {
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// withoutNulls is what is left if a field that is null is the same as one that is not there.
func withoutNulls(t *rapid.T, o map[string]any) any { return pruned(decoded(t, encoded(t, o))) }

func pruned(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range keys(v) {
			if v[name] = pruned(v[name]); v[name] == nil {
				delete(v, name)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = pruned(v[i])
		}
	}
	return value
}

func TestAScriptIsWhatAPersonWouldType(t *testing.T) {
	grace := int64(0)
	calls := []Call{
		{Verb: Create, Resource: "works.example.dev", Name: Episode + "-a", Body: map[string]any{"metadata": map[string]any{
			"name": Episode + "-a", "ownerReferences": []any{map[string]any{"uid": uidMark + "pods/" + Episode + "-b"}},
		}}, About: "an owner"},
		{Verb: Wait, Body: int64(2)},
		{Verb: Patch, Resource: "works.example.dev", Name: Episode + "-a", Type: Merge, Body: map[string]any{"spec": nil}, Twin: &Call{Verb: Delete, Resource: "pods", Nth: 1, Grace: &grace}},
		{Verb: Patch, Resource: "works.example.dev", Name: Episode + "-a", Type: Apply, Body: map[string]any{"spec": map[string]any{}}},
		{Verb: Scale, Resource: "deployments.apps", Name: Episode + "-a", Body: map[string]any{"spec": map[string]any{"replicas": int64(2)}}},
		{Verb: Delete, Resource: "works.example.dev", Name: Episode + "-a", Propagation: "Orphan"},
	}
	want := []string{
		`echo '{"metadata":{"name":"e1-a","ownerReferences":[{"uid":"'$(kubectl get pods e1-b -o jsonpath={.metadata.uid})'"}]}}' | kubectl create -f - # an owner`,
		"sleep 2",
		`kubectl patch works.example.dev e1-a --type=merge -p '{"spec":null}' & kubectl delete pods $(kubectl get pods -o name | grep e1 | sed -n 2p) --grace-period=0 --wait=false & wait`,
		`echo '{"spec":{}}' | kubectl apply --server-side --force-conflicts -f -`,
		`kubectl patch deployments.apps e1-a --subresource=scale --type=merge -p '{"spec":{"replicas":2}}'`,
		"kubectl delete works.example.dev e1-a --cascade=orphan --wait=false",
	}
	if diff := cmp.Diff(want, Script(calls, "e1")); diff != "" {
		t.Error(diff)
	}
	if n := Requests(calls); n != 6 {
		t.Errorf("there are %d requests", n)
	}
}

// What is left still fails, and nothing more can be left out.
func TestShrinking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "calls")
		needed := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 1, min(4, n), rapid.ID[int]).Draw(t, "needed")
		var calls []Call
		for i := range n {
			calls = append(calls, Call{Name: fmt.Sprint(i), Twin: &Call{Name: "twin"}})
		}
		tries := 0
		left := Shrink(calls, func(some []Call) bool {
			tries++
			return !slices.ContainsFunc(needed, func(i int) bool {
				return !slices.ContainsFunc(some, func(c Call) bool { return c.Name == fmt.Sprint(i) })
			})
		})
		if len(left) != len(needed) || slices.ContainsFunc(left, func(c Call) bool { return c.Twin != nil || c.Name == "twin" }) {
			t.Errorf("%d calls are left of %d, and %v are needed: %v", len(left), n, needed, left)
		}
		if tries > n*n+2*n {
			t.Errorf("%d tries for %d calls", tries, n)
		}
	})
}

func TestShrinkingKeepsTheTwinThatIsNeeded(t *testing.T) {
	call := Call{Name: "a", Twin: &Call{Name: "b"}}
	for name, c := range map[string]struct {
		fails func([]Call) bool
		want  string
	}{
		"both":       {func(some []Call) bool { return some[0].Twin != nil }, "a b"},
		"the first":  {func(some []Call) bool { return some[0].Name == "a" }, "a"},
		"the second": {func(some []Call) bool { return some[0].Name == "b" || some[0].Twin != nil }, "b"},
	} {
		left := Shrink([]Call{call}, c.fails)
		got := left[0].Name
		if left[0].Twin != nil {
			got += " " + left[0].Twin.Name
		}
		if got != c.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestRightsOfARole(t *testing.T) {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"example.dev"}, Resources: []string{"works", "works/status"}, Verbs: []string{"create", "delete", "get"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"get"}},
	}
	want := []Right{{"works.example.dev", true, true}, {"pods", false, true}}
	if diff := cmp.Diff(want, Rights(rules)); diff != "" {
		t.Error(diff)
	}
}

func TestEveryPodGetsADevice(t *testing.T) {
	text, err := yaml.Marshal(WithDevices(object(t, workers)))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), gpu+`: "1"`) != 2 {
		t.Errorf("got\n%s", text)
	}
}
