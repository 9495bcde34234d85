// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
)

// failedOnNode adds AppWrappers that remember until then that a node rejected their pods.
func (w *world) failedOnNode(n int, node string, until time.Time) {
	w.Helper()
	for i := range n {
		aw := given.AppWrapper(fmt.Sprintf("other-%d", i)).With(given.Job("j", 1)).Build()
		w.add(aw)
		aw.Status.AvoidedNodes = []v1beta2.AvoidedNode{{Name: node, Cause: "PodRejected UnexpectedAdmissionError", Until: metav1.Time{Time: until}}}
		if err := w.api.Status().Update(w.Context(), aw); err != nil {
			w.Fatal(err)
		}
	}
}

// What others met with a node makes it the last choice of an AppWrapper that knows nothing of it.
func TestNodesThatFailUnrelatedWorkAreTheLastChoice(t *testing.T) {
	for sentence, tc := range map[string]struct {
		others int
		over   bool
		author string
		want   bool
	}{
		"a node that failed three others": {others: 3, want: true},
		"not one that failed two":         {others: 2},
		"not one that failed them before": {others: 3, over: true},
		"not if the author wants no such": {others: 3, author: "false"},
	} {
		t.Run(sentence, func(t *testing.T) {
			aw := given.AppWrapper("a").Unsuspended().WithFinalizer().With(given.Job("train", 1)).Build()
			if tc.author != "" {
				aw.Annotations = map[string]string{v1beta2.AvoidNodesAnnotation: tc.author}
			}
			w := newWorld(t, aw)
			w.reconciler.rules = theRules
			until := w.now.Add(time.Hour)
			if tc.over {
				until = w.now.Add(-time.Second)
			}
			w.failedOnNode(tc.others, "n", until)
			w.settle()
			w.expectPhase(v1beta2.AppWrapperRunning)
			job := &unstructured.Unstructured{}
			job.SetGroupVersionKind(jobKind)
			if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: given.Namespace, Name: "train"}, job); err != nil {
				t.Fatal(err)
			}
			got, found, _ := unstructured.NestedSlice(job.Object, "spec", "template", "spec", "affinity", "nodeAffinity",
				"preferredDuringSchedulingIgnoredDuringExecution")
			if found != tc.want {
				t.Fatalf("it prefers %v", got)
			}
			not := map[string]any{"key": "metadata.name", "operator": "NotIn", "values": []any{"n"}}
			if diff := cmp.Diff([]any{map[string]any{"weight": int64(100), "preference": map[string]any{"matchFields": []any{not}}}}, got); tc.want && diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The third AppWrapper that a node fails has it reported, on the node itself.
func TestANodeThatFailsUnrelatedWorkIsReported(t *testing.T) {
	for others, want := range map[int]int{1: 0, 2: 1} {
		aw := given.AppWrapper("a").Unsuspended().WithFinalizer().With(given.Job("train", 1)).Build()
		w := newWorld(t, aw, gpuNode("n", "OK"))
		w.reconciler.rules = theRules
		w.failedOnNode(others, "n", w.now.Add(time.Hour))
		w.settle()
		p := pod("train-0", corev1.PodFailed)
		p.Spec.NodeName, p.Status.Reason = "n", "UnexpectedAdmissionError"
		w.add(slimBy(w.reconciler.rules, p))
		w.setJobCondition("train", "Failed")
		recorder := events.NewFakeRecorder(100)
		w.reconciler.recorder = recorder
		w.settle()
		if want > 0 {
			expectSample(t, w, `appwrapper_suspect_node_reports_total{cause="PodRejected"} 1`)
		}
		reports := 0
		for len(recorder.Events) > 0 {
			if said := <-recorder.Events; strings.HasPrefix(said, "Warning FailsUnrelatedWork Pods of 3 AppWrappers were rejected or did not start here lately, or failed here only, at last with PodRejected UnexpectedAdmissionError.") {
				reports++
			}
		}
		if reports != want {
			t.Errorf("after %d others it is reported %d times, want %d", others, reports, want)
		}
	}
}

// programsFailed adds AppWrappers of these teams whose programs failed on the node, and that
// succeeded elsewhere.
func (w *world) programsFailed(node string, teams ...string) {
	w.Helper()
	for i, team := range teams {
		aw := given.AppWrapper(fmt.Sprintf("failed-%d", i)).With(given.Job("j", 1)).Build()
		aw.Namespace, aw.UID = team, types.UID(fmt.Sprintf("failed-%d", i))
		w.add(aw)
		aw.Status.Phase = v1beta2.AppWrapperSucceeded
		aw.Status.FailedNode = &v1beta2.FailedNode{Name: node, Cause: "PodFailed exit-1", Until: metav1.Time{Time: w.now.Add(time.Hour)}}
		if err := w.api.Status().Update(w.Context(), aw); err != nil {
			w.Fatal(err)
		}
	}
}

// failsOn lets the program of the AppWrapper fail on a node, and runs it on another one in the next attempt.
func (w *world) failsOn(node, then string) {
	w.Helper()
	attempt := func(node string, phase corev1.PodPhase) {
		p := gpuPod("train-on-"+node, node, phase)
		p.UID, p.Status.StartTime = types.UID(p.Name), &metav1.Time{Time: w.now}
		if phase == corev1.PodFailed {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}
		}
		w.add(p)
	}
	attempt(node, corev1.PodFailed)
	w.setJobCondition("train", "Failed")
	w.settle()
	w.expectPhase(v1beta2.AppWrapperResetting)
	if err := w.api.DeleteAllOf(w.Context(), &corev1.Pod{}, client.InNamespace(given.Namespace)); err != nil {
		w.Fatal(err)
	}
	w.settle()
	w.now = w.now.Add(time.Hour / 4)
	w.settle()
	attempt(then, corev1.PodRunning)
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
}

// A node on which programs of two teams fail that do well elsewhere is reported once, when the third
// has run there for long enough.
func TestANodeOnWhichProgramsFailIsReported(t *testing.T) {
	for sentence, tc := range map[string]struct {
		teams []string
		then  string
		want  int
	}{
		"programs of two teams":                {[]string{"blue", "red"}, "other", 1},
		"not of one":                           {[]string{given.Namespace, given.Namespace}, "other", 0},
		"not if the third works there as well": {[]string{"blue", "red"}, "n", 0},
		"not if too few failed":                {[]string{"blue"}, "other", 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, given.AppWrapper("a").Unsuspended().WithFinalizer().With(given.Job("train", 1)).Build(), gpuNode("n", "OK"), gpuNode("other", "OK"))
			w.reconciler.rules = theRules
			w.programsFailed("n", tc.teams...)
			recorder := events.NewFakeRecorder(100)
			w.reconciler.recorder = recorder
			w.settle()
			w.failsOn("n", tc.then)
			prefersOther(t, w)
			if reports := reportsOf(recorder); reports != 0 {
				t.Errorf("it is reported %d times before anything is proven", reports)
			}
			writes := len(w.writes)
			w.now = w.now.Add(max(w.reconcile().RequeueAfter, time.Minute))
			w.reconcile()
			w.reconcile()
			if got := w.writes[writes:]; len(got) > 0 {
				t.Errorf("the proof costs writes: %v", got)
			}
			if reports := reportsOf(recorder); reports != tc.want {
				t.Errorf("it is reported %d times, want %d", reports, tc.want)
			}
			if tc.want > 0 {
				expectSample(t, w, `appwrapper_suspect_node_reports_total{cause="PodFailed"} 1`)
			}
		})
	}
}

// prefersOther: the next attempt prefers other nodes than the one on which the program failed.
func prefersOther(t *testing.T, w *world) {
	t.Helper()
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(jobKind)
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: given.Namespace, Name: "train"}, job); err != nil {
		t.Fatal(err)
	}
	got, _, _ := unstructured.NestedSlice(job.Object, "spec", "template", "spec", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
	not := map[string]any{"key": "metadata.name", "operator": "NotIn", "values": []any{"n"}}
	if diff := cmp.Diff([]any{map[string]any{"weight": int64(100), "preference": map[string]any{"matchFields": []any{not}}}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func reportsOf(recorder *events.FakeRecorder) (reports int) {
	for len(recorder.Events) > 0 {
		if said := <-recorder.Events; strings.HasPrefix(said, "Warning FailsUnrelatedWork Pods of 3 AppWrappers") && strings.Contains(said, "at last with PodFailed exit-1.") {
			reports++
		}
	}
	return reports
}
