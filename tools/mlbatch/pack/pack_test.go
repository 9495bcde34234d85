// SPDX-License-Identifier: Apache-2.0

package pack_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/sameseed"
	"github.com/mlbatch/mlbatch/tools/mlbatch/manifests"
	"github.com/mlbatch/mlbatch/tools/mlbatch/pack"
)

func TestMain(m *testing.M) { os.Exit(sameseed.Run(m)) }

// podsOf has the number of pods that the manifests of the stories make.
var podsOf = map[string]int{
	"Deployment": 2, "JAXJob": 2, "Job": 2, "JobSet": 3, "LeaderWorkerSet": 4, "MPIJob": 3, "PaddleJob": 3, "Pod": 1, "PyTorchJob": 2, "RayCluster": 3,
	"RayJob": 3, "RayService": 2, "ReplicaSet": 2, "StatefulSet": 2, "TFJob": 3, "XGBoostJob": 3,
	"Rehearsal": 2, "ReplicationController": 2,
}

// manifestsOfStories are the objects that e2e runs, by their kinds.
func manifestsOfStories(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob("../../../test/e2e/testdata/kinds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no manifests: %v", err)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		filled := strings.NewReplacer("$NAME", "work", "$IMAGE", "a:1", "$RAY", "ray:2", "$CODE", "0").Replace(string(text))
		documents, err := manifests.Read([]string{"-"}, strings.NewReader(filled), false)
		if err != nil || len(documents) != 1 {
			t.Fatalf("%s has %d objects: %v", file, len(documents), err)
		}
		all[documents[0].Object.GetKind()] = documents[0].Object
	}
	return all
}

func TestEveryKindIsPacked(t *testing.T) {
	for kind, object := range manifestsOfStories(t) {
		t.Run(kind, func(t *testing.T) {
			options := pack.Options{Queue: "default-queue", Priority: "high-priority"}
			if !admissionrules.Known(object.GroupVersionKind().GroupKind()) {
				options.PodSets = []pack.PodSet{{Kind: kind, Name: "work", Path: "spec.template", Replicas: 2}}
			}
			packed := pack.Pack([]manifests.Document{{File: "a.yaml", Object: object}}, options)
			if len(packed.Refusals) > 0 {
				t.Fatalf("it is refused: %v", packed.Refusals)
			}
			if got := countAdmitted(t, packed.AppWrapper); got != podsOf[kind] {
				t.Errorf("%d pods are counted, not %d", got, podsOf[kind])
			}
			if got := strings.Count(string(packed.AppWrapper.Spec.Components[0].Template.Raw), `"priorityClassName":"high-priority"`); got == 0 {
				t.Error("no pod has the priority")
			}
		})
	}
}

// tester is a test or a property.
type tester interface {
	Helper()
	Fatalf(string, ...any)
}

// countAdmitted returns the number of pods of an AppWrapper that admission must accept.
func countAdmitted(t tester, aw *v1beta2.AppWrapper) int {
	t.Helper()
	decoded := admissionrules.Decode(aw)
	if problems := decoded.ValidateCreate(pack.Limits); len(problems) > 0 {
		t.Fatalf("admission refuses it: %v", problems.ToAggregate())
	}
	pods := 0
	for i, template := range decoded.Templates {
		pods += count(t, aw.Spec.Components[i].DeclaredPodSets, template)
	}
	return pods
}

func count(t tester, declared []v1beta2.AppWrapperPodSet, template *unstructured.Unstructured) int {
	t.Helper()
	podSets, err := admissionrules.PodSets(declared, template)
	if err != nil {
		t.Fatalf("%v", err)
	}
	pods := 0
	for _, s := range podSets {
		pods += int(s.Count())
	}
	return pods
}

// replicaFields are where the manifests of the stories have numbers of pods.
var replicaFields = map[string][]string{
	"Deployment": {"spec", "replicas"}, "Job": {"spec", "parallelism"}, "ReplicaSet": {"spec", "replicas"}, "StatefulSet": {"spec", "replicas"},
	"LeaderWorkerSet": {"spec", "replicas"}, "PyTorchJob": {"spec", "pytorchReplicaSpecs", "Worker", "replicas"},
	"MPIJob": {"spec", "mpiReplicaSpecs", "Worker", "replicas"}, "TFJob": {"spec", "tfReplicaSpecs", "Worker", "replicas"},
}

// Whatever known kinds are packed, admission accepts the AppWrapper, its pods are those of all
// objects, and it has all of them in their order, with nothing more or less.
func TestAnyBundleIsAdmittedAndHoldsItsObjects(t *testing.T) {
	stories := manifestsOfStories(t)
	kinds := slices.Sorted(func(yield func(string) bool) {
		for kind, object := range stories {
			if admissionrules.Known(object.GroupVersionKind().GroupKind()) && !yield(kind) {
				return
			}
		}
	})
	admitted := 0
	rapid.Check(t, func(t *rapid.T) {
		var documents []manifests.Document
		for i, kind := range rapid.SliceOfN(rapid.SampledFrom(append(kinds, "ConfigMap")), 1, 5).Draw(t, "kinds") {
			documents = append(documents, manifests.Document{File: "a.yaml", Object: drawObject(t, stories[kind], i)})
		}
		options := pack.Options{
			Queue:    rapid.SampledFrom([]string{"", "default-queue"}).Draw(t, "queue"),
			PodGroup: rapid.Bool().Draw(t, "pod group"), Priority: rapid.SampledFrom([]string{"", "high"}).Draw(t, "priority"),
		}
		before := copied(documents)
		packed := pack.Pack(documents, options)
		if diff := cmp.Diff(before, documents); diff != "" {
			t.Fatalf("what was packed is changed: %s", diff)
		}
		if packed.AppWrapper == nil {
			wantReason(t, documents, options, packed.Refusals)
			return
		}
		written, err := pack.YAML(packed.AppWrapper)
		if err != nil {
			t.Fatal(err)
		}
		var aw v1beta2.AppWrapper
		if err := yaml.UnmarshalStrict(written, &aw); err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, d := range documents {
			want += count(t, nil, d.Object)
		}
		if got := countAdmitted(t, &aw); got != want {
			t.Fatalf("%d pods are counted, and not %d:\n%s", got, want, written)
		}
		wantObjects(t, documents, options, &aw)
		admitted++
	})
	if admitted == 0 {
		t.Error("nothing was ever packed")
	}
}

// drawObject changes an object of the stories, or returns a ConfigMap.
func drawObject(t *rapid.T, object *unstructured.Unstructured, i int) *unstructured.Unstructured {
	if object == nil {
		object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": drawString(t)}}}
	}
	object = object.DeepCopy()
	object.SetName(rapid.StringMatching(`[a-z]([a-z0-9.-]{0,70}[a-z0-9])?`).Draw(t, "name") + strconv.Itoa(i))
	if path := replicaFields[object.GetKind()]; path != nil {
		replicas := rapid.Int64Range(1, 100).Draw(t, "replicas")
		if err := unstructured.SetNestedField(object.Object, replicas, path...); err != nil {
			t.Fatal(err)
		}
	}
	return object
}

func copied(documents []manifests.Document) []manifests.Document {
	all := slices.Clone(documents)
	for i := range all {
		all[i].Object = all[i].Object.DeepCopy()
	}
	return all
}

// wantReason fails unless there is a sentence, and one of the reasons that these bundles can have.
func wantReason(t *rapid.T, documents []manifests.Document, options pack.Options, refusals []pack.Refusal) {
	podSets := 0
	for _, d := range documents {
		found, err := admissionrules.PodSets(nil, d.Object)
		if err != nil {
			t.Fatal(err)
		}
		podSets += len(found)
	}
	for _, r := range refusals {
		known := podSets == 0 && strings.Contains(r.Reason, "no object makes pods") ||
			podSets > pack.Limits.PodSets && strings.Contains(r.Reason, "there may be at most 18 pod sets") ||
			options.PodGroup && strings.HasPrefix(r.Reason, "--pod-group would never start: ") ||
			strings.HasPrefix(r.Reason, "metadata.name: Invalid value: ") && (strings.Contains(r.Reason, " would be ") || strings.Contains(r.Reason, "RFC 1123"))
		if !known || strings.ContainsAny(r.String(), "\n") || strings.Contains(r.String(), "%!") {
			t.Fatalf("this is no reason: %v", r)
		}
	}
	if len(refusals) == 0 {
		t.Fatal("there is neither an AppWrapper nor a reason")
	}
}

// wantObjects fails unless an AppWrapper has the objects, but for what the options add.
func wantObjects(t *rapid.T, documents []manifests.Document, options pack.Options, aw *v1beta2.AppWrapper) {
	components := aw.Spec.Components
	if options.PodGroup {
		if group, err := admissionrules.Template(&components[0]); err != nil || group.GetKind() != "PodGroup" {
			t.Fatalf("the first component is a %s: %v", group.GetKind(), err)
		}
		components = components[1:]
	}
	if len(components) != len(documents) {
		t.Fatalf("it has %d components, and not %d", len(components), len(documents))
	}
	for i := range components {
		got, err := admissionrules.Template(&components[i])
		if err != nil {
			t.Fatal(err)
		}
		want := documents[i].Object.DeepCopy()
		added(t, want, options, aw.Name)
		if diff := cmp.Diff(want.Object, got.Object); diff != "" {
			t.Fatalf("component %d differs: %s", i, diff)
		}
	}
}

// added adds to an object what the options say.
func added(t *rapid.T, object *unstructured.Unstructured, options pack.Options, name string) {
	podSets, err := admissionrules.PodSets(nil, object)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range podSets {
		template, err := admissionrules.FindPodTemplate(object, s.Path)
		if err == nil && options.Priority != "" {
			err = unstructured.SetNestedField(template, options.Priority, "spec", "priorityClassName")
		}
		if err == nil && options.PodGroup {
			err = unstructured.SetNestedField(template, name+"-gang", "metadata", "labels", "scheduling.x-k8s.io/pod-group")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// drawValue is anything that JSON can say.
func drawValue(t *rapid.T, depth int) any {
	switch rapid.IntRange(0, 6).Draw(t, "sort") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Int64Range(-2, 1<<40).Draw(t, "number")
	case 3:
		return rapid.SampledFrom([]string{"", "a", "Never", "kueue.x-k8s.io/queue-name"}).Draw(t, "string")
	case 4:
		if depth > 0 {
			return []any{drawValue(t, depth-1)}
		}
	}
	fields := map[string]any{}
	if depth > 0 {
		for _, key := range rapid.SliceOfN(rapid.SampledFrom(fieldNames), 0, 5).Draw(t, "keys") {
			fields[key] = drawValue(t, depth-1)
		}
	}
	return fields
}

var fieldNames = []string{
	"metadata", "spec", "template", "containers", "name", "generateName", "labels", "annotations", "replicas", "parallelism", "replicatedJobs", "dependsOn",
	"ownerReferences", "finalizers", "status", "uid", "creationTimestamp", "suspend", "selector", "runPolicy", "Worker", "pytorchReplicaSpecs", "podSets",
}

// Whatever the fields of an object are, it is packed and admitted, or there is a sentence.
func TestAnyObjectIsPackedOrExplained(t *testing.T) {
	kinds := []schema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"}, {Group: "batch", Version: "v1", Kind: "Job"}, {Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"},
		{Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "PersistentVolumeClaim"}, {Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"},
		{Group: "example.com", Version: "v1", Kind: "Unknown"},
	}
	rapid.Check(t, func(t *rapid.T) {
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": drawValue(t, 3), "spec": drawValue(t, 6)}}
		object.SetGroupVersionKind(rapid.SampledFrom(kinds).Draw(t, "kind"))
		documents := []manifests.Document{{File: "a.yaml", Object: object}}
		packed := pack.Pack(documents, pack.Options{PodGroup: rapid.Bool().Draw(t, "pod group"), Priority: "high"})
		if (packed.AppWrapper == nil) == (len(packed.Refusals) == 0) {
			t.Fatalf("got %v and %v", packed.AppWrapper, packed.Refusals)
		}
		for _, r := range packed.Refusals {
			if r.Reason == "" || strings.Contains(r.String(), "\n") || strings.Contains(r.String(), "%!") {
				t.Fatalf("this is no sentence: %q", r.String())
			}
		}
		if packed.AppWrapper != nil {
			countAdmitted(t, packed.AppWrapper)
		}
	})
}

func TestAPodGroupWaitsForAllPods(t *testing.T) {
	stories := manifestsOfStories(t)
	for kind, late := range map[string]string{"Job": "", "PyTorchJob": "", "RayCluster": "", "LeaderWorkerSet": "", "StatefulSet": "its pods start one after the other", "RayJob": "its submitter starts after its cluster"} {
		packed := pack.Pack([]manifests.Document{{Object: stories[kind]}}, pack.Options{PodGroup: true})
		if late != "" {
			if packed.AppWrapper != nil || !strings.Contains(packed.Refusals[0].Reason, late) {
				t.Errorf("a %s gives %v", kind, packed.Refusals)
			}
			continue
		}
		if packed.AppWrapper == nil {
			t.Fatalf("a %s gives %v", kind, packed.Refusals)
		}
		group, err := admissionrules.Template(&packed.AppWrapper.Spec.Components[0])
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"minMember": int64(podsOf[kind])}
		if diff := cmp.Diff(want, group.Object["spec"]); diff != "" {
			t.Errorf("a %s: %s", kind, diff)
		}
	}
}

// Some objects cannot be in one AppWrapper with others, and none is lost on the way.
func TestThereAreAtMostAsManyObjectsAsAdmissionAllows(t *testing.T) {
	var documents []manifests.Document
	for i := range pack.Limits.Components + 1 {
		documents = append(documents, manifests.Document{File: "a", Object: &unstructured.Unstructured{Object: runtime.DeepCopyJSON(map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p" + strconv.Itoa(i)}, "spec": map[string]any{"containers": []any{map[string]any{"name": "a"}}},
		})}})
	}
	packed := pack.Pack(documents, pack.Options{})
	if len(packed.Refusals) != 1 || packed.Refusals[0].String() != "the AppWrapper would be refused: spec.components: Too many: 65: must have at most 64 items" {
		t.Errorf("got %v", packed.Refusals)
	}
}

// The limit of pod sets is that of the chart, or pack would refuse what the platform takes.
func TestTheLimitsAreThoseOfTheChart(t *testing.T) {
	text, err := os.ReadFile("../../../charts/mlbatch/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^ +podSetLimit: (\d+)$`).FindStringSubmatch(string(text))
	if len(found) != 2 || found[1] != strconv.Itoa(pack.Limits.PodSets) {
		t.Errorf("the chart has %q, and pack %d", found, pack.Limits.PodSets)
	}
}

// Wherever a dump ends, all of it is packed and admitted, or there is a sentence. Only the application
// before it says how many replicas there are.
func TestAnyDumpOfTorchXIsPackedOrExplained(t *testing.T) {
	files, err := filepath.Glob("../testdata/pack/torchx-*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no dumps: %v", err)
	}
	for _, file := range files {
		dump, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		whole := pack.FromTorchX("a", dump, pack.Options{})
		if whole.AppWrapper == nil {
			t.Fatalf("%s: %v", file, whole.Refusals)
		}
		pods := countAdmitted(t, whole.AppWrapper)
		rapid.Check(t, func(t *rapid.T) {
			packed := pack.FromTorchX("a", dump[:rapid.IntRange(0, len(dump)).Draw(t, "length")], pack.Options{})
			if packed.AppWrapper == nil {
				if len(packed.Refusals) == 0 {
					t.Fatal("there is neither an AppWrapper nor a reason")
				}
				return
			}
			if got := countAdmitted(t, packed.AppWrapper); got != pods && strings.Contains(string(dump), "'num_replicas'") {
				t.Fatalf("%d of %d pods are packed", got, pods)
			}
		})
	}
}
