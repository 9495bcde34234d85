// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/test/same/transcript"
)

var began = time.Date(2026, 11, 27, 22, 0, 0, 0, time.UTC)

// run writes a transcript, a second a step.
type run struct {
	*transcript.Transcript
	at time.Time
}

// slowly begins a run on a machine with much to do.
func slowly() *run { return &run{transcript.New(began, 2*transcript.Race), began} }

func newRun() *run { return &run{transcript.New(began, transcript.Race), began} }

func (r *run) tick() time.Time {
	r.at = r.at.Add(time.Second)
	return r.at
}

func (r *run) rest(d time.Duration) *run {
	r.at = r.at.Add(d)
	return r
}

// pod shows a pod of the set of a JobSet, which is created, runs, ready, over, failed or gone.
func (r *run) pod(set, uid, state string) *run {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: set + "-" + uid, UID: types.UID(set + uid), Labels: map[string]string{"jobset.sigs.k8s.io/replicatedjob-name": set}}}
	status := corev1.ContainerStatus{Name: "main"}
	switch state {
	case "runs", "ready":
		pod.Status.Phase, status.State.Running = corev1.PodRunning, &corev1.ContainerStateRunning{}
		if state == "ready" {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
	case "over":
		pod.Status.Phase, status.State.Terminated = corev1.PodSucceeded, &corev1.ContainerStateTerminated{}
	case "failed":
		pod.Status.Phase, status.State.Terminated = corev1.PodFailed, &corev1.ContainerStateTerminated{ExitCode: 1}
	case "again":
		pod.Status.Phase, status.State.Running, status.RestartCount = corev1.PodRunning, &corev1.ContainerStateRunning{}, 1
	case "crashed":
		pod.Status.Phase, status.RestartCount = corev1.PodRunning, 1
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	r.Pod(pod, state == "gone", r.tick())
	return r
}

// makes shows how many replicas the object wants, and how many it has made.
func (r *run) makes(made, wanted int64) *run {
	r.Object(&unstructured.Unstructured{Object: map[string]any{
		"kind": "StatefulSet", "spec": map[string]any{"replicas": wanted}, "status": map[string]any{"replicas": made},
	}}, false, r.tick())
	return r
}

func (r *run) says(conditions ...string) *run {
	var list []any
	for _, c := range conditions {
		kind, reason, _ := strings.Cut(c, "/")
		list = append(list, map[string]any{"type": kind, "status": "True", "reason": reason})
	}
	r.Object(&unstructured.Unstructured{Object: map[string]any{"kind": "JobSet", "status": map[string]any{"conditions": list}}}, false, r.tick())
	return r
}

func (r *run) gone() *run {
	r.Object(&unstructured.Unstructured{Object: map[string]any{"kind": "JobSet"}}, true, r.tick())
	return r
}

func (r *run) wrapper(says string) *run {
	r.Wrapper(says, "", r.tick())
	return r
}

// inOrder is a run in which b comes after a.
func inOrder() *run {
	return newRun().pod("a", "1", "created").pod("a", "1", "ready").pod("a", "1", "over").pod("b", "1", "created").pod("b", "1", "over")
}

func TestDifferencesAreSeen(t *testing.T) {
	for name, row := range map[string]struct {
		bare, wrapped *run
		want          []string
	}{
		"the same": {inOrder().says("Completed/AllJobs"), inOrder().says("Completed/AllJobs").wrapper("Succeeded"), nil},
		"the AppWrapper fails": {
			inOrder().says("Completed/AllJobs"), inOrder().says("Completed/AllJobs").wrapper("Failed"), []string{"bare it is Succeeded, wrapped Failed"},
		},
		"another reason": {
			inOrder().says("Failed/Deadline"), inOrder().says("Failed/Backoff").wrapper("Failed"), []string{`bare it says "Failed/Deadline", wrapped "Failed/Backoff"`},
		},
		"it is removed when it will fail": {
			inOrder().says("Failed/Deadline", "FailureTarget/Deadline"), inOrder().says("FailureTarget/Deadline").wrapper("Failed"), nil,
		},
		"it is removed when it would succeed": {
			inOrder().says("Complete/Policy", "SuccessCriteriaMet/Policy"), inOrder().says("SuccessCriteriaMet/Policy").wrapper("Failed"),
			[]string{"bare it is Succeeded, wrapped Failed", `bare it says "Complete/Policy, SuccessCriteriaMet/Policy", wrapped "SuccessCriteriaMet/Policy"`},
		},
		"a pod more, and a start more": {
			inOrder().says("Completed/AllJobs"), inOrder().pod("b", "2", "runs").pod("b", "2", "gone").says("Completed/AllJobs").wrapper("Succeeded"),
			[]string{"pods of b: bare 1, wrapped 2", "container starts of b: bare 1, wrapped 2"},
		},
		"a pod less": {
			inOrder().says("Completed/AllJobs"), newRun().pod("a", "1", "ready").pod("a", "1", "over").says("Completed/AllJobs").wrapper("Succeeded"),
			[]string{"pods of b: bare 1, wrapped 0", "container starts of b: bare 1, wrapped 0", "b was created after a: bare had ended, wrapped began"},
		},
		"two pods at a time": {
			newRun().pod("a", "1", "over").pod("a", "2", "over").says("Completed/AllJobs"),
			newRun().pod("a", "1", "created").pod("a", "2", "created").pod("a", "1", "over").pod("a", "2", "over").says("Completed/AllJobs").wrapper("Succeeded"),
			[]string{"pods at a time of a: bare 1 at most, wrapped 2"},
		},
		"another order": {
			inOrder().says("Completed/AllJobs"),
			newRun().pod("a", "1", "created").pod("a", "1", "ready").pod("b", "1", "created").pod("a", "1", "over").pod("b", "1", "over").says("Completed/AllJobs").wrapper("Succeeded"),
			[]string{"b was created after a: bare had ended, wrapped was ready"},
		},
		"it crashes without end, and is ended": {
			newRun().pod("a", "1", "crashed"), newRun().pod("a", "1", "crashed").wrapper("Failed"), nil,
		},
		"it crashes without end, and is called ready": {
			newRun().pod("a", "1", "crashed"), newRun().pod("a", "1", "crashed").wrapper("Running, PodsReady"), []string{"bare it is NotReady, wrapped Ready"},
		},
		"it runs, and does not get ready": {
			newRun().pod("a", "1", "runs"), newRun().pod("a", "1", "runs").wrapper("Running, PodsReady"), nil,
		},
		"an operator makes a pod after the end": {
			inOrder().says("Failed/Backoff"), inOrder().says("Failed/Backoff").wrapper("Failed").pod("a", "2", "runs").pod("a", "2", "gone"), nil,
		},
		"an operator makes a pod after the object is gone": {
			inOrder().says("FailureTarget/Backoff", "Failed/Backoff"), inOrder().says("FailureTarget/Backoff").wrapper("Failed").gone().pod("a", "2", "runs").pod("a", "2", "gone"), nil,
		},
		"it is made again, and makes a pod": {
			inOrder().says("Failed/Backoff"), inOrder().says("Failed/Backoff").gone().says().pod("a", "2", "over").says("Failed/Backoff").wrapper("Failed"),
			[]string{"pods of a: bare 1, wrapped 2", "container starts of a: bare 1, wrapped 2"},
		},
		"a pod fails and is not replaced, and it is ended": {
			newRun().pod("a", "1", "ready").pod("b", "1", "failed"), newRun().pod("a", "1", "ready").pod("b", "1", "failed").wrapper("Failed"), nil,
		},
		"a pod fails and is replaced, and it is ended": {
			newRun().pod("a", "1", "failed").pod("a", "2", "ready"), newRun().pod("a", "1", "failed").pod("a", "2", "ready").wrapper("Failed"),
			[]string{"bare it is Ready, wrapped Failed"},
		},
		"it is ready, and does not run": {
			newRun().pod("a", "1", "ready"), newRun().pod("a", "1", "ready").wrapper("Failed"), []string{"bare it is Ready, wrapped Failed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := transcript.Compare(row.bare.Summary(row.bare.Bare()), row.wrapped.Summary(row.wrapped.Wrapped()))
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPodsMayDifferOnlyInAllowedFields(t *testing.T) {
	shown := func(change func(*corev1.Pod)) transcript.Summary {
		r := newRun()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "main", UID: "1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
		change(pod)
		r.Pod(pod, false, r.tick())
		return r.Summary(transcript.Ready)
	}
	for name, row := range map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"the scheduler": {func(p *corev1.Pod) { p.Spec.SchedulerName = "gangs" }, nil},
		"a label of the AppWrapper": {func(p *corev1.Pod) {
			p.Labels = map[string]string{"workload.codeflare.dev/appwrapper": "main"}
		}, nil},
		"a volume":            {func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "data"}} }, []string{`pods of main differ in .spec.volumes[0].name: bare "", wrapped "data"`}},
		"a label of somebody": {func(p *corev1.Pod) { p.Labels = map[string]string{"app": "main"} }, []string{`pods of main differ in .labels.app: bare "", wrapped "main"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, transcript.Compare(shown(func(*corev1.Pod) {}), shown(row.change))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPodAloneEndsAsItsContainersDo(t *testing.T) {
	for phase, want := range map[corev1.PodPhase]transcript.Outcome{
		corev1.PodSucceeded: transcript.Succeeded, corev1.PodFailed: transcript.Failed, corev1.PodPending: transcript.NotReady,
	} {
		r := newRun()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "alone", UID: "1"}, Status: corev1.PodStatus{Phase: phase}}
		r.Pod(pod, false, r.tick())
		if got := r.Bare(); got != want {
			t.Errorf("a pod that is %s is %s", phase, got)
		}
		made := pod.DeepCopy()
		made.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Controller: new(true)}}
		r = newRun()
		if r.Pod(made, false, r.tick()); r.Bare() == transcript.Failed {
			t.Error("a Job fails with its first pod")
		}
	}
}

func TestATranscriptIsReadable(t *testing.T) {
	r := newRun().pod("a", "1", "created").pod("a", "1", "ready").pod("a", "1", "over").says("Completed/AllJobs").wrapper("Succeeded")
	want := `   1s  pod a is created
   2s  pod a runs
   2s  pod a is ready
   3s  pod a Succeeded
   4s  JobSet says: Completed/AllJobs
   5s  AppWrapper Succeeded
`
	if diff := cmp.Diff(want, r.String()); diff != "" {
		t.Error(diff)
	}
}

// Work whose pods come in turn waits for the one that is not ready. Work that has all its pods runs.
func TestWorkThatLacksPodsIsNotReady(t *testing.T) {
	if got := newRun().pod("one", "a", "runs").makes(1, 2).Bare(); got != transcript.NotReady {
		t.Errorf("with one pod of two it is %s", got)
	}
	if got := newRun().pod("one", "a", "runs").makes(1, 1).Bare(); got != transcript.Unready {
		t.Errorf("with its only pod it is %s", got)
	}
}

// A container that is started again right before its pod or the object ends, or after that, is not compared.
func TestStartsAtTheEndAreNotCounted(t *testing.T) {
	starts := func(r *run) int { return r.Summary(transcript.Failed).Starts["a"] }
	for name, test := range map[string]struct {
		run  *run
		want int
	}{
		"long before the end":       {newRun().pod("a", "1", "runs").pod("a", "1", "again").rest(time.Minute).says("Failed/Crashed"), 2},
		"right before the end":      {newRun().pod("a", "1", "runs").pod("a", "1", "again").says("Failed/Crashed"), 1},
		"after the end":             {newRun().pod("a", "1", "runs").says("Failed/Crashed").rest(time.Minute).pod("a", "1", "again"), 1},
		"long before its deletion":  {newRun().pod("a", "1", "runs").pod("a", "1", "again").rest(time.Minute).pod("a", "1", "gone"), 2},
		"on a slow machine":         {slowly().pod("a", "1", "runs").pod("a", "1", "again").rest(4*time.Second).pod("a", "1", "gone"), 1},
		"right before its deletion": {newRun().pod("a", "1", "runs").pod("a", "1", "again").pod("a", "1", "gone"), 1},
		"it has succeeded itself":   {newRun().pod("a", "1", "runs").pod("a", "1", "again").pod("a", "1", "over").says("Failed/Crashed"), 2},
		"the only start":            {newRun().pod("a", "1", "runs").pod("a", "1", "gone"), 1},
	} {
		if got := starts(test.run); got != test.want {
			t.Errorf("%s: %d starts, want %d", name, got, test.want)
		}
	}
}
