// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/recording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// objects are what was read at some time, of a cluster that has chosen other random names.
func objects(at time.Time, random, uid string) explain.Objects {
	created := metav1.NewTime(at.Add(-time.Minute))
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "train-" + random, GenerateName: "train-", Namespace: "blue", UID: types.UID(uid), CreationTimestamp: created, ResourceVersion: random},
		Spec:       corev1.PodSpec{NodeName: "gpu-0", NodeSelector: map[string]string{"pool": "h100"}, Volumes: []corev1.Volume{{Name: "kube-api-access-" + random}}},
		Status:     corev1.PodStatus{PodIP: "10.200.0." + uid[:1], Message: "waits since " + created.UTC().Format(time.RFC3339)},
	}
	about := corev1.ObjectReference{Kind: "Pod", Name: pod.Name, UID: pod.UID}
	of := func(pool, name string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": pool}}}
	}
	elsewhere := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "on-another-node"}, Spec: corev1.PodSpec{NodeName: "gpu-1"}}
	return explain.Objects{
		AppWrapper: &v1beta2.AppWrapper{
			ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "blue", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: random}}},
			Spec:       v1beta2.AppWrapperSpec{Components: []v1beta2.AppWrapperComponent{{Template: runtime.RawExtension{Raw: []byte(`{"kind": "Job"}`)}}}},
		},
		Workload:   &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "appwrapper-train-" + uid[:5], Namespace: "blue"}},
		LocalQueue: &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "blue"}},
		ClusterQueues: []kueue.ClusterQueue{
			{ObjectMeta: metav1.ObjectMeta{Name: "blue"}, Spec: kueue.ClusterQueueSpec{CohortName: "all"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "red"}, Spec: kueue.ClusterQueueSpec{CohortName: "all"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "green"}, Spec: kueue.ClusterQueueSpec{CohortName: "other"}},
		},
		Pods: []corev1.Pod{pod},
		Events: []corev1.Event{
			{InvolvedObject: about, Reason: "Failed", Message: "pod train-" + random + " at 10.200.0." + uid[:1] + " fails"},
			{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "of-another-scene"}},
		},
		Nodes:  []corev1.Node{of("h100", "gpu-0"), of("a100", "gpu-1")},
		Placed: []corev1.Pod{pod, elsewhere},
		Absent: map[string]string{}, Now: at,
	}
}

var (
	first  = objects(time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC), "a1b2c", "11111111-aaaa-bbbb-cccc-222222222222")
	second = objects(time.Date(2027, 9, 9, 9, 9, 9, 0, time.UTC), "zz9zz", "2222222a-eeee-bbbb-cccc-222222222222")
)

func text(t *testing.T, o explain.Objects) string {
	t.Helper()
	made, err := recording.Text("Recorded: today.", o)
	if err != nil {
		t.Fatal(err)
	}
	return string(made)
}

func TestTheSameSceneHasTheSameText(t *testing.T) {
	if x, y := text(t, first), text(t, second); x != y {
		t.Errorf("they differ:\n%s\n%s", x, y)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	written := text(t, first)
	if !strings.HasPrefix(written, "# Recorded: today.\n") {
		t.Errorf("the comment is not the first line of\n%s", written)
	}
	o, err := recording.Read([]byte(written))
	if err != nil {
		t.Fatal(err)
	}
	if got := o.Pods[0].CreationTimestamp.UTC(); got != recording.Now.Add(-time.Minute) {
		t.Errorf("the pod is of %s", got)
	}
	if o.Pods[0].Name != "train-1" || o.Placed[0].Name != "train-1" || o.Workload.Name != "appwrapper-train-1" {
		t.Errorf("the pods are %s and %s, and the Workload %s", o.Pods[0].Name, o.Placed[0].Name, o.Workload.Name)
	}
	if o.Pods[0].Status.Message != "waits since 2026-11-22T10:29:00Z" || o.Pods[0].Spec.NodeName != "gpu-0" {
		t.Errorf("the pod is %+v", o.Pods[0])
	}
	if len(o.Events) != 1 || o.Events[0].InvolvedObject.UID != o.Pods[0].UID || o.Events[0].Message != "pod train-1 at 10.0.0.1 fails" {
		t.Errorf("the events are %+v", o.Events)
	}
	queues := slices.Collect(func(yield func(string) bool) {
		for _, q := range o.ClusterQueues {
			yield(q.Name)
		}
	})
	if !slices.Equal(queues, []string{"blue", "red"}) {
		t.Errorf("the queues are %v", queues)
	}
}

// What explain does not read is not kept, such as the program of the work.
func TestWhatIsNotReadIsNotWritten(t *testing.T) {
	written := text(t, first)
	for _, word := range []string{"managedFields", "resourceVersion", "podIP", "volumes", "kind: Job", "a1b2c", "of-another-scene", "green", "gpu-1", "on-another-node"} {
		if strings.Contains(written, word) {
			t.Errorf("the text has %s:\n%s", word, written)
		}
	}
}

// That no pod is on a node is something else than that nobody knows.
func TestNoPodOnANodeIsWritten(t *testing.T) {
	for _, placed := range [][]corev1.Pod{nil, {}} {
		written := text(t, explain.Objects{Absent: map[string]string{"Pod": "of AppWrapper train"}, Placed: placed})
		o, err := recording.Read([]byte(written))
		if err != nil || (o.Placed == nil) != (placed == nil) {
			t.Errorf("of %#v remains %#v: %v in\n%s", placed, o.Placed, err, written)
		}
	}
}

func TestAnUnknownFieldIsAnError(t *testing.T) {
	if _, err := recording.Read([]byte("kind: Pod\nmetadata: {nam: a}\n")); err == nil {
		t.Error("a misspelt field is read")
	}
}
