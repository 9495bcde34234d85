// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/troubles"
)

// strangers are objects that say that they are of the Run, and are not.
func strangers() map[string]client.Object {
	all := map[string]client.Object{}
	for name, phase := range map[string]v1beta2.AppWrapperPhase{"failed": v1beta2.AppWrapperFailed, "succeeded": v1beta2.AppWrapperSucceeded} {
		aw := &v1beta2.AppWrapper{ObjectMeta: stranger(theRun.Namespace, name)}
		aw.Status.Phase = phase
		aw.OwnerReferences = []metav1.OwnerReference{{APIVersion: "codeflare.dev/v1alpha1", Kind: "Run", Name: theRun.Name, UID: "uid-of-run"}}
		all["an AppWrapper that has "+name] = aw
	}
	namesake := &v1beta2.AppWrapper{ObjectMeta: stranger("red", theRun.Name)}
	namesake.Status.Phase = v1beta2.AppWrapperFailed
	all["an AppWrapper of another namespace"] = namesake
	for name, meta := range map[string]metav1.ObjectMeta{
		"a pod without an AppWrapper":    stranger(theRun.Namespace, "loner"),
		"a pod of another AppWrapper":    stranger(theRun.Namespace, "posing"),
		"a pod in another namespace":     stranger("red", "elsewhere"),
		"a pod that says it is a broker": stranger(theRun.Namespace, "broker"),
	} {
		pod := &corev1.Pod{ObjectMeta: meta}
		switch name {
		case "a pod of another AppWrapper":
			pod.Labels[v1beta2.AppWrapperLabel] = "failed"
		case "a pod in another namespace":
			pod.Labels[v1beta2.AppWrapperLabel] = theRun.Name
		}
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "broker", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 9, Message: `{"succeeded":7,"failed":0,"message":"a lie"}`},
		}}}
		all[name] = pod
	}
	return all
}

func stranger(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, UID: "uid-of-a-stranger", Labels: map[string]string{
		v1alpha1.RunLabel: theRun.Name, v1alpha1.RoleLabel: "broker", v1alpha1.StepLabel: "train",
	}}
}

// Whoever may label objects of their own does not change a Run, and a Run does not change them.
func TestALabelMakesNothingARuns(t *testing.T) {
	for title, story := range stories {
		if title == "time to live" {
			continue // the Run goes
		}
		t.Run(title, func(t *testing.T) {
			alone := newLife(t, troubles.Reliable(nil), nil)
			alone.tell(story)
			l := newLife(t, troubles.Reliable(nil), nil)
			for _, object := range strangers() {
				l.must(l.api.Create(context.Background(), object))
			}
			l.tell(story)
			if diff := cmp.Diff(alone.place().Status, l.place().Status); diff != "" {
				t.Errorf("strangers change the Run:\n%s", diff)
			}
			if !maps.Equal(alone.told, l.told) {
				t.Errorf("the events are %v, and were %v", l.told, alone.told)
			}
			for what, object := range strangers() {
				l.must(l.api.Get(context.Background(), client.ObjectKeyFromObject(object), object))
				if object.GetResourceVersion() != "1" {
					t.Errorf("%s was changed", what)
				}
			}
		})
	}
}

// A label makes an AppWrapper of the Run's name visible to the controller, and not the Run's.
func TestTheRunDoesNotTakeAnAppWrapperOfItsName(t *testing.T) {
	for _, phase := range []v1beta2.AppWrapperPhase{v1beta2.AppWrapperRunning, v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperFailed} {
		t.Run(string(phase), func(t *testing.T) {
			l := newLife(t, troubles.Reliable(nil), nil)
			aw := &v1beta2.AppWrapper{ObjectMeta: stranger(theRun.Namespace, theRun.Name)}
			aw.Status.Phase = phase
			l.must(l.api.Create(context.Background(), aw))
			l.tell([]func(*life){applies, passing(6 * time.Minute)})
			if got := l.run().Status; got.Phase != v1alpha1.RunPending || got.AppWrapper != nil || !slices.ContainsFunc(got.Conditions, nameTaken) {
				t.Errorf("the status is %+v", got)
			}
			l.tell([]func(*life){cancels, passing(time.Hour)})
			if got := l.run().Status.Phase; got != v1alpha1.RunCancelled || l.appWrapper(theRun.Name) == nil {
				t.Errorf("the Run is %s, and the AppWrapper is there: %t", got, l.appWrapper(theRun.Name) != nil)
			}
		})
	}
}

func nameTaken(c metav1.Condition) bool {
	return c.Type == v1alpha1.Accepted && c.Status == metav1.ConditionFalse && c.Reason == "NameTaken"
}
