// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func TestFailed(t *testing.T) {
	base := func() lifecycle.Snapshot {
		s := deployed(v1beta2.AppWrapperFailed)
		condition(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonFailedComponent, 0)(&s)
		return s
	}
	const failed = v1beta2.AppWrapperFailed
	hold := policy(func(p *lifecycle.Policy) { p.DeletionOnFailureHold = time.Hour })
	paused := condition(v1beta2.DeletingResources, metav1.ConditionFalse, v1beta2.ReasonDeletionPaused, 0)
	initiated := map[string]string{"DeletingResources": "True DeletionInitiated"}
	checkRows(t, base, map[string]row{
		"without a hold the components are deleted at once": {
			want: outcome{Phase: failed, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute, Conditions: initiated},
		},
		"a hold keeps them": {
			given: []change{hold},
			want:  outcome{Phase: failed, Requeue: time.Hour, Conditions: map[string]string{"DeletingResources": "False DeletionPaused"}},
		},
		"a hold keeps them for its whole time after a reset long ago": {
			given: []change{hold, condition(v1beta2.DeletingResources, metav1.ConditionFalse, v1beta2.ReasonDeletionComplete, -2*time.Hour)},
			want:  outcome{Phase: failed, Requeue: time.Hour, Conditions: map[string]string{"DeletingResources": "False DeletionPaused"}},
		},
		"a hold counts from the failure": {
			given: []change{hold, paused},
			after: 20 * time.Minute,
			want:  outcome{Phase: failed, Requeue: 40 * time.Minute},
		},
		"a hold counts from the failure even without phaseTransitionTime": {
			given: []change{hold, paused, func(s *lifecycle.Snapshot) { s.Status.PhaseTransitionTime = nil }},
			after: 20 * time.Minute,
			want:  outcome{Phase: failed, Requeue: 40 * time.Minute},
		},
		"a hold counts from the failure even if another controller recorded it": {
			given: []change{hold, paused, func(s *lifecycle.Snapshot) {
				s.Status.PhaseTransitionTime = &metav1.Time{Time: deployedAt.Add(-time.Hour)}
			}},
			after: 20 * time.Minute,
			want:  outcome{Phase: failed, Requeue: 40 * time.Minute},
		},
		"after the hold they are deleted": {
			given: []change{hold, paused},
			after: time.Hour,
			want:  outcome{Phase: failed, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute, Conditions: initiated},
		},
		"a deletion that has begun is not paused by the hold": {
			given: []change{hold, removing(time.Hour), terminatingJob},
			after: time.Hour + time.Minute,
			want:  outcome{Phase: failed, Requeue: 9 * time.Minute},
		},
		"suspension ends the hold": {
			given: []change{hold, paused, suspend},
			after: 20 * time.Minute,
			want:  outcome{Phase: failed, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute, Conditions: initiated},
		},
		"quota is given back when what is left makes no pods": {
			given: []change{noPods, removing(0), terminatingJob, keptBy("a")},
			want: outcome{Phase: failed, Requeue: 10 * time.Minute, Conditions: map[string]string{
				"QuotaReserved": "False Failed", "ResourcesDeployed": "False Failed"}},
		},
		"quota is given back when nothing is left": {
			given: []change{absent, removing(0)},
			want: outcome{Phase: failed, Conditions: map[string]string{
				"QuotaReserved": "False Failed", "ResourcesDeployed": "False Failed", "DeletingResources": "False DeletionComplete"}},
		},
		"pods that are gone are not ready": {
			given: []change{absent, ready, removing(0)},
			want: outcome{Phase: failed, Conditions: map[string]string{"PodsReady": "False Failed",
				"QuotaReserved": "False Failed", "ResourcesDeployed": "False Failed", "DeletingResources": "False DeletionComplete"}},
		},
		"pods that are kept stay ready, for Kueue would evict them otherwise": {
			given: []change{hold, ready},
			after: time.Minute,
			want:  outcome{Phase: failed, Requeue: time.Hour, Conditions: map[string]string{"DeletingResources": "False DeletionPaused"}},
		},
		"then there is nothing to do": {
			given: []change{removed(0), condition(v1beta2.QuotaReserved, metav1.ConditionFalse, "Failed", 0)},
			after: time.Hour,
			want:  outcome{Phase: failed},
		},
		"deletion ends the hold": {
			given: []change{hold, paused, deleted},
			want:  outcome{Phase: v1beta2.AppWrapperTerminating, Conditions: initiated},
		},
	})
}

// The controller may have been down when the hold began.
func TestTheHoldBeginsWithTheFailureEvenIfNoticedLate(t *testing.T) {
	s := deployed(v1beta2.AppWrapperFailed)
	s.Policy.DeletionOnFailureHold = 10 * time.Minute
	s.Status = lifecycle.Decide(s, deployedAt.Add(5*time.Minute)).Status
	if got := lifecycle.Decide(s, deployedAt.Add(6*time.Minute)).Requeue; got != 4*time.Minute {
		t.Errorf("after 6 of 10 minutes %s are left", got)
	}
}
