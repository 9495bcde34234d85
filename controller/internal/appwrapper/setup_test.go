// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/test/given"
)

func TestPodsWakeTheirAppWrapperWhenTheirPhaseChangesOrTheyGo(t *testing.T) {
	pending, running, going := pod("p", corev1.PodPending), pod("p", corev1.PodRunning), pod("p", corev1.PodRunning)
	now := metav1.Now()
	going.DeletionTimestamp = &now
	prepared := pod("p", corev1.PodPending)
	prepared.Status.StartTime = &now
	changed := podChanged()
	for name, tc := range map[string]struct{ got, want bool }{
		"one that appears is expected":       {changed.Create(event.CreateEvent{Object: pending}), false},
		"one that appears prepared is news":  {changed.Create(event.CreateEvent{Object: prepared}), true},
		"one that appears running is news":   {changed.Create(event.CreateEvent{Object: running}), true},
		"one that appears going is news":     {changed.Create(event.CreateEvent{Object: going}), true},
		"one that stays as it is is no news": {changed.Update(event.UpdateEvent{ObjectOld: running, ObjectNew: running}), false},
		"one that a node prepares is news":   {changed.Update(event.UpdateEvent{ObjectOld: pending, ObjectNew: prepared}), true},
		"one that starts is news":            {changed.Update(event.UpdateEvent{ObjectOld: pending, ObjectNew: running}), true},
		"one that begins to go is news":      {changed.Update(event.UpdateEvent{ObjectOld: running, ObjectNew: going}), true},
		"one that is gone is news":           {changed.Delete(event.DeleteEvent{Object: running}), true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("got %t", tc.got)
			}
		})
	}
	requests := wakeAppWrapperOfPod(t.Context(), running)
	if len(requests) != 1 || requests[0].Namespace != given.Namespace || requests[0].Name != "a" {
		t.Errorf("woke %v", requests)
	}
}

func TestOnlyOurAppWrappersAreHeeded(t *testing.T) {
	mine, theirs := given.AppWrapper("a").Build(), given.AppWrapper("a").ManagedBy("example.com/other").Build()
	if !ours().Generic(event.GenericEvent{Object: mine}) || ours().Generic(event.GenericEvent{Object: theirs}) {
		t.Error("the predicate selects the wrong AppWrappers")
	}
}

func TestCachesHoldOnlyWhatBelongsToAppWrappers(t *testing.T) {
	options, err := CacheOptions(config.Default().AppWrapper)
	if err != nil {
		t.Fatal(err)
	}
	if options.DefaultLabelSelector.String() != v1beta2.AppWrapperLabel {
		t.Errorf("selects %q", options.DefaultLabelSelector)
	}
}
