// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/golden"
)

// reading is what a kind finds in one resource of the golden files.
type reading struct {
	PodSets []v1beta2.AppWrapperPodSet `json:"podSets,omitempty"`
	Declare bool                       `json:"declare,omitempty"`
	Verdict Verdict                    `json:"verdict,omitempty"`
	Final   string                     `json:"final,omitempty"`
	Turns   map[string]Turn            `json:"turns,omitempty"`
	Ends    map[string]Ends            `json:"ends,omitempty"`
	Ended   *Ended                     `json:"ended,omitempty"`
	Error   string                     `json:"error,omitempty"`
}

func TestKindsReadTheirResources(t *testing.T) {
	golden.Pairs(t, "testdata", func(t *testing.T, in []byte) []byte {
		var resources map[string]map[string]any
		if err := yaml.UnmarshalStrict(in, &resources); err != nil {
			t.Fatal(err)
		}
		readings := make(map[string]reading, len(resources))
		for sentence, content := range resources {
			readings[sentence] = read(&unstructured.Unstructured{Object: content})
		}
		out, err := yaml.Marshal(readings)
		if err != nil {
			t.Fatal(err)
		}
		return out
	})
}

func read(object *unstructured.Unstructured) reading {
	kind := For(object.GroupVersionKind())
	podSets, err := kind.InferPodSets(object)
	if err != nil {
		return reading{Error: err.Error()}
	}
	found := reading{PodSets: podSets, Declare: kind.MustDeclare(object), Verdict: kind.Verdict(object), Final: kind.Final(object), Turns: kind.Turns(object), Ends: kind.Ends(object)}
	if ended := kind.Ended(object); !reflect.DeepEqual(ended, Ended{}) {
		found.Ended = &ended
	}
	return found
}

func TestEveryKindIsKnownOnce(t *testing.T) {
	seen := map[schema.GroupVersionKind]bool{}
	for _, k := range known {
		if seen[k.GVK] {
			t.Errorf("%s is listed twice", k.GVK)
		}
		seen[k.GVK] = true
	}
}

// The training operator makes one pod for a role of none, in all its kinds except for MPIJob.
func TestNoKubeflowJobHasARoleOfNoPods(t *testing.T) {
	for kind, field := range map[string]string{
		"PyTorchJob": "pytorchReplicaSpecs", "TFJob": "tfReplicaSpecs", "XGBoostJob": "xgbReplicaSpecs",
		"PaddleJob": "paddleReplicaSpecs", "JAXJob": "jaxReplicaSpecs",
	} {
		for replicas, refused := range map[int64]bool{-1: true, 0: true, 1: false} {
			role := map[string]any{"replicas": replicas, "template": map[string]any{}}
			object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{field: map[string]any{"Worker": role}}}}
			err := For(schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: kind}).Uncounted(object)
			if (err != nil) != refused || refused && !strings.Contains(err.Error(), "leave out the role Worker") {
				t.Errorf("%s with %d workers: %v", kind, replicas, err)
			}
		}
	}
}

// KubeRay creates the cluster of the next attempt before the pods of the last one have ended.
func TestAttemptsOfARayJobDoNotOverlap(t *testing.T) {
	for spec, refused := range map[string]bool{
		"{backoffLimit: 1, rayClusterSpec: {headGroupSpec: {template: {spec: {terminationGracePeriodSeconds: 31}}}}}":                         true,
		"{backoffLimit: 1, rayClusterSpec: {headGroupSpec: {}, workerGroupSpecs: [{template: {spec: {terminationGracePeriodSeconds: 31}}}]}}": true,
		"{backoffLimit: 1, rayClusterSpec: {headGroupSpec: {template: {spec: {terminationGracePeriodSeconds: 30}}}}}":                         false,
		"{backoffLimit: 1, rayClusterSpec: {}}": false,
		"{backoffLimit: 0, rayClusterSpec: {headGroupSpec: {template: {spec: {terminationGracePeriodSeconds: 31}}}}}": false,
	} {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte("{apiVersion: ray.io/v1, kind: RayJob, spec: "+spec+"}"), &object.Object); err != nil {
			t.Fatal(err)
		}
		if err := For(object.GroupVersionKind()).Uncounted(&object); (err != nil) != refused {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func TestPodSets(t *testing.T) {
	job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{}}}
	declared := []v1beta2.AppWrapperPodSet{{Path: "template.spec.template", Replicas: new(int32(7))}}
	cases := map[string]struct {
		declared []v1beta2.AppWrapperPodSet
		want     int32
	}{
		"declared pod sets take precedence":           {declared: declared, want: 7},
		"without declared pod sets they are inferred": {want: 1},
		"an empty declaration is inferred":            {declared: []v1beta2.AppWrapperPodSet{}, want: 1},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			got, err := PodSets(c.declared, job)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 1 || got[0].Count() != c.want {
				t.Errorf("got %v, want one pod set of %d", got, c.want)
			}
		})
	}
}

func TestCheckDeclared(t *testing.T) {
	set := func(path string, replicas int32) v1beta2.AppWrapperPodSet {
		return v1beta2.AppWrapperPodSet{Path: path, Replicas: &replicas}
	}
	type sets = []v1beta2.AppWrapperPodSet
	cases := map[string]struct {
		declared, inferred sets
		want               string
	}{
		"no declaration is right":                            {inferred: sets{set("a", 1)}},
		"without inferred pod sets any declaration is right": {declared: sets{set("a", 3)}},
		"the same in another order is right":                 {declared: sets{set("b", 2), set("a", 1)}, inferred: sets{set("a", 1), set("b", 2)}},
		"no replicas is one replica":                         {declared: sets{{Path: "a"}}, inferred: sets{set("a", 1)}},
		"a path twice is wrong":                              {declared: sets{set("a", 1), set("a", 1)}, want: `two pod sets have the path "a"`},
		"a path twice is wrong for any kind":                 {declared: sets{set("a", 1), set("a", 1)}, inferred: sets{set("a", 1), set("b", 1)}, want: `two pod sets have the path "a"`},
		"too few are wrong":                                  {declared: sets{set("a", 1)}, inferred: sets{set("a", 1), set("b", 1)}, want: "1 pod sets are declared but the template has 2"},
		"another path is wrong":                              {declared: sets{set("c", 1)}, inferred: sets{set("a", 1)}, want: `the pod set at "a" is not declared`},
		"another number is wrong":                            {declared: sets{set("a", 2)}, inferred: sets{set("a", 1)}, want: `the pod set at "a" is declared with 2 replicas but the template has 1`},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			got := ""
			if err := CheckDeclared(c.declared, c.inferred); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestObjectName(t *testing.T) {
	object := func(metadata map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
	}
	generated := object(map[string]any{"generateName": "train-"})
	long := object(map[string]any{"generateName": "a-very-long-name-that-leaves-no-room-for-a-suffix-in-a-dns-label-"})
	cases := map[string]struct {
		template *unstructured.Unstructured
		owner    string
		index    int
		want     string
	}{
		"a name is kept": {template: object(map[string]any{"name": "a", "generateName": "b-"}), want: "a"},
		"neither name nor generateName gives none": {template: object(map[string]any{}), want: ""},
		"a generated name depends on the owner":    {template: generated, owner: "u1", want: "train-705176644c"},
		"and on another owner":                     {template: generated, owner: "u2", want: "train-f252af4765"},
		"and on the index":                         {template: generated, owner: "u1", index: 1, want: "train-321e0d2591"},
		"it fits a DNS label":                      {template: long, owner: "u1", want: "a-very-long-name-that-leaves-no-room-for-a-suffix-in-705176644c"},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			got := ObjectName(c.template, types.UID(c.owner), c.index)
			if got != c.want {
				t.Errorf("got %q (%d characters), want %q", got, len(got), c.want)
			}
		})
	}
}

// What is left of work whose success is final is not asked for again. Whoever adds a kind here must know that its
// controller makes no pods afterwards, whatever happens to the resource or to its pods.
func TestTheSuccessOfAJobIsFinal(t *testing.T) {
	for _, k := range known {
		if want := k.GVK == job.GVK || k.MakesNoPods(); k.SuccessIsFinal() != want {
			t.Errorf("%s: %t", k.GVK, !want)
		}
	}
	if For(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Job"}).SuccessIsFinal() {
		t.Error("that of a kind nobody knows is final")
	}
}

// As in the Job controller: https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-backoff-failure-policy
func TestJobsPauseBeforeTheyReplaceAPod(t *testing.T) {
	for failed, want := range map[int]time.Duration{0: 0, 1: 10 * time.Second, 2: 20 * time.Second, 4: 80 * time.Second, 7: 10 * time.Minute, 1000: 10 * time.Minute} {
		if got := job.Pause(failed); got != want {
			t.Errorf("after %d failed pods: %s, want %s", failed, got, want)
		}
	}
	if pyTorchJob.Pause(3) != 0 {
		t.Error("the training operator does not pause")
	}
}

// The fixtures are compared with a type that lacks this field of the MPI operator.
func TestALauncherMayWaitForItsWorkers(t *testing.T) {
	job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"launcherCreationPolicy": "WaitForWorkersReady"}}}
	if got := mpiJobV2.Turns(job)["template.spec.mpiReplicaSpecs.Launcher.template"]; got != OneByOne {
		t.Errorf("it comes %q", got)
	}
}
