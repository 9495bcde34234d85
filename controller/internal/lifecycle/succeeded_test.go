// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func TestSucceeded(t *testing.T) {
	base := func() lifecycle.Snapshot {
		s := deployed(v1beta2.AppWrapperSucceeded)
		condition(v1beta2.QuotaReserved, metav1.ConditionFalse, "Succeeded", time.Hour)(&s)
		condition(v1beta2.ResourcesDeployed, metav1.ConditionTrue, "Succeeded", 0)(&s)
		s.Status.PhaseTransitionTime = &metav1.Time{Time: deployedAt.Add(time.Hour)}
		s.Policy.SuccessTTL = 10 * time.Minute
		return s
	}
	const succeeded = v1beta2.AppWrapperSucceeded
	checkRows(t, base, map[string]row{
		"the components are kept, counted from success": {
			after: time.Hour,
			want:  outcome{Phase: succeeded, Requeue: 10 * time.Minute},
		},
		"without phaseTransitionTime the time counts from the condition QuotaReserved": {
			given: []change{func(s *lifecycle.Snapshot) { s.Status.PhaseTransitionTime = nil }},
			after: time.Hour + time.Minute,
			want:  outcome{Phase: succeeded, Requeue: 9 * time.Minute},
		},
		"after their time they are deleted": {
			after: time.Hour + 10*time.Minute,
			want: outcome{Phase: succeeded, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute,
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
		"a deletion that has begun continues": {
			given: []change{removing(2 * time.Hour), terminatingJob},
			after: 2*time.Hour + time.Minute,
			want:  outcome{Phase: succeeded, Requeue: 9 * time.Minute},
		},
		"the status says when they are gone": {
			given: []change{removing(2 * time.Hour), absent},
			after: 3 * time.Hour,
			want: outcome{Phase: succeeded,
				Conditions: map[string]string{"ResourcesDeployed": "False Succeeded", "DeletingResources": "False DeletionComplete"}},
		},
		"then there is nothing to do": {
			given: []change{removed(2 * time.Hour)},
			after: 1000 * time.Hour,
			want:  outcome{Phase: succeeded},
		},
		"the status says when they have cleaned themselves up": {
			given: []change{absent},
			after: time.Hour,
			want:  outcome{Phase: succeeded, Conditions: map[string]string{"ResourcesDeployed": "False Succeeded"}},
		},
		"suspension makes no difference": {
			given: []change{suspend},
			after: time.Hour,
			want:  outcome{Phase: succeeded, Requeue: 10 * time.Minute},
		},
	})
}
