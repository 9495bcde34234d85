// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func TestEmpty(t *testing.T) {
	base := func() lifecycle.Snapshot {
		s := oneJob(v1beta2.AppWrapperEmpty)
		s.HasFinalizer, s.Suspend = false, true
		s.Status = v1beta2.AppWrapperStatus{}
		return s
	}
	checkRows(t, base, map[string]row{
		"it becomes Suspended": {
			want: outcome{Phase: v1beta2.AppWrapperSuspended},
		},
		"if it need not wait for quota, the finalizer comes first": {
			given: []change{unsuspended},
			want:  outcome{Phase: v1beta2.AppWrapperEmpty, Effect: lifecycle.AddFinalizer},
		},
		"and then the first attempt begins in the same write": {
			given: []change{unsuspended, func(s *lifecycle.Snapshot) { s.HasFinalizer = true }},
			want: outcome{Phase: v1beta2.AppWrapperResuming, Conditions: map[string]string{
				"QuotaReserved": "True Admitted", "ResourcesDeployed": "True Resuming", "PodsReady": "False Resuming", "Unhealthy": "False Resuming"}},
		},
		"it becomes Suspended if it was admitted for some of its pod sets": {
			given: []change{unsuspended, func(s *lifecycle.Snapshot) {
				s.Components = append(s.Components, s.Components[0])
				s.Components[0].PodSetInfos = 1
			}},
			want: outcome{Phase: v1beta2.AppWrapperSuspended},
		},
		"it fails if a component is invalid, even if it need not wait": {
			given: []change{unsuspended, func(s *lifecycle.Snapshot) { s.Components[0].Problem = "replicas is not a number" }},
			want: outcome{Phase: v1beta2.AppWrapperFailed, Event: "CreateFailed",
				Conditions: map[string]string{"Unhealthy": "True CreateFailed"}},
		},
		"it fails if a component is invalid": {
			given: []change{func(s *lifecycle.Snapshot) { s.Components[0].Problem = "replicas is not a number" }},
			want: outcome{Phase: v1beta2.AppWrapperFailed, Event: "CreateFailed",
				Conditions: map[string]string{"Unhealthy": "True CreateFailed"}},
		},
		"it fails if the AppWrapper is invalid": {
			given: []change{func(s *lifecycle.Snapshot) { s.Problem = "there is no pod set" }},
			want: outcome{Phase: v1beta2.AppWrapperFailed, Event: "CreateFailed",
				Conditions: map[string]string{"Unhealthy": "True CreateFailed"}},
		},
		"a deletion needs no action": {
			given: []change{deleted},
			want:  outcome{Phase: v1beta2.AppWrapperEmpty},
		},
	})

	t.Run("the pod sets are written down", func(t *testing.T) {
		s := base()
		got := lifecycle.Decide(s, deployedAt).Status.ComponentStatus
		want := []v1beta2.AppWrapperComponentStatus{{Kind: "Job", APIVersion: "batch/v1", PodSets: s.Components[0].PodSets}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
