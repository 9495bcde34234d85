// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func TestSuspending(t *testing.T) {
	base := func() lifecycle.Snapshot {
		s := deployed(v1beta2.AppWrapperSuspending)
		removing(0)(&s)
		suspend(&s)
		return s
	}
	admitted := func(s *lifecycle.Snapshot) { s.Suspend = false }
	quotaBack := condition(v1beta2.QuotaReserved, metav1.ConditionFalse, "Suspending", 2*time.Minute)
	checkRows(t, base, map[string]row{
		"what exists is deleted": {
			want: outcome{Phase: v1beta2.AppWrapperSuspending, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute},
		},
		"components are deleted even if it was admitted again": {
			given: []change{admitted},
			want:  outcome{Phase: v1beta2.AppWrapperSuspending, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute},
		},
		"quota is kept while a pod is left": {
			given: []change{absent, withPods(runs)},
			want:  outcome{Phase: v1beta2.AppWrapperSuspending, Requeue: 10 * time.Minute},
		},
		"quota is kept while a component is unreadable": {
			given: []change{unreadableJob},
			after: time.Hour,
			want:  outcome{Phase: v1beta2.AppWrapperSuspending, Effect: lifecycle.Delete, Targets: []int{0}},
		},
		"quota is given back when what is left makes no pods": {
			given: []change{noPods, terminatingJob, keptBy("a"), endedAndKept},
			want: outcome{Phase: v1beta2.AppWrapperSuspending, Requeue: 10 * time.Minute,
				Conditions: map[string]string{"QuotaReserved": "False Suspending"}},
		},
		"quota is kept while a component may make pods": {
			given: []change{terminatingJob, keptBy("a")},
			want:  outcome{Phase: v1beta2.AppWrapperSuspending, Requeue: 10 * time.Minute},
		},
		"quota is kept while a pod has not ended": {
			given: []change{absent, endedAndKept, allPods(func(p *lifecycle.Pod) { p.Phase = runs })},
			want:  outcome{Phase: v1beta2.AppWrapperSuspending, Requeue: 10 * time.Minute},
		},
		"quota is kept while something is not being deleted": {
			given: []change{noPods},
			want:  outcome{Phase: v1beta2.AppWrapperSuspending, Effect: lifecycle.Delete, Targets: []int{0}, Requeue: 10 * time.Minute},
		},
		"quota is kept until the removal is saved": {
			given: []change{noPods, terminatingJob, keptBy("a"), condition(v1beta2.DeletingResources, metav1.ConditionFalse, "DeletionComplete", 0)},
			want: outcome{Phase: v1beta2.AppWrapperSuspending, Requeue: 10 * time.Minute,
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
		"what is kept has no quota, and is waited for": {
			given: []change{noPods, terminatingJob, keptBy("a"), quotaBack},
			after: time.Hour,
			want:  outcome{Phase: v1beta2.AppWrapperSuspending, Effect: lifecycle.ForceDelete, Targets: []int{0}},
		},
		"if it was admitted again, it is waited for as long as pods are": {
			given: []change{noPods, terminatingJob, keptBy("a"), quotaBack, admitted},
			after: 11 * time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperSuspending, Effect: lifecycle.ForceDelete, Targets: []int{0}, Requeue: time.Minute},
		},
		"after that nothing can be created in its place": {
			given: []change{noPods, terminatingJob, keptBy("a"), quotaBack, admitted},
			after: 12 * time.Minute,
			want:  outcome{Phase: v1beta2.AppWrapperFailed, Event: "CreateFailed", Conditions: map[string]string{"Unhealthy": "True CreateFailed"}},
		},
		"what may make pods is waited for even if it was admitted again": {
			given: []change{terminatingJob, keptBy("a"), quotaBack, admitted},
			after: time.Hour,
			want:  outcome{Phase: v1beta2.AppWrapperSuspending, Effect: lifecycle.ForceDelete, Targets: []int{0}},
		},
		"quota is given back when nothing is left": {
			given: []change{absent, ready},
			want: outcome{Phase: v1beta2.AppWrapperSuspended, Conditions: map[string]string{
				"QuotaReserved": "False Suspended", "ResourcesDeployed": "False Suspended", "PodsReady": "False Suspended",
				"Unhealthy": "False Suspended", "DeletingResources": "False DeletionComplete"}},
		},
	})
}
