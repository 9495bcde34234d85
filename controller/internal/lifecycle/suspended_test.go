// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/quotareason"
)

func TestSuspended(t *testing.T) {
	base := func() lifecycle.Snapshot { return oneJob(v1beta2.AppWrapperSuspended) }
	infos := func(n int) change { return func(s *lifecycle.Snapshot) { s.Components[0].PodSetInfos = n } }
	waits := func(reason quotareason.Reason) change { return func(s *lifecycle.Snapshot) { s.Waits = reason } }
	said := func(reason quotareason.Reason) outcome {
		return outcome{Phase: v1beta2.AppWrapperSuspended, Conditions: map[string]string{"QuotaReserved": "False " + string(reason)}}
	}
	told := func(s *lifecycle.Snapshot) {
		waits(quotareason.WaitingForQuota)(s)
		s.Status = lifecycle.Decide(*s, deployedAt.Add(time.Minute)).Status
		s.Waits = ""
	}
	waiting := outcome{Phase: v1beta2.AppWrapperSuspended, Conditions: map[string]string{"QuotaReserved": "False Suspended"}}
	resumed := outcome{Phase: v1beta2.AppWrapperResuming, Conditions: map[string]string{
		"QuotaReserved":     "True Admitted",
		"ResourcesDeployed": "True Resuming",
		"PodsReady":         "False Resuming",
		"Unhealthy":         "False Resuming",
	}}
	checkRows(t, base, map[string]row{
		"it waits while it is suspended": {
			given: []change{suspend},
			want:  outcome{Phase: v1beta2.AppWrapperSuspended},
		},
		"in the first seconds its status does not say why": {
			given: []change{suspend, waits(quotareason.WaitingForQuota)}, after: 9 * time.Second,
			want: outcome{Phase: v1beta2.AppWrapperSuspended, Requeue: time.Second},
		},
		"then its status says what Kueue says": {
			given: []change{suspend, waits(quotareason.WaitingForQuota)}, after: 10 * time.Second,
			want: said(quotareason.WaitingForQuota),
		},
		"it says so once": {
			given: []change{suspend, told, waits(quotareason.WaitingForQuota)}, after: time.Hour,
			want: outcome{Phase: v1beta2.AppWrapperSuspended},
		},
		"it says another reason": {
			given: []change{suspend, told, waits(quotareason.ExceedsMaxQuota)}, after: time.Hour,
			want: said(quotareason.ExceedsMaxQuota),
		},
		"it keeps the reason while nothing is known": {
			given: []change{suspend, told}, after: time.Hour,
			want: outcome{Phase: v1beta2.AppWrapperSuspended},
		},
		"it waits without a finalizer": {
			given: []change{suspend, withoutFinalizer},
			want:  outcome{Phase: v1beta2.AppWrapperSuspended},
		},
		"the finalizer comes before the quota is used": {
			given: []change{withoutFinalizer},
			want:  outcome{Phase: v1beta2.AppWrapperSuspended, Effect: lifecycle.AddFinalizer},
		},
		"with the finalizer it resumes": {want: resumed},
		"it resumes with quota for each pod set of each component": {
			given: []change{infos(1), and("more", infos(1)), and("service", noPods, infos(0))},
			want:  resumed,
		},
		"it waits while only some components have quota": {
			given: []change{infos(1), and("more", infos(0))},
			want:  waiting,
		},
		"it waits while only some pod sets of a component have quota": {
			given: []change{infos(1), and("more", twoPodSets, infos(1))},
			want:  waiting,
		},
		"it waits if there is quota for more than its pod sets": {
			given: []change{infos(2)},
			want:  waiting,
		},
		"it gets no finalizer before it has quota for all": {
			given: []change{withoutFinalizer, infos(1), and("more", infos(0))},
			want:  waiting,
		},
		"without Kueue it resumes without any podSetInfo": {
			given: []change{infos(0), and("more", twoPodSets, infos(0))},
			want:  resumed,
		},
		"a deletion removes the finalizer": {
			given: []change{deleted},
			want:  outcome{Phase: v1beta2.AppWrapperSuspended, Effect: lifecycle.RemoveFinalizer},
		},
		"a deletion without a finalizer needs no action": {
			given: []change{deleted, withoutFinalizer},
			want:  outcome{Phase: v1beta2.AppWrapperSuspended},
		},
	})

	t.Run("the names of the components are promised with the move, and old success is forgotten", func(t *testing.T) {
		s := base()
		s.Status.ComponentStatus[0].Name = ""
		finished(&s)
		got := lifecycle.Decide(s, deployedAt).Status.ComponentStatus[0]
		want := metav1.Condition{Type: "ResourcesDeployed", Status: metav1.ConditionUnknown, Reason: "ComponentCreationInitiated", LastTransitionTime: metav1.Time{Time: deployedAt}}
		if got.Name != "train" {
			t.Errorf("the name is %q", got.Name)
		}
		if diff := cmp.Diff([]metav1.Condition{want}, got.Conditions); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
