// SPDX-License-Identifier: Apache-2.0

package runlife_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// running is a Run that runs since an hour.
func running() *world {
	w := newWorld()
	runs(w)
	w.pass(time.Hour)
	return w
}

// outcome is a phase, and the conditions as "status reason".
type outcome struct {
	phase      v1alpha1.RunPhase
	conditions map[string]string
	effect     runlife.Effect
}

func TestTheTableOfPhases(t *testing.T) {
	in := func(phase v1beta2.AppWrapperPhase) func(*world) {
		return func(w *world) { w.aw.Status.Phase = phase }
	}
	for sentence, row := range map[string]struct {
		given func(*world)
		want  outcome
	}{
		"suspended after its start":                     {in(v1beta2.AppWrapperSuspended), outcome{"Queued", map[string]string{"QuotaReserved": "False Preempted", "PodsReady": "False Preempted"}, ""}},
		"deactivated after its start":                   {deactivated(metav1.ConditionTrue), outcome{"Queued", map[string]string{"QuotaReserved": "False Deactivated", "PodsReady": "False Preempted"}, ""}},
		"activated again":                               {deactivated(metav1.ConditionFalse), outcome{"Queued", map[string]string{"QuotaReserved": "False Preempted"}, ""}},
		"resuming":                                      {in(v1beta2.AppWrapperResuming), outcome{"Starting", map[string]string{"QuotaReserved": "True Admitted", "PodsReady": "False PodsStarting"}, ""}},
		"running and ready":                             {in(v1beta2.AppWrapperRunning), outcome{"Running", map[string]string{"QuotaReserved": "True Admitted", "PodsReady": "True AllPodsReady"}, ""}},
		"suspending":                                    {in(v1beta2.AppWrapperSuspending), outcome{"Preempted", map[string]string{"PodsReady": "False Preempted"}, ""}},
		"resetting, although nothing says why":          {in(v1beta2.AppWrapperResetting), outcome{"Retrying", map[string]string{"PodsReady": "False AppWrapperFailed"}, ""}},
		"failed, although nothing says why":             {in(v1beta2.AppWrapperFailed), outcome{"Failed", map[string]string{"Failed": "True AppWrapperFailed", "PodsReady": "False Ended"}, ""}},
		"succeeded":                                     {in(v1beta2.AppWrapperSucceeded), outcome{"Succeeded", map[string]string{"Complete": "True Succeeded", "QuotaReserved": "False Ended"}, ""}},
		"terminating":                                   {in(v1beta2.AppWrapperTerminating), outcome{"Failed", map[string]string{"Failed": "True AppWrapperDeleted"}, ""}},
		"a phase of a later version":                    {in("Levitating"), outcome{"Running", map[string]string{"PodsReady": "True AllPodsReady"}, ""}},
		"deleted, in whatever phase":                    {func(w *world) { w.aw.DeletionTimestamp = &metav1.Time{Time: w.now} }, outcome{"Failed", map[string]string{"Failed": "True AppWrapperDeleted"}, ""}},
		"another one of that name":                      {func(w *world) { w.aw.UID = "uid-of-another" }, outcome{"Failed", map[string]string{"Failed": "True AppWrapperDeleted"}, ""}},
		"gone while the Run is deleted":                 {func(w *world) { w.aw, w.run.DeletionTimestamp = nil, &metav1.Time{Time: w.now} }, outcome{"Running", nil, ""}},
		"there while the Run is deleted":                {deleting(""), outcome{"Running", nil, runlife.Delete}},
		"left behind by the Run":                        {deleting(metav1.FinalizerOrphanDependents), outcome{"Running", nil, ""}},
		"another's while the Run is deleted":            {func(w *world) { deleting("")(w); w.aw.OwnerReferences = nil }, outcome{"Running", nil, ""}},
		"cancelled at the moment of success":            {func(w *world) { w.run.Spec.Cancel = true; in(v1beta2.AppWrapperSucceeded)(w) }, outcome{"Succeeded", map[string]string{"Complete": "True Succeeded"}, ""}},
		"cancelled when the AppWrapper is gone":         {func(w *world) { w.run.Spec.Cancel = true; w.aw = nil }, outcome{"Cancelled", map[string]string{"Failed": "True Cancelled"}, ""}},
		"a deadline at the moment of success":           {func(w *world) { deadline(3600)(w); in(v1beta2.AppWrapperSucceeded)(w) }, outcome{"Succeeded", nil, ""}},
		"a deadline that is exactly over":               {deadline(3600), outcome{"Failed", map[string]string{"Failed": "True DeadlineExceeded"}, ""}},
		"a deadline that is not quite over":             {deadline(3601), outcome{"Running", nil, ""}},
		"a deadline after the end of time":              {deadline(1 << 62), outcome{"Running", nil, ""}},
		"cancelled before, and the AppWrapper is there": {func(w *world) { w.cancels(); w.aw.DeletionTimestamp = nil }, outcome{"Cancelled", nil, runlife.Delete}},
		"succeeded before, and then the AppWrapper goes": {func(w *world) {
			w.moves(v1beta2.AppWrapperSucceeded)
			w.aw = nil
		}, outcome{"Succeeded", nil, ""}},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := running()
			w.run, w.aw = w.run.DeepCopy(), w.aw.DeepCopy()
			row.given(w)
			s := w.snapshot()
			s.Pods = &[]corev1.Pod{}
			d := runlife.Decide(s, w.now)
			if d.Status.Phase != row.want.phase || d.Effect != row.want.effect {
				t.Errorf("%s and %q, want %s and %q", d.Status.Phase, d.Effect, row.want.phase, row.want.effect)
			}
			for kind, want := range row.want.conditions {
				c := meta.FindStatusCondition(d.Status.Conditions, kind)
				if c == nil || string(c.Status)+" "+c.Reason != want {
					t.Errorf("%s is %v, want %s", kind, c, want)
				}
			}
		})
	}
}

// deactivated: the AppWrapper is suspended, and says with this status that nobody starts it.
func deactivated(status metav1.ConditionStatus) func(*world) {
	return func(w *world) {
		w.aw.Status.Phase = v1beta2.AppWrapperSuspended
		w.condition(w.aw, v1beta2.Deactivated, status, "Idle")
	}
}

func deleting(finalizer string) func(*world) {
	return func(w *world) {
		w.run.DeletionTimestamp, w.run.Finalizers = &metav1.Time{Time: w.now}, []string{"backup.example.com/x", finalizer}
	}
}

// Messages that users provoke must fit into a status.
func TestALongMessageIsCut(t *testing.T) {
	w := newWorld()
	s := w.snapshot()
	s.Plan = runlife.Plan{Problems: []runplan.Problem{{Reason: "Impossible", Message: strings.Repeat("ü", 100_000)}}}
	d := runlife.Decide(s, w.now)
	c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.Accepted)
	if got := d.Status.Message; len(got) > 5000 || c == nil || c.Message != got || !utf8.ValidString(got) {
		t.Errorf("a message has %d bytes", len(got))
	}
}

// The AppWrapper that has the name may have the label of another Run, and wake that one.
func TestATakenNameIsLookedAtAgain(t *testing.T) {
	w := newWorld()
	w.app = application()
	w.aw = appWrapper("uid-of-another")
	s := w.snapshot()
	if d := runlife.Decide(s, w.now); d.Requeue != runlife.RefusalPause {
		t.Errorf("the next look is in %s: %+v", d.Requeue, d.Status)
	}
}

func deadline(seconds int64) func(*world) {
	return func(w *world) { w.run.Spec.ActiveDeadlineSeconds = ptr.To(seconds) }
}

func TestTheNextLookIsAtTheDeadlineOrTheEndOfTheTimeToLive(t *testing.T) {
	w := running()
	deadline(3660)(w)
	if d := runlife.Decide(w.snapshot(), w.now); d.Requeue != time.Minute {
		t.Errorf("it looks again in %s, a minute before the deadline", d.Requeue)
	}
	w.moves(v1beta2.AppWrapperSucceeded)
	w.run.Spec.TTLSecondsAfterFinished = ptr.To(int32(90))
	if d := runlife.Decide(w.snapshot(), w.now); d.Requeue != 90*time.Second || d.Effect != runlife.Nothing {
		t.Errorf("it looks again in %s, and now does %q", d.Requeue, d.Effect)
	}
}

func TestWhoMayNotCreateWhatIsPlanned(t *testing.T) {
	for sentence, row := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"nobody knows who made it":      {nil, "it is unknown who made this Run"},
		"a list without an author":      {map[string]string{v1alpha1.AuthorMayAnnotation: "appwrappers.workload.codeflare.dev,jobs.batch"}, "it is unknown who made this Run"},
		"an author who may do nothing":  {may(""), `user "alice" may not create appwrappers.workload.codeflare.dev in namespace "blue"`},
		"an author without the kind":    {may("appwrappers.workload.codeflare.dev,configmaps"), `user "alice" may neither create nor wrap jobs.batch in namespace "blue"`},
		"a kind of another group":       {may("appwrappers.workload.codeflare.dev,jobs.batch.volcano.sh"), `user "alice" may neither create nor wrap jobs.batch`},
		"an author who may all of that": {may("jobs.batch,appwrappers.workload.codeflare.dev"), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld()
			w.app, w.run.Annotations = application(), row.annotations
			d := runlife.Decide(w.snapshot(), w.now)
			c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.Accepted)
			if (c.Reason == runlife.Forbidden) != (row.want != "") || !strings.Contains(c.Message, row.want) {
				t.Errorf("%s: %s, want %q", c.Reason, c.Message, row.want)
			}
			if d.Requeue != 0 {
				t.Error("it looks again, although rights are those at creation")
			}
		})
	}
}

func may(list string) map[string]string {
	return map[string]string{v1alpha1.AuthorAnnotation: "alice", v1alpha1.AuthorMayAnnotation: list}
}

func TestAllProblemsAreTold(t *testing.T) {
	w := newWorld()
	w.app = application()
	w.app.Spec.Inputs = []v1alpha1.Input{{Name: "pictures"}}
	w.run.Spec.Workers = ptr.To(int32(0))
	d := runlife.Decide(w.snapshot(), w.now)
	want := "there is no DataSet pictures in namespace blue, which the Application needs; a shell Run needs at least one worker: set workers"
	if c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.Accepted); c.Reason != "InputNotFound" || c.Message != want {
		t.Errorf("%s: %s", c.Reason, c.Message)
	}
}

func TestTheFirstFailureIsRemembered(t *testing.T) {
	at := func(seconds int) time.Time { return born.Add(time.Duration(seconds) * time.Second) }
	restarted := failedPod("b", 3, "log of b", at(2))
	restarted.Status.Phase = corev1.PodRunning
	restarted.Status.ContainerStatuses[0].LastTerminationState = restarted.Status.ContainerStatuses[0].State
	restarted.Status.ContainerStatuses[0].State = corev1.ContainerState{}
	evicted := corev1.Pod{}
	evicted.Name, evicted.Status.Phase, evicted.Status.Reason, evicted.Status.Message = "c", corev1.PodFailed, "Evicted", "low on memory"
	evicted.Status.Conditions = []corev1.PodCondition{{LastTransitionTime: metav1.Time{Time: at(1)}}, {LastTransitionTime: metav1.Time{Time: at(9)}}}
	ended := failedPod("a", 0, "", at(1))
	ended.Status.Phase = corev1.PodSucceeded
	initialized := failedPod("d", 7, "", at(8))
	initialized.Status.InitContainerStatuses, initialized.Status.ContainerStatuses = initialized.Status.ContainerStatuses, nil
	for sentence, row := range map[string]struct {
		pods []corev1.Pod
		want *v1alpha1.LastFailure
	}{
		"none, if no pod failed":               {[]corev1.Pod{{}, ended}, nil},
		"the first by time":                    {[]corev1.Pod{failedPod("a", 1, "", at(5)), restarted}, failure("b", "main", 3, "log of b")},
		"the first by name":                    {[]corev1.Pod{failedPod("z", 2, "", at(5)), failedPod("a", 1, "", at(5))}, failure("a", "main", 1, "")},
		"one of an init container":             {[]corev1.Pod{evicted, initialized}, failure("d", "main", 7, "")},
		"a pod that failed as a whole":         {[]corev1.Pod{evicted}, &v1alpha1.LastFailure{Attempt: 1, Pod: "c", Reason: "Evicted", Message: "low on memory"}},
		"the last whole lines of a long log":   {[]corev1.Pod{failedPod("a", 1, "first\n"+strings.Repeat("x", 1000)+"\n"+strings.Repeat("y", 500), at(1))}, failure("a", "main", 1, strings.Repeat("y", 500))},
		"the end of a long line, in one piece": {[]corev1.Pod{failedPod("a", 1, strings.Repeat("x", 500)+strings.Repeat("é", 600)+"z", at(1))}, failure("a", "main", 1, strings.Repeat("é", 511)+"z")},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := running()
			w.aw = w.aw.DeepCopy()
			w.aw.Status.Phase = v1beta2.AppWrapperFailed
			s := w.snapshot()
			if d := runlife.Decide(s, w.now); !d.NeedsPods {
				t.Fatal("it decides without the pods")
			}
			s.Pods = &row.pods
			if diff := cmp.Diff(row.want, runlife.Decide(s, w.now).Status.LastFailure); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func failure(pod, container string, code int32, message string) *v1alpha1.LastFailure {
	return &v1alpha1.LastFailure{Attempt: 1, Pod: pod, Container: container, ExitCode: &code, Reason: "Error", Message: message}
}

// The controller of Runs may have been away when the pods became ready, and its clock may be late.
func TestTheStartIsThatOfThePods(t *testing.T) {
	w := newWorld()
	queues(w)
	w.aw.Status.Phase = v1beta2.AppWrapperRunning
	w.condition(w.aw, v1beta2.PodsReady, metav1.ConditionTrue, "SufficientPodsReady")
	for _, late := range []time.Duration{time.Hour, 0, -time.Hour} {
		want := born.Add(min(late, 0))
		if got := runlife.Decide(w.snapshot(), born.Add(late)).Status.StartTime; got == nil || !got.Time.Equal(want) {
			t.Errorf("seen after %s it starts at %v, want %s", late, got, want)
		}
	}
}

// Every kind that a Ray Run has is asked about.
func TestTheAuthorMayWrapAllThatRayNeeds(t *testing.T) {
	for command, needed := range map[string][]string{
		"python3 tune.py": {"podgroups.scheduling.x-k8s.io", "configmaps", "rayjobs.ray.io"},
		"":                {"podgroups.scheduling.x-k8s.io", "rayclusters.ray.io"},
	} {
		may := append([]string{"appwrappers.workload.codeflare.dev"}, needed...)
		if got := acceptedOfRay(command, may); got.Status != metav1.ConditionTrue {
			t.Errorf("an author who may do all is told %q", got.Message)
		}
		for i, one := range needed {
			want := fmt.Sprintf(`user "alice" may neither create nor wrap %s in namespace "blue"`, one)
			if got := acceptedOfRay(command, slices.Delete(slices.Clone(may), i+1, i+2)); got.Reason != runlife.Forbidden || got.Message != want {
				t.Errorf("an author who may not wrap %s is told %q", one, got.Message)
			}
		}
	}
}

// acceptedOfRay is what a Run of a Ray Application says of its author's rights.
func acceptedOfRay(command string, may []string) metav1.Condition {
	w := newWorld()
	w.run.Annotations[v1alpha1.AuthorMayAnnotation] = strings.Join(may, ",")
	w.app = application()
	w.app.Spec.API, w.app.Spec.Command = v1alpha1.APIRay, command
	w.settle()
	if c := meta.FindStatusCondition(w.run.Status.Conditions, v1alpha1.Accepted); c != nil {
		return *c
	}
	return metav1.Condition{}
}
