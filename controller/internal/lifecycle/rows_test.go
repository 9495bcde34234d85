// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// A row is a snapshot, a time and the decision. The snapshot is of an AppWrapper of one Job
// with two pods, in the phase of the table, with the changes that the sentence names. Its
// phase began at deployedAt; rows look at it later.
type row struct {
	given []change
	after time.Duration
	want  outcome
}

type change func(*lifecycle.Snapshot)

// outcome summarizes a decision. Conditions has those that the decision changed.
type outcome struct {
	Phase      v1beta2.AppWrapperPhase
	Effect     lifecycle.Effect
	Targets    []int
	Requeue    time.Duration
	Event      string
	Retries    int32
	Starts     int32 // those of the retries that were late starts
	Migrations int32
	Conditions map[string]string
}

const (
	pending     = corev1.PodPending
	runs        = corev1.PodRunning
	done        = corev1.PodSucceeded
	broken      = corev1.PodFailed
	unreachable = corev1.PodUnknown
)

var (
	// createdLate: the component was created long after the intent to create it was saved.
	createdLate = componentCondition(0, v1beta2.ResourcesDeployed, metav1.ConditionTrue, v1beta2.ReasonComponentCreatedSuccessfully, 70*time.Second)

	ready    = condition(v1beta2.PodsReady, metav1.ConditionTrue, v1beta2.ReasonSufficientPodsReady, time.Minute)
	finished = componentCondition(0, v1beta2.ComponentSucceeded, metav1.ConditionTrue, v1beta2.ReasonComponentSucceeded, time.Hour)
)

func resets(cause string) outcome {
	return outcome{Phase: v1beta2.AppWrapperResetting, Retries: 1, Event: cause,
		Conditions: map[string]string{"Unhealthy": "True " + cause, "DeletingResources": "True DeletionInitiated"}}
}

func startsAgain(cause string) outcome {
	o := resets(cause)
	o.Starts = 1
	return o
}

func endsIn(phase v1beta2.AppWrapperPhase, event string, conditions map[string]string) outcome {
	return outcome{Phase: phase, Event: event, Conditions: conditions}
}

var deployedAt = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func checkRows(t *testing.T, base func() lifecycle.Snapshot, rows map[string]row) {
	t.Helper()
	for sentence, r := range rows {
		t.Run(sentence, func(t *testing.T) {
			s := base()
			for _, c := range r.given {
				c(&s)
			}
			before := *s.Status.DeepCopy()
			d := lifecycle.Decide(s, deployedAt.Add(r.after))
			if diff := cmp.Diff(before, s.Status); diff != "" {
				t.Errorf("the snapshot was changed (-before +after):\n%s", diff)
			}
			if d.Moved(s) && !isListed(s.Status.Phase, d) {
				t.Errorf("it moved to %s because %q, which is not in the list of ways", d.Status.Phase, d.Because)
			}
			if diff := cmp.Diff(r.want, summarize(s, d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkTimes(t, before.Conditions, d.Status.Conditions)
		})
	}
}

// checkTimes: timers begin at transition times, so the time of a condition changes only with
// its status.
func checkTimes(t *testing.T, before, after []metav1.Condition) {
	t.Helper()
	for _, c := range after {
		old := meta.FindStatusCondition(before, c.Type)
		if old != nil && old.Status == c.Status && !old.LastTransitionTime.Equal(&c.LastTransitionTime) {
			t.Errorf("%s is %s as before, and its time changed from %s to %s", c.Type, c.Status, old.LastTransitionTime, c.LastTransitionTime)
		}
	}
}

func summarize(s lifecycle.Snapshot, d lifecycle.Decision) outcome {
	o := outcome{Phase: d.Status.Phase, Effect: d.Effect, Targets: d.Targets, Requeue: d.Requeue, Retries: d.Status.Retries, Starts: d.Status.StartupRetries, Migrations: d.Status.Migrations}
	if d.Event != nil {
		o.Event = d.Event.Reason
	}
	before := map[string]string{}
	for _, c := range s.Status.Conditions {
		before[c.Type] = say(c)
	}
	for _, c := range d.Status.Conditions {
		if say(c) == before[c.Type] || forPrograms[c.Type] {
			continue
		}
		if o.Conditions == nil {
			o.Conditions = map[string]string{}
		}
		o.Conditions[c.Type] = say(c)
	}
	return o
}

// forPrograms are conditions on which no decision rests. They have promises and tests of their own.
var forPrograms = map[string]bool{string(v1beta2.Finished): true, string(v1beta2.Requeued): true}

func say(c metav1.Condition) string {
	return string(c.Status) + " " + c.Reason
}

// oneJob is an AppWrapper of one Job with two pods; nothing exists yet.
func oneJob(phase v1beta2.AppWrapperPhase) lifecycle.Snapshot {
	podSets := []v1beta2.AppWrapperPodSet{{Path: "template.spec.template", Replicas: new(int32(2))}}
	return lifecycle.Snapshot{
		HasFinalizer: true,
		Policy:       standardPolicy(),
		Components: []lifecycle.Component{
			{Name: "train", Kind: "Job", APIVersion: "batch/v1", PodSets: podSets, ReportsEnd: true},
		},
		Status: v1beta2.AppWrapperStatus{
			Phase:               phase,
			PhaseTransitionTime: &metav1.Time{Time: deployedAt},
			ComponentStatus:     []v1beta2.AppWrapperComponentStatus{{Name: "train", Kind: "Job", APIVersion: "batch/v1", PodSets: podSets}},
		},
	}
}

// deployed is that AppWrapper with quota and its Job deployed at deployedAt.
func deployed(phase v1beta2.AppWrapperPhase) lifecycle.Snapshot {
	s := oneJob(phase)
	for _, c := range []change{
		condition(v1beta2.QuotaReserved, metav1.ConditionTrue, "Admitted", 0),
		condition(v1beta2.ResourcesDeployed, metav1.ConditionTrue, "Resuming", 0),
		condition(v1beta2.PodsReady, metav1.ConditionFalse, "Resuming", 0),
		condition(v1beta2.Unhealthy, metav1.ConditionFalse, "Resuming", 0),
		componentCondition(0, v1beta2.ResourcesDeployed, metav1.ConditionTrue, v1beta2.ReasonComponentCreatedSuccessfully, 0),
		exists,
	} {
		c(&s)
	}
	return s
}

func condition(kind v1beta2.AppWrapperCondition, status metav1.ConditionStatus, reason string, at time.Duration) change {
	return func(s *lifecycle.Snapshot) {
		s.Status.Conditions = replace(s.Status.Conditions, kind, status, reason, at)
	}
}

func componentCondition(i int, kind v1beta2.AppWrapperCondition, status metav1.ConditionStatus, reason string, at time.Duration) change {
	return func(s *lifecycle.Snapshot) {
		c := &s.Status.ComponentStatus[i].Conditions
		*c = replace(*c, kind, status, reason, at)
	}
}

func replace(conditions []metav1.Condition, kind v1beta2.AppWrapperCondition, status metav1.ConditionStatus, reason string, at time.Duration) []metav1.Condition {
	made := metav1.Condition{Type: string(kind), Status: status, Reason: reason, LastTransitionTime: metav1.Time{Time: deployedAt.Add(at)}}
	for i := range conditions {
		if conditions[i].Type == made.Type {
			conditions[i] = made
			return conditions
		}
	}
	return append(conditions, made)
}

// withoutIntent is how another AppWrapper controller leaves a component that it has not created.
func withoutIntent(s *lifecycle.Snapshot) {
	s.Status.ComponentStatus[0].Name, s.Status.ComponentStatus[0].Conditions = "", nil
}

func exists(s *lifecycle.Snapshot) { s.Components[0].Exists = true }

func absent(s *lifecycle.Snapshot) { s.Components[0].Exists = false }

func terminatingJob(s *lifecycle.Snapshot) {
	s.Components[0].Exists, s.Components[0].Terminating = true, true
}

// unreadableJob was created, and the controller may not get it any more.
func unreadableJob(s *lifecycle.Snapshot) {
	s.Components[0].Exists, s.Components[0].Unreadable = true, true
}

// unanswered: since then, nobody has answered the attempts to create the component.
func unanswered(at time.Duration) change {
	return componentCondition(0, v1beta2.ComponentUnanswered, metav1.ConditionTrue, v1beta2.ReasonComponentCreationErrored, at)
}

// firstRefused is when the first creation of this attempt was refused.
func firstRefused(at time.Duration) change {
	return componentCondition(0, v1beta2.ComponentRefused, metav1.ConditionTrue, v1beta2.ReasonComponentCreationErrored, at)
}

func keptBy(finalizers ...string) change {
	return func(s *lifecycle.Snapshot) { s.Components[0].Finalizers = finalizers }
}

func suspend(s *lifecycle.Snapshot) { s.Suspend = true }

func unsuspended(s *lifecycle.Snapshot) { s.Suspend = false }

func deleted(s *lifecycle.Snapshot) { s.Deleting = true }

// ours: nobody else has a finalizer.
func ours(s *lifecycle.Snapshot) { s.LastFinalizer = true }

func withoutFinalizer(s *lifecycle.Snapshot) { s.HasFinalizer = false }

func verdict(v kinds.Verdict) change {
	return func(s *lifecycle.Snapshot) { s.Components[0].Verdict = v }
}

// unknownKind turns the Job into a kind whose end cannot be read.
func unknownKind(s *lifecycle.Snapshot) { s.Components[0].ReportsEnd = false }

// noPods turns the Job into a resource without pod sets.
func noPods(s *lifecycle.Snapshot) { s.Status.ComponentStatus[0].PodSets = nil }

func twoPodSets(s *lifecycle.Snapshot) {
	podSets := &s.Status.ComponentStatus[0].PodSets
	*podSets = append(*podSets, (*podSets)[0])
}

func withPods(phases ...corev1.PodPhase) change {
	return func(s *lifecycle.Snapshot) {
		for _, phase := range phases {
			s.Pods = append(s.Pods, lifecycle.Pod{Phase: phase})
		}
	}
}

// exitedWith gives every failed pod this exit code.
func exitedWith(code int32) change {
	return func(s *lifecycle.Snapshot) {
		for i := range s.Pods {
			if s.Pods[i].Phase == corev1.PodFailed {
				s.Pods[i].ExitCodes = []int32{code}
			}
		}
	}
}

func allPods(edit func(*lifecycle.Pod)) change {
	return func(s *lifecycle.Snapshot) {
		for i := range s.Pods {
			edit(&s.Pods[i])
		}
	}
}

func policy(edit func(*lifecycle.Policy)) change {
	return func(s *lifecycle.Snapshot) { edit(&s.Policy) }
}

func retried(n int32) change {
	return func(s *lifecycle.Snapshot) { s.Status.Retries = n }
}

// startedLate: that many of the retries were because of late starts.
func startedLate(n int32) change {
	return func(s *lifecycle.Snapshot) { s.Status.StartupRetries = n }
}

// and adds a second component like the first, with a status like it, under this name.
func and(name string, changes ...change) change {
	return func(s *lifecycle.Snapshot) {
		component, status := s.Components[0], *s.Status.ComponentStatus[0].DeepCopy()
		component.Name, status.Name = name, name
		one := lifecycle.Snapshot{Components: []lifecycle.Component{component}, Status: v1beta2.AppWrapperStatus{ComponentStatus: []v1beta2.AppWrapperComponentStatus{status}}}
		for _, c := range changes {
			c(&one)
		}
		s.Components = append(s.Components, one.Components[0])
		s.Status.ComponentStatus = append(s.Status.ComponentStatus, one.Status.ComponentStatus[0])
	}
}
