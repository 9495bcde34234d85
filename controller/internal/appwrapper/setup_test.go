// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/test/given"
)

func TestTheConfigurationsDefaultsAreTheLifecycles(t *testing.T) {
	got := defaults(config.Default().AppWrapper.FaultTolerance)
	if diff := cmp.Diff(lifecycle.StandardDefaults(), got); diff != "" {
		t.Errorf("(-lifecycle +config)\n%s", diff)
	}
}

func TestPodsWakeTheirAppWrapperWhenTheirPhaseChangesOrTheyGo(t *testing.T) {
	pending, running, going := pod("p", corev1.PodPending), pod("p", corev1.PodRunning), pod("p", corev1.PodRunning)
	now := metav1.Now()
	going.DeletionTimestamp = &now
	news := podNews()
	for name, tc := range map[string]struct{ got, want bool }{
		"one that appears is expected":       {news.Create(event.CreateEvent{Object: pending}), false},
		"one that appears running is news":   {news.Create(event.CreateEvent{Object: running}), true},
		"one that appears going is news":     {news.Create(event.CreateEvent{Object: going}), true},
		"one that stays as it is is no news": {news.Update(event.UpdateEvent{ObjectOld: running, ObjectNew: running}), false},
		"one that starts is news":            {news.Update(event.UpdateEvent{ObjectOld: pending, ObjectNew: running}), true},
		"one that begins to go is news":      {news.Update(event.UpdateEvent{ObjectOld: running, ObjectNew: going}), true},
		"one that is gone is news":           {news.Delete(event.DeleteEvent{Object: running}), true},
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
		t.Error("heeds the wrong ones")
	}
}

// What the caches drop must not be missed by what reads them.
func TestASlimPodSaysTheSameToTheLifecycle(t *testing.T) {
	full := pod("p", corev1.PodFailed)
	now := metav1.Now()
	full.DeletionTimestamp = &now
	full.Spec.Containers = []corev1.Container{{Name: "c"}}
	full.Annotations = map[string]string{"a": "b"}
	full.Labels["other"] = "label"
	full.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "fine", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
		{Name: "failed", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: "long"}}},
		{Name: "running", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
	}
	kept, err := slimPod(full)
	if err != nil {
		t.Fatal(err)
	}
	slim := kept.(*corev1.Pod)
	if diff := cmp.Diff((&observation{}).podOf(full), (&observation{}).podOf(slim)); diff != "" {
		t.Errorf("(-full +slim)\n%s", diff)
	}
	if slim.UID != full.UID || !cmp.Equal(appWrapperOfPod(full), appWrapperOfPod(slim)) {
		t.Error("the pod cannot be found or deleted any more")
	}
	if len(slim.Spec.Containers)+len(slim.Annotations) > 0 || slim.Labels["other"] != "" {
		t.Error("the pod is not slim")
	}
}

func TestASlimComponentHasTheSameVerdictAndOwner(t *testing.T) {
	full := job("j", "a")
	full.Object["spec"] = map[string]any{"template": map[string]any{}}
	full.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	slim := full.DeepCopy()
	if _, err := slimComponent(slim); err != nil {
		t.Fatal(err)
	}
	kind := kinds.For(jobKind)
	owner, owned := ownerOf(slim)
	if news(kind, slim) != news(kind, full) || !owned || owner.Name != "a" || slim.GetUID() != full.GetUID() {
		t.Errorf("lost what is read: %v", slim)
	}
	if _, kept := slim.Object["spec"]; kept {
		t.Error("the spec is kept")
	}
	if _, err := slimComponent(&unstructured.Unstructured{Object: map[string]any{}}); err != nil {
		t.Error(err)
	}
}

func TestCachesHoldOnlyWhatBelongsToAppWrappers(t *testing.T) {
	options, err := CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	if options.DefaultLabelSelector.String() != v1beta2.AppWrapperLabel {
		t.Errorf("selects %q", options.DefaultLabelSelector)
	}
}
