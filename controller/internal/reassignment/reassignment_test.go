// SPDX-License-Identifier: Apache-2.0

package reassignment_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
	"github.com/mlbatch/mlbatch/controller/internal/reassignment"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

const (
	health = "autopilot.ibm.com/gpuhealth"
	gpu    = "nvidia.com/gpu"
)

var byLabel = podtemplate.Avoidance{Taints: map[string][]corev1.Taint{gpu: {{Key: health, Value: "EVICT", Effect: corev1.TaintEffectNoExecute}}}}

// avoided are nodes, each for this long.
func avoided(d time.Duration, names ...string) []v1beta2.AvoidedNode {
	var nodes []v1beta2.AvoidedNode
	for _, name := range names {
		nodes = append(nodes, v1beta2.AvoidedNode{Name: name, Cause: "PodRejected OutOfcpu", Until: metav1.NewTime(now.Add(d))})
	}
	return nodes
}

type change func(*kueue.Workload)

// admitted is a Workload with quota and two pod sets, of which the first has devices and its author's affinity.
func admitted(changes ...change) *unstructured.Unstructured {
	w := &kueue.Workload{}
	devices := corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: resource.MustParse("8")}}
	ssd := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}}}
	w.Spec.PodSets = []kueue.PodSet{
		{Name: "a-0", Count: 4, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Resources: devices}},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{ssd},
			}}},
		}}},
		{Name: "a-1", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}},
	}
	with(kueue.WorkloadQuotaReserved)(w)
	for _, c := range changes {
		c(w)
	}
	return encoded(w)
}

func with(kind string) change {
	return func(w *kueue.Workload) {
		meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Any"})
	}
}

func inactive(w *kueue.Workload) { w.Spec.Active = new(false) }

// taken: Kueue has suspended the work and taken its quota back.
func taken(w *kueue.Workload) {
	with(kueue.WorkloadEvicted)(w)
	meta.RemoveStatusCondition(&w.Status.Conditions, kueue.WorkloadQuotaReserved)
}

func encoded(w *kueue.Workload) *unstructured.Unstructured {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w)
	if err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: object}
}

func decoded(t *testing.T, w *unstructured.Unstructured) *kueue.Workload {
	t.Helper()
	known := &kueue.Workload{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(w.Object, known); err != nil {
		t.Fatal(err)
	}
	return known
}

// after makes a change in what is stored.
func after(t *testing.T, w *unstructured.Unstructured, c change) *unstructured.Unstructured {
	t.Helper()
	known := decoded(t, w)
	c(known)
	return encoded(known)
}

func request(t *testing.T, w *unstructured.Unstructured, nodes []v1beta2.AvoidedNode) bool {
	t.Helper()
	changed, err := reassignment.Request(w, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func proceed(t *testing.T, w *unstructured.Unstructured, at time.Time) bool {
	t.Helper()
	changed, err := reassignment.Proceed(w, byLabel, at)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// excluded are those of some nodes that Kueue would not assign to a pod set: one that is labelled, and three others.
func excluded(t *testing.T, w *unstructured.Unstructured, podSet int) []string {
	t.Helper()
	required := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: decoded(t, w).Spec.PodSets[podSet].Template.Spec})
	var names []string
	for _, name := range []string{"labelled", "x", "y", "z"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": "ssd"}}}
		if name == "labelled" {
			node.Labels[health] = "EVICT"
		}
		if fits, err := required.Match(node); err != nil {
			t.Fatal(err)
		} else if !fits {
			names = append(names, name)
		}
	}
	return names
}

func TestOnlyQuotaThatIsThereIsRequested(t *testing.T) {
	for sentence, tc := range map[string]struct {
		w    *unstructured.Unstructured
		want bool
	}{
		"of work that has quota":              {admitted(), true},
		"not of work that waits":              {admitted(taken), false},
		"not of work that has finished":       {admitted(with(kueue.WorkloadFinished)), false},
		"not of work that others deactivated": {admitted(inactive), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			before := tc.w.DeepCopy()
			if got := request(t, tc.w, nil); got != tc.want {
				t.Errorf("it is %t, want %t", got, tc.want)
			}
			if !tc.want {
				if diff := cmp.Diff(before, tc.w); diff != "" {
					t.Errorf("it is changed (-before +after):\n%s", diff)
				}
				return
			}
			if w := decoded(t, tc.w); *w.Spec.Active || reassignment.Slim(w) == nil {
				t.Errorf("active %t, with %v", *w.Spec.Active, reassignment.Slim(w))
			}
			if request(t, tc.w, nil) {
				t.Error("it is requested twice")
			}
		})
	}
}

// The life of a Workload: it leaves x and y, waits too long, is preempted, and leaves z.
func TestNodesAreExcludedAndForgotten(t *testing.T) {
	w := admitted()
	request(t, w, avoided(time.Hour, "x", "y"))
	if proceed(t, w, now) {
		t.Error("pod sets are changed while there is quota")
	}
	w = after(t, w, taken)
	if !proceed(t, w, now) || !*decoded(t, w).Spec.Active {
		t.Fatal("it is not activated")
	}
	for podSet, want := range [][]string{{"labelled", "x", "y"}, {"x", "y"}} {
		if diff := cmp.Diff(want, excluded(t, w, podSet)); diff != "" {
			t.Errorf("pod set %d (-want +got):\n%s", podSet, diff)
		}
	}
	if diff := cmp.Diff(decoded(t, admitted()).Spec.PodSets[0].Template.Spec.Containers, decoded(t, w).Spec.PodSets[0].Template.Spec.Containers); diff != "" {
		t.Errorf("more than the affinity is changed (-want +got):\n%s", diff)
	}
	if proceed(t, w, now.Add(time.Hour-time.Second)) {
		t.Error("nodes are forgotten early")
	}
	running := after(t, w, with(kueue.WorkloadQuotaReserved))
	if proceed(t, running, now.Add(2*time.Hour)) {
		t.Error("pod sets are changed while there is quota again")
	}
	if next := reassignment.Next(decoded(t, w), now); !next.Equal(now.Add(time.Hour)) {
		t.Errorf("the next look is at %s", next)
	}
	if !proceed(t, w, now.Add(time.Hour)) {
		t.Error("nodes are not forgotten")
	}
	for podSet, want := range [][]string{{"labelled"}, nil} {
		if diff := cmp.Diff(want, excluded(t, w, podSet)); diff != "" {
			t.Errorf("an hour later, pod set %d (-want +got):\n%s", podSet, diff)
		}
	}
	if next := reassignment.Next(decoded(t, w), now.Add(time.Hour)); !next.IsZero() {
		t.Errorf("there is still something to do at %s", next)
	}
	request(t, running, avoided(2*time.Hour, "z"))
	running = after(t, running, taken)
	proceed(t, running, now.Add(time.Minute))
	if diff := cmp.Diff([]string{"labelled", "z"}, excluded(t, running, 0)); diff != "" {
		t.Errorf("after the next nodes were left (-want +got):\n%s", diff)
	}
}

// What others have deactivated stays so.
func TestOnlyOurOwnWorkloadsAreActivated(t *testing.T) {
	for sentence, w := range map[string]*unstructured.Unstructured{
		"deactivated by a user":                  admitted(inactive, taken),
		"never deactivated":                      admitted(taken),
		"requested, and running":                 admitted(ours),
		"requested, and evicted, with its quota": admitted(ours, with(kueue.WorkloadEvicted)),
		"requested, and finished":                admitted(ours, taken, with(kueue.WorkloadFinished)),
	} {
		t.Run(sentence, func(t *testing.T) {
			before := w.DeepCopy()
			if proceed(t, w, now) {
				t.Error("it is changed")
			}
			if diff := cmp.Diff(before, w); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

// A request ends when somebody else has decided about the Workload. Else it would undo what a person deactivates later.
func TestARequestEndsWhenOthersDecide(t *testing.T) {
	activated := func(w *kueue.Workload) { w.Spec.Active = new(true) }
	idle := func(w *kueue.Workload) {
		meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted).Reason = kueue.WorkloadDeactivated + "DueToIdle"
	}
	for sentence, w := range map[string]*unstructured.Unstructured{
		"activated while it has quota":                     admitted(ours, activated),
		"activated without quota":                          admitted(ours, taken, activated),
		"deactivated for another reason":                   admitted(ours, taken, idle),
		"deactivated for another reason, with quota still": admitted(ours, with(kueue.WorkloadEvicted), idle),
	} {
		t.Run(sentence, func(t *testing.T) {
			want := decoded(t, w)
			want.Annotations = nil
			if !proceed(t, w, now) {
				t.Fatal("the request stays")
			}
			got := decoded(t, w)
			if len(got.Annotations) == 0 {
				got.Annotations = nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if deactivated := after(t, w, inactive); proceed(t, after(t, deactivated, taken), now) {
				t.Error("what a person deactivates later is changed")
			}
		})
	}
}

func ours(w *kueue.Workload) {
	inactive(w)
	w.Annotations = map[string]string{v1beta2.ReassignAnnotation: "[]"}
}

// Fields that these types do not know are kept.
func TestFieldsOfANewerKueueAreKept(t *testing.T) {
	w := admitted(ours, taken)
	podSets, _, _ := unstructured.NestedSlice(w.Object, "spec", "podSets")
	first, _ := podSets[0].(map[string]any)
	first["newer"] = "kept"
	if err := unstructured.SetNestedSlice(w.Object, podSets, "spec", "podSets"); err != nil {
		t.Fatal(err)
	}
	proceed(t, w, now)
	podSets, _, _ = unstructured.NestedSlice(w.Object, "spec", "podSets")
	if first, _ = podSets[0].(map[string]any); first["newer"] != "kept" {
		t.Errorf("the pod set is %v", first)
	}
}
