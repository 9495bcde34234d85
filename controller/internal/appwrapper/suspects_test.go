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
			if said := <-recorder.Events; strings.HasPrefix(said, "Warning FailsUnrelatedWork Pods of 3 AppWrappers were rejected or did not start here lately, at last with PodRejected UnexpectedAdmissionError.") {
				reports++
			}
		}
		if reports != want {
			t.Errorf("after %d others it is reported %d times, want %d", others, reports, want)
		}
	}
}
