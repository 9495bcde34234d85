// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func TestRefuse(t *testing.T) {
	status := deployed(v1beta2.AppWrapperResuming).Status
	at := deployedAt.Add(time.Minute)
	refusal := func(reason string, first time.Time) []metav1.Condition {
		return []metav1.Condition{
			{Type: "ResourcesDeployed", Status: metav1.ConditionFalse, Reason: reason, Message: "no", LastTransitionTime: metav1.Time{Time: at}},
			{Type: "CreationRefused", Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Time{Time: first}},
		}
	}
	cases := map[string]struct {
		before v1beta2.AppWrapperStatus
		final  bool
		want   []metav1.Condition
	}{
		"a refusal allows another attempt":                                    {before: status, want: refusal("ComponentCreationErrored", at)},
		"a final refusal does not":                                            {before: status, final: true, want: refusal("ComponentCreationRejected", at)},
		"of a repeated refusal there are two times, the latest and the first": {before: lifecycle.Refuse(status, 0, lifecycle.Refusal{Message: "no"}, at.Add(-time.Second)), want: refusal("ComponentCreationErrored", at.Add(-time.Second))},
		"of an attempt that was late, the delay does not count": {
			before: lifecycle.Refuse(lifecycle.Refuse(status, 0, lifecycle.Refusal{Message: "no"}, deployedAt), 0, lifecycle.Refusal{Message: "no"}, deployedAt.Add(4*time.Second)),
			want:   refusal("ComponentCreationErrored", deployedAt.Add(3*time.Second+55*time.Second)),
		},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			got := lifecycle.Refuse(c.before, 0, lifecycle.Refusal{Message: "no", Final: c.final}, at)
			if diff := cmp.Diff(c.want, got.ComponentStatus[0].Conditions); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
