// SPDX-License-Identifier: Apache-2.0

package runlife_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

const (
	wellSaid = `{"succeeded":200,"failed":0}`
	gaveUp   = `{"succeeded":197,"failed":3,"message":"3 of 200 tasks have failed for good, and queue.maxFailed is 0: a, b, c"}`
)

// hasQueue makes the Run one of tasks.
func (w *world) hasQueue() {
	w.run.Spec.Queue = &v1alpha1.RunQueue{DataSet: v1alpha1.DataSetReference{Name: "tasks"}}
	w.run.Annotations[v1alpha1.AuthorMayAnnotation] += ",services"
}

// application is one that the Run can have.
func (w *world) application() *v1alpha1.Application {
	app := application()
	if w.run != nil && w.run.Spec.Queue != nil {
		app.Spec.API = v1alpha1.APIWorkQueue
	}
	return app
}

// brokerPod is a pod of the broker that has ended.
func brokerPod(name string, code int32, says string, at time.Time) corev1.Pod {
	pod := failedPod(name, code, says, at)
	pod.Status.ContainerStatuses[0].Name = "broker"
	if code == 0 {
		pod.Status.Phase = corev1.PodSucceeded
	}
	return pod
}

func (w *world) brokerFails() {
	w.pods = append(w.pods, brokerPod("digits-1.broker-early", 137, "", w.now))
	w.change("is unhealthy", func(aw *v1beta2.AppWrapper) {
		w.condition(aw, v1beta2.Unhealthy, metav1.ConditionTrue, "FoundFailedPods")
	})
	w.change("is healthy", func(aw *v1beta2.AppWrapper) {
		w.condition(aw, v1beta2.Unhealthy, metav1.ConditionFalse, "Healthy")
	})
}

func (w *world) brokerGivesUp() {
	w.pods = append(w.pods, brokerPod("digits-1.broker-abcde", 65, gaveUp, w.now))
}

// brokerEnds is noticed by the AppWrapper while it runs.
func (w *world) brokerEnds() {
	if w.aw == nil || w.run == nil || w.run.Spec.Queue == nil || w.aw.Status.Phase != v1beta2.AppWrapperRunning {
		return
	}
	w.pods = append(w.pods, brokerPod("digits-1.broker-vwxyz", 0, wellSaid, w.now))
	w.change("has a broker that succeeded", func(aw *v1beta2.AppWrapper) {
		if len(aw.Status.ComponentStatus) > 0 {
			return
		}
		w.brokerEnded = w.now
		aw.Status.ComponentStatus = []v1beta2.AppWrapperComponentStatus{{Name: "digits-1.broker", Conditions: []metav1.Condition{{
			Type: string(v1beta2.ComponentSucceeded), Status: metav1.ConditionTrue, LastTransitionTime: metav1.Time{Time: w.now},
		}}}}
	})
}

// The last of the brokers that came to the end of the queue says the counts.
func TestTheCountsOfAQueue(t *testing.T) {
	for sentence, row := range map[string]struct {
		pods []corev1.Pod
		want *v1alpha1.QueueStatus
	}{
		"a broker that succeeded":         {[]corev1.Pod{brokerPod("a", 0, wellSaid, born)}, &v1alpha1.QueueStatus{Succeeded: 200}},
		"after one that was killed":       {[]corev1.Pod{brokerPod("a", 137, "", born), brokerPod("b", 0, wellSaid, born)}, &v1alpha1.QueueStatus{Succeeded: 200}},
		"before one that ended later":     {[]corev1.Pod{brokerPod("a", 0, wellSaid, born.Add(time.Hour)), brokerPod("b", 65, gaveUp, born)}, &v1alpha1.QueueStatus{Succeeded: 200}},
		"some were given up":              {[]corev1.Pod{brokerPod("a", 0, gaveUp, born)}, &v1alpha1.QueueStatus{Succeeded: 197, Failed: 3}},
		"the words of a worker":           {[]corev1.Pod{failedPod("a", 1, wellSaid, born)}, nil},
		"what are no counts":              {[]corev1.Pod{brokerPod("a", 65, "the disk is full", born)}, nil},
		"something else in JSON":          {[]corev1.Pod{brokerPod("a", 0, `{"a":1}`, born)}, nil},
		"fewer than none":                 {[]corev1.Pod{brokerPod("a", 0, `{"succeeded":-1}`, born)}, nil},
		"more than there can be":          {[]corev1.Pod{brokerPod("a", 0, `{"succeeded":100001}`, born)}, nil},
		"a pod that is gone":              {nil, nil},
		"a broker that has not ended yet": {[]corev1.Pod{{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "broker"}}}}}, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld()
			w.hasQueue()
			runs(w)
			w.pods = row.pods
			w.moves(v1beta2.AppWrapperSucceeded)
			if diff := cmp.Diff(row.want, w.run.Status.Queue); diff != "" || w.run.Status.Phase != v1alpha1.RunSucceeded || w.lists != 1 {
				t.Errorf("it is %s after %d lists of pods (-want +got)\n%s", w.run.Status.Phase, w.lists, diff)
			}
		})
	}
}

func TestOnlyAQueueThatRunsIsLeftBehind(t *testing.T) {
	for _, phase := range []v1beta2.AppWrapperPhase{v1beta2.AppWrapperResetting, v1beta2.AppWrapperSuspending, v1beta2.AppWrapperRunning} {
		w := newWorld()
		w.hasQueue()
		runs(w)
		w.brokerEnds()
		w.moves(phase)
		w.pass(time.Hour)
		if ended := w.run.Status.Phase.Terminal(); ended != (phase == v1beta2.AppWrapperRunning) {
			t.Errorf("while the AppWrapper is %s, the Run ended: %t", phase, ended)
		}
	}
}

// Whoever cancels before the two minutes are over has cancelled.
func TestACancelWhileWorkersEnd(t *testing.T) {
	w := newWorld()
	w.hasQueue()
	runs(w)
	w.brokerEnds()
	w.pass(time.Minute)
	w.cancels()
	w.pass(time.Hour)
	if w.run.Status.Phase != v1alpha1.RunCancelled {
		t.Errorf("it is %s", w.run.Status.Phase)
	}
}

// A broker that gave up says why, whoever failed before.
func TestTheFailureOfAQueueIsTheBrokers(t *testing.T) {
	for says, want := range map[string]string{
		gaveUp:             "3 of 200 tasks have failed for good, and queue.maxFailed is 0: a, b, c",
		"the disk is full": "the disk is full",
	} {
		w := newWorld()
		w.hasQueue()
		runs(w)
		w.pods = []corev1.Pod{failedPod("digits-1-abcde", 1, "evicted", born), brokerPod("a", 65, says, w.now), brokerPod("b", 137, "", born)}
		w.moves(v1beta2.AppWrapperFailed)
		if f := w.run.Status.LastFailure; f == nil || f.Message != want || f.Pod != "a" {
			t.Errorf("the failure is %+v", f)
		}
	}
}
