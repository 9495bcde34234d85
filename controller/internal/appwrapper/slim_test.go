// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/test/given"
)

// textOfPrograms is read of what the API server has, before an attempt ends.
var textOfPrograms = cmpopts.IgnoreFields(lifecycle.Failure{}, "LastWords", "Began")

// The caches drop only what the lifecycle does not read, and what programs say.
func TestASlimPodSaysTheSameToTheLifecycle(t *testing.T) {
	full := pod("p", corev1.PodFailed)
	now := metav1.Now()
	full.DeletionTimestamp = &now
	full.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
		"example.com/gpu": resource.MustParse("8"), "cpu": resource.MustParse("1")}}}}
	full.Status.StartTime = &now
	full.Annotations = map[string]string{"a": "b"}
	full.Labels["other"] = "label"
	full.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "fine", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
		{Name: "failed", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: "long"}}},
		{Name: "running", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
	}
	transformed, err := boundPods(newInterner(), theRules)(full.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	slim := transformed.(*corev1.Pod)
	if got := (&observation{}).podOf(full); got.Devices["example.com/gpu"] != 8 || got.Started.IsZero() {
		t.Errorf("devices and start are not seen: %+v", got)
	}
	if diff := cmp.Diff((&observation{}).podOf(full), (&observation{}).podOf(slim), textOfPrograms); diff != "" {
		t.Errorf("(-full +slim)\n%s", diff)
	}
	if slim.UID != full.UID || !cmp.Equal(appWrapperOfPod(full), appWrapperOfPod(slim)) {
		t.Error("the pod cannot be found or deleted any more")
	}
	if len(slim.Spec.Containers)+len(slim.Annotations) > 0 || slim.Labels["other"] != "" {
		t.Error("the pod is not slim")
	}
}

// Of a pod that failed, the caches keep how, and whether its node is to blame.
func TestASlimPodFailedInTheSameWay(t *testing.T) {
	ended := func(name string, code int32, reason string) corev1.ContainerStatus {
		end := &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: "what the program says", FinishedAt: metav1.Now()}
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: end}}
	}
	runs := corev1.ContainerStatus{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	evicted := corev1.PodStatus{Reason: "Evicted", Message: "The node was low on resource: memory. Threshold quantity: 1, available: 0. "}
	for sentence, tc := range map[string]struct {
		status     corev1.PodStatus
		containers []corev1.ContainerStatus
		prepared   []corev1.ContainerStatus
		want       lifecycle.Failure
	}{
		"out of memory":                   {containers: []corev1.ContainerStatus{ended("c", 137, "OOMKilled")}, want: lifecycle.Failure{Cause: lifecycle.OOMKilled, Container: "c", ExitCode: 137}},
		"out of memory, but no exit code": {containers: []corev1.ContainerStatus{ended("c", 0, "OOMKilled")}, want: lifecycle.Failure{Cause: lifecycle.OOMKilled, Container: "c"}},
		"an exit code":                    {containers: []corev1.ContainerStatus{ended("d", 0, ""), ended("c", 3, "Error")}, want: lifecycle.Failure{Container: "c", ExitCode: 3}},
		"an init container":               {prepared: []corev1.ContainerStatus{ended("d", 0, ""), ended("i", 4, "Error")}, want: lifecycle.Failure{Container: "i", ExitCode: 4}},
		"evicted":                         {status: evicted, containers: []corev1.ContainerStatus{ended("c", 137, "Error")}, want: lifecycle.Failure{Cause: lifecycle.Evicted, Why: "The node was low on resource: memory"}},
		"evicted while it began":          {status: evicted, prepared: []corev1.ContainerStatus{ended("i", 0, "Completed")}, want: lifecycle.Failure{Cause: lifecycle.Evicted, Why: "The node was low on resource: memory"}},
		"evicted, and still running":      {status: evicted, containers: []corev1.ContainerStatus{runs}, want: lifecycle.Failure{Cause: lifecycle.Evicted, Why: "The node was low on resource: memory"}},
		"evicted before it began":         {status: evicted, want: lifecycle.Failure{Cause: lifecycle.Evicted, Why: "The node was low on resource: memory"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			full := pod("p", corev1.PodFailed)
			full.Status.Reason, full.Status.Message = tc.status.Reason, tc.status.Message
			full.Status.ContainerStatuses, full.Status.InitContainerStatuses = tc.containers, tc.prepared
			transformed, err := boundPods(newInterner(), theRules)(full.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			slim := transformed.(*corev1.Pod)
			seen := (&observation{}).podOf(slim)
			if diff := cmp.Diff((&observation{}).podOf(full), seen, textOfPrograms); diff != "" {
				t.Errorf("(-full +slim)\n%s", diff)
			}
			if len(seen.Failures) != 1 {
				t.Fatalf("there are %d failures", len(seen.Failures))
			}
			tc.want.At = seen.Failures[0].At
			if diff := cmp.Diff(tc.want, seen.Failures[0]); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			_, rejected := nodehealth.Rejection(full)
			if _, stays := nodehealth.Rejection(slim); stays != rejected {
				t.Errorf("its node rejected it: %t, and %t for the caches", rejected, stays)
			}
			for _, c := range append(slim.Status.ContainerStatuses, slim.Status.InitContainerStatuses...) {
				if c.State.Terminated.Message != "" {
					t.Error("what the program says is kept")
				}
			}
		})
	}
}

func TestASlimComponentHasTheSameVerdictAndOwner(t *testing.T) {
	full := job("j", "a")
	full.Object["spec"] = map[string]any{"template": map[string]any{}}
	full.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	kept, err := newInterner().slimComponent(full)
	if err != nil {
		t.Fatal(err)
	}
	slim := kept.(*unstructured.Unstructured)
	kind := kinds.For(jobKind)
	owner, owned := ownerOf(slim)
	if stateOf(kind, slim) != stateOf(kind, full) || !owned || owner.Name != "a" || slim.GetUID() != full.GetUID() {
		t.Errorf("fields that the controller reads are missing: %v", slim)
	}
	if _, kept := slim.Object["spec"]; kept {
		t.Error("the spec is kept")
	}
	if _, err := newInterner().slimComponent(&unstructured.Unstructured{Object: map[string]any{}}); err != nil {
		t.Error(err)
	}
}

// A verdict must not read more of a status than the caches keep.
func TestASlimComponentOfEveryKindHasTheSameVerdict(t *testing.T) {
	files, err := filepath.Glob("../kinds/testdata/*.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		examples := map[string]map[string]any{}
		if err := yaml.Unmarshal(text, &examples); err != nil {
			t.Fatal(err)
		}
		for sentence, object := range examples {
			full := &unstructured.Unstructured{Object: object}
			kind := kinds.For(full.GroupVersionKind())
			want := kind.Verdict(full)
			slim, err := newInterner().slimComponent(full)
			if err != nil {
				t.Fatal(err)
			}
			if got := kind.Verdict(slim.(*unstructured.Unstructured)); got != want {
				t.Errorf("%s: %s: the verdict is %q, and %q for the caches", file, sentence, want, got)
			}
			if diff := cmp.Diff(kind.Ended(full), kind.Ended(slim.(*unstructured.Unstructured))); diff != "" {
				t.Errorf("%s: %s: what has ended (-whole +slim):\n%s", file, sentence, diff)
			}
			if want == kinds.Succeeded || want == kinds.Failed {
				compared++
			}
		}
	}
	if compared < 10 {
		t.Errorf("only %d examples have ended", compared)
	}
}

// Pods are kept as pods, even if they are components.
func TestASlimPodHasTheSameVerdict(t *testing.T) {
	text, err := os.ReadFile("../kinds/testdata/pod.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]map[string]any{}
	if err := yaml.Unmarshal(text, &examples); err != nil || len(examples) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	for sentence, object := range examples {
		full := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, full); err != nil {
			t.Fatal(err)
		}
		kind := kinds.For(podKind)
		want := kind.Verdict(&unstructured.Unstructured{Object: object})
		if got := verdict(kind, newInterner().slimPod(full)); got != want {
			t.Errorf("%s: the verdict is %q, and %q for the caches", sentence, want, got)
		}
	}
}

func TestASlimAppWrapperIsSeenAsTheSame(t *testing.T) {
	unnamed := given.Component(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "c-"}, "data": map[string]any{"a": "b"}})
	for _, phase := range []v1beta2.AppWrapperPhase{v1beta2.AppWrapperEmpty, v1beta2.AppWrapperSuspended, v1beta2.AppWrapperResuming, v1beta2.AppWrapperRunning} {
		t.Run("phase "+string(phase), func(t *testing.T) {
			info := v1beta2.AppWrapperPodSetInfo{Labels: map[string]string{"a": "b"}, SchedulingGates: []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/topology"}}}
			whole := given.AppWrapper("a").With(given.Job("j", 2).Admitted(info), unnamed).Build()
			whole.Annotations = map[string]string{v1beta2.RetryLimitAnnotation: "7", corev1.LastAppliedConfigAnnotation: "long"}
			if whole.Status.Phase = phase; phase != v1beta2.AppWrapperEmpty {
				whole.Status.ComponentStatus = []v1beta2.AppWrapperComponentStatus{{Name: "j"}, {}}
			}
			w := newWorld(t, whole)
			see := func() lifecycle.Snapshot {
				o, err := w.reconciler.observe(t.Context(), theRequest.NamespacedName)
				if err != nil {
					t.Fatal(err)
				}
				return o.snapshot
			}
			want := see()
			if !want.NodesAssigned {
				t.Error("Kueue assigns its nodes, and nobody sees it")
			}
			slim := w.get()
			if _, err := newInterner().slimAppWrapper(slim); err != nil {
				t.Fatal(err)
			}
			w.reconciler.cached = frozen{w.api, slim}
			if diff := cmp.Diff(want, see()); diff != "" {
				t.Errorf("(-whole +slim)\n%s", diff)
			}
			const heads = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"}}` + `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"c-"}}`
			kept := string(slim.Spec.Components[0].Template.Raw) + string(slim.Spec.Components[1].Template.Raw)
			if recorded := phase != v1beta2.AppWrapperEmpty; (kept == heads) != recorded {
				t.Errorf("keeps %s", kept)
			}
		})
	}
}

func TestWhatCannotBeDecodedStaysAsItIs(t *testing.T) {
	aw := given.AppWrapper("a").With(given.Job("j", 1)).InPhase(v1beta2.AppWrapperSuspended).Build()
	aw.Spec.Components[0].Template.Raw = []byte(`{"kind": 1}`)
	if _, err := newInterner().slimAppWrapper(aw); err != nil || string(aw.Spec.Components[0].Template.Raw) != `{"kind": 1}` {
		t.Errorf("got %s, error %v", aw.Spec.Components[0].Template.Raw, err)
	}
}
