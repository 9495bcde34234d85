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
	checkRows(t, base, map[string]row{
		"what does not exist is created": {
			want: outcome{Phase: v1beta2.AppWrapperResuming, Effect: lifecycle.Create, Targets: []int{0}, Requeue: time.Minute},
		},
		"only what does not exist is created": {
			given: []change{and("more", exists), and("evenmore")},
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Effect: lifecycle.Create, Targets: []int{0, 2}, Requeue: time.Minute},
		},
		"what another controller had not promised yet is promised before it is created": {
			given: []change{withoutIntent},
			want:  outcome{Phase: v1beta2.AppWrapperResuming},
		},
		"so is what another controller had removed from an earlier attempt": {
			given: []change{componentCondition(0, v1beta2.ResourcesDeployed, metav1.ConditionFalse, "CompononetDeleted", -time.Hour)},
			want:  outcome{Phase: v1beta2.AppWrapperResuming},
		},
		"it runs when everything exists": {
			given: []change{exists},
			want:  outcome{Phase: v1beta2.AppWrapperRunning},
		},
		"it runs when everything exists, however late": {
			given: []change{exists},
			after: time.Hour,
			want:  outcome{Phase: v1beta2.AppWrapperRunning},
		},
		"it waits for something that is going away to be gone": {
			given: []change{terminatingJob},
			after: 10 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Requeue: 50 * time.Second},
		},
		"a refusal just now is followed by a pause": {
			given: []change{refused(0)},
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Requeue: time.Second},
		},
		"the pause grows with the time that it has been tried for": {
			given: []change{refused(8 * time.Second)},
			after: 10 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Requeue: 6 * time.Second},
		},
		"after the pause it is tried again": {
			given: []change{refused(8 * time.Second)},
			after: 16 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Effect: lifecycle.Create, Targets: []int{0}, Requeue: 44 * time.Second},
		},
		"the pause ends with the admission grace": {
			given: []change{refused(55 * time.Second)},
			after: 55 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Requeue: 5 * time.Second},
		},
		"a refusal when the admission grace is over counts as a failure": {
			given: []change{refused(55 * time.Second)},
			after: time.Minute,
			want: outcome{Phase: v1beta2.AppWrapperResetting, Retries: 1, Event: "CreateFailed",
				Conditions: map[string]string{"Unhealthy": "True CreateFailed", "DeletingResources": "True DeletionInitiated"}},
		},
		"a creation that was never tried is no failure, however late": {
			after: time.Hour,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Effect: lifecycle.Create, Targets: []int{0}},
		},
		"without an admission grace there is one attempt": {
			given: []change{policy(func(p *lifecycle.Policy) { p.AdmissionGrace = 0 })},
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Effect: lifecycle.Create, Targets: []int{0}},
		},
		"something that never goes away counts as a failure": {
			given: []change{terminatingJob},
			after: time.Minute,
			want:  resets("CreateFailed"),
		},
		"without retries left that fails": {
			given: []change{terminatingJob, retried(3)},
			after: time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperFailed, Retries: 3, Event: "CreateFailed", Conditions: createFailed},
		},
		"a component that is done is not created again when it has gone": {
			given: []change{and("second", refused(0)), finished},
			after: 10 * time.Second,
			want:  outcome{Phase: v1beta2.AppWrapperResuming, Effect: lifecycle.Create, Targets: []int{1}, Requeue: 50 * time.Second},
		},
		"nor is it though its creation had been refused once": {
			given: []change{refused(0), finished},
			want:  outcome{Phase: v1beta2.AppWrapperRunning},
		},
		"a component that is done need not stay": {
			given: []change{terminatingJob, verdict(kinds.Succeeded)},
			want:  outcome{Phase: v1beta2.AppWrapperRunning},
		},
		"without retries left it fails": {
			given: []change{refused(55 * time.Second), retried(3)},
			after: time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperFailed, Retries: 3, Event: "CreateFailed", Conditions: createFailed},
		},
		"a final refusal fails at once": {
			given: []change{rejected},
			want:  outcome{Phase: v1beta2.AppWrapperFailed, Event: "CreateFailed", Conditions: createFailed},
		},
		"suspension comes first": {
			given: []change{rejected, suspend},
			want: outcome{Phase: v1beta2.AppWrapperSuspending, Event: "ExternallySuspended",
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
		"deletion comes before everything": {
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

// The answer to a create may get lost, or another attempt may come to a better one, while
// other components are still refused.
func TestWhatExistsIsNotCalledRefused(t *testing.T) {
	s := deployed(v1beta2.AppWrapperResuming)
	and("second", absent)(&s)
	componentCondition(0, v1beta2.ResourcesDeployed, metav1.ConditionFalse, v1beta2.ReasonComponentCreationErrored, 0)(&s)
	got := meta.FindStatusCondition(lifecycle.Decide(s, deployedAt).Status.ComponentStatus[0].Conditions, string(v1beta2.ResourcesDeployed))
	if got.Reason != v1beta2.ReasonComponentCreationInitiated {
		t.Errorf("the first component exists and has %v", got)
	}
}
