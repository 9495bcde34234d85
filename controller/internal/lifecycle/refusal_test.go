// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"slices"
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
	after := func(denial string, conditions []metav1.Condition) []metav1.Condition {
		conditions[1].Message = denial
		return conditions
	}
	denied, unanswered := lifecycle.Refusal{Message: "no", Denied: true}, lifecycle.Refusal{Message: "nobody there", Unanswered: true}
	// series are refusals so many seconds before, none of which was late.
	series := func(r lifecycle.Refusal, seconds ...time.Duration) v1beta2.AppWrapperStatus {
		refused := status
		for _, s := range seconds {
			refused = lifecycle.Refuse(refused, 0, r, at.Add(-s*time.Second))
		}
		return refused
	}
	foreign := *status.DeepCopy() // another controller has written it, or a person
	foreign.ComponentStatus[0].Conditions = []metav1.Condition{{Type: "CreationRefused", Status: metav1.ConditionTrue, LastTransitionTime: metav1.Time{Time: at.Add(-time.Second)}}}
	cases := map[string]struct {
		before v1beta2.AppWrapperStatus
		final  bool
		denied bool
		want   []metav1.Condition
	}{
		"a first refusal without the latest one is no reason to panic": {before: foreign, want: reversed(refusal("ComponentCreationErrored", at.Add(-time.Second)))},
		"a denial may be over in a moment":                             {before: status, denied: true, want: after("no", refusal("ComponentCreationErrored", at))},
		"it is not believed before 10 seconds": {
			before: series(denied, 9, 8, 7, 5, 1), denied: true,
			want: after("no", refusal("ComponentCreationErrored", at.Add(-9*time.Second)))},
		"the same words after 10 seconds are final": {
			before: series(denied, 10, 9, 8, 6, 2), denied: true,
			want: after("no", refusal("ComponentCreationRejected", at.Add(-10*time.Second)))},
		"other words are not": {
			before: lifecycle.Refuse(series(denied, 10, 9, 8, 6), 0, lifecycle.Refusal{Message: "not yet"}, at.Add(-2*time.Second)), denied: true,
			want: after("no", refusal("ComponentCreationErrored", at.Add(-10*time.Second)))},
		"an answer that gets lost in between changes nothing": {
			before: lifecycle.Refuse(series(denied, 12, 11, 10, 8, 4), 0, unanswered, at.Add(-time.Second)), denied: true,
			want: after("no", refusal("ComponentCreationRejected", at.Add(-11*time.Second)))},
		"what nobody answered for an hour counts from the answer": {
			before: lifecycle.Refuse(lifecycle.Refuse(status, 0, unanswered, at.Add(-time.Hour)), 0, unanswered, at.Add(-15*time.Second)),
			want:   refusal("ComponentCreationErrored", at)},
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
			got := lifecycle.Refuse(c.before, 0, lifecycle.Refusal{Message: "no", Final: c.final, Denied: c.denied}, at)
			if diff := cmp.Diff(c.want, got.ComponentStatus[0].Conditions); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func reversed(conditions []metav1.Condition) []metav1.Condition {
	slices.Reverse(conditions)
	return conditions
}
