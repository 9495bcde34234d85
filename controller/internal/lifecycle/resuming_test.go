// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func TestResuming(t *testing.T) {
	promised := componentCondition(0, v1beta2.ResourcesDeployed, metav1.ConditionUnknown, v1beta2.ReasonComponentCreationInitiated, 0)
	base := func() lifecycle.Snapshot {
		s := deployed(v1beta2.AppWrapperResuming)
		absent(&s)
		promised(&s)
		return s
	}
	refused := func(at time.Duration) change {
		return componentCondition(0, v1beta2.ResourcesDeployed, metav1.ConditionFalse, v1beta2.ReasonComponentCreationErrored, at)
	}
	rejected := componentCondition(0, v1beta2.ResourcesDeployed, metav1.ConditionFalse, v1beta2.ReasonComponentCreationRejected, 0)
	createFailed := map[string]string{"Unhealthy": "True CreateFailed"}
	ready := map[string]string{"PodsReady": "True SufficientPodsReady", "Unhealthy": "False FoundNoFailedPods"}
	checkRows(t, base, map[string]row{
		"a missing component is created": {
			want: outcome{Phase: v1beta2.AppWrapperResuming, Effect: lifecycle.Create, Targets: []int{0}, Requeue: time.Minute},
		},
		"only missing components are created": {
			given: []change{and("more", exists), and("evenmore")},
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Effect: lifecycle.Create, Targets: []int{0, 2}, Requeue: time.Minute},
		},
		"an intent that another controller has not recorded is recorded before the creation": {
			given: []change{withoutIntent},
			want:  outcome{Phase: v1beta2.AppWrapperResuming},
		},
		"so is the intent for a component that another controller removed after an earlier attempt": {
			given: []change{componentCondition(0, v1beta2.ResourcesDeployed, metav1.ConditionFalse, "CompononetDeleted", -time.Hour)},
			want:  outcome{Phase: v1beta2.AppWrapperResuming},
		},
		"it becomes Running when all components exist": {
			given: []change{exists},
			want:  outcome{Phase: v1beta2.AppWrapperRunning},
		},
		"if pods are ready by then, the same write says so": {
			given: []change{exists, withPods(runs, runs)},
			want:  endsIn(v1beta2.AppWrapperRunning, "", ready),
		},
		"it becomes Running when all components exist, however late": {
			given: []change{exists},
			after: time.Hour,
			want:  outcome{Phase: v1beta2.AppWrapperRunning},
		},
		"it waits until a component that is being deleted is gone": {
			given: []change{terminatingJob},
			after: 10 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Requeue: 50 * time.Second},
		},
		"a pause follows a refusal": {
			given: []change{refused(0)},
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Requeue: time.Second},
		},
		"the pause grows with the time since the first attempt": {
			given: []change{refused(8 * time.Second)},
			after: 10 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Requeue: 6 * time.Second},
		},
		"it tries again after the pause": {
			given: []change{refused(8 * time.Second)},
			after: 16 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Effect: lifecycle.Create, Targets: []int{0}, Requeue: 44 * time.Second},
		},
		"the pause ends with the admission grace": {
			given: []change{refused(55 * time.Second)},
			after: 55 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Requeue: 5 * time.Second},
		},
		"a refusal after the admission grace is a failure": {
			given: []change{refused(55 * time.Second)},
			after: time.Minute,
			want:  startsAgain("CreateFailed"),
		},
		"time in which nobody answers is no grace": {
			given: []change{refused(9 * time.Minute), unanswered(0), retried(3), startedLate(3)},
			after: 9*time.Minute + time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Retries: 3, Starts: 3, Requeue: 14 * time.Second},
		},
		"it tries again for as long as that takes": {
			given: []change{refused(9 * time.Minute), unanswered(0), retried(3), startedLate(3)},
			after: 9*time.Minute + 15*time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Retries: 3, Starts: 3, Effect: lifecycle.Create, Targets: []int{0}, Requeue: time.Minute},
		},
		"the admission grace begins with the first refusal, however late that was": {
			given: []change{refused(61 * time.Second), firstRefused(61 * time.Second)},
			after: 61 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Requeue: time.Second},
		},
		"the pause grows with the time since then": {
			given: []change{refused(70 * time.Second), firstRefused(61 * time.Second)},
			after: 71 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Requeue: 8 * time.Second},
		},
		"an attempt that was due within the grace is made, however late": {
			given: []change{refused(4 * time.Second), firstRefused(0)},
			after: time.Hour,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Effect: lifecycle.Create, Targets: []int{0}},
		},
		"a creation that was never tried has not failed, however late": {
			after: time.Hour,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Effect: lifecycle.Create, Targets: []int{0}},
		},
		"without an admission grace there is one attempt": {
			given: []change{policy(func(p *lifecycle.Policy) { p.AdmissionGrace = 0 })},
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Effect: lifecycle.Create, Targets: []int{0}},
		},
		"a component that is still being deleted after the admission grace is a failure": {
			given: []change{terminatingJob},
			after: time.Minute,
			want:  startsAgain("CreateFailed"),
		},
		"without retries left that is final": {
			given: []change{terminatingJob, retried(3), startedLate(3)},
			after: time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperFailed, Retries: 3, Starts: 3, Event: "CreateFailed", Conditions: createFailed},
		},
		"a component that has failed is not created again when it is gone": {
			given: []change{and("second"), verdict(kinds.Failed)},
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Effect: lifecycle.Create, Targets: []int{1}, Requeue: time.Minute},
		},
		"its failure is for Running to deal with": {
			given: []change{verdict(kinds.Failed)},
			want:  outcome{Phase: v1beta2.AppWrapperRunning},
		},
		"a component that has succeeded is not created again when it is gone": {
			given: []change{and("second", refused(0)), finished},
			after: 10 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Effect: lifecycle.Create, Targets: []int{1}, Requeue: 50 * time.Second},
		},
		"nor if its creation was refused once": {
			given: []change{refused(0), finished},
			want:  endsIn(v1beta2.AppWrapperRunning, "", ready),
		},
		"a component that has succeeded need not stay": {
			given: []change{terminatingJob, verdict(kinds.Succeeded)},
			want:  endsIn(v1beta2.AppWrapperRunning, "", ready),
		},
		"without retries left it fails": {
			given: []change{refused(55 * time.Second), retried(3), startedLate(3)},
			after: time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperFailed, Retries: 3, Starts: 3, Event: "CreateFailed", Conditions: createFailed},
		},
		"a final refusal fails at once": {
			given: []change{rejected},
			want:  outcome{Phase: v1beta2.AppWrapperFailed, Event: "CreateFailed", Conditions: createFailed},
		},
		"suspension takes precedence": {
			given: []change{rejected, suspend},
			want: outcome{Phase: v1beta2.AppWrapperSuspending, Event: "ExternallySuspended",
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
		"deletion takes precedence over everything": {
			given: []change{rejected, suspend, deleted},
			want: outcome{Phase: v1beta2.AppWrapperTerminating,
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
	})
}

func TestSuccessIsRememberedWhileOthersAreCreated(t *testing.T) {
	s := deployed(v1beta2.AppWrapperResuming)
	and("second", absent)(&s)
	verdict(kinds.Succeeded)(&s)
	got := lifecycle.Decide(s, deployedAt).Status.ComponentStatus[0].Conditions
	if !meta.IsStatusConditionTrue(got, string(v1beta2.ComponentSucceeded)) {
		t.Errorf("the first component is done and has %v", got)
	}
}

// The answer to a create may get lost while other components are still refused, or another
// attempt may succeed.
func TestAnExistingComponentIsNotRefused(t *testing.T) {
	s := deployed(v1beta2.AppWrapperResuming)
	and("second", absent)(&s)
	componentCondition(0, v1beta2.ResourcesDeployed, metav1.ConditionFalse, v1beta2.ReasonComponentCreationErrored, 0)(&s)
	got := meta.FindStatusCondition(lifecycle.Decide(s, deployedAt).Status.ComponentStatus[0].Conditions, string(v1beta2.ResourcesDeployed))
	if got.Reason != v1beta2.ReasonComponentCreationInitiated {
		t.Errorf("the first component exists and has %v", got)
	}
}
