// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
)

func TestAQueueWhereKueueDoesNotLookIsAWarning(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"mlbatch-team-namespace": "true"}}
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		queue    map[string]string
		labels   labels.Set
		unread   error
		want     string
	}{
		"a queue in another namespace":        {selector: selector, queue: map[string]string{v1beta2.QueueNameLabel: "q"}, want: `Kueue does not manage namespace "team-a"`},
		"a queue in a namespace of a team":    {selector: selector, queue: map[string]string{v1beta2.QueueNameLabel: "q"}, labels: labels.Set{"mlbatch-team-namespace": "true"}},
		"no queue":                            {selector: selector},
		"an empty queue":                      {selector: selector, queue: map[string]string{v1beta2.QueueNameLabel: ""}},
		"nobody said where Kueue looks":       {queue: map[string]string{v1beta2.QueueNameLabel: "q"}},
		"a namespace that nobody can look at": {selector: selector, queue: map[string]string{v1beta2.QueueNameLabel: "q"}, unread: errors.New("away")},
	} {
		t.Run(name, func(t *testing.T) {
			managed, err := newManaged(tc.selector, nil)
			if err != nil {
				t.Fatal(err)
			}
			if managed != nil {
				managed.labelsOf = func(context.Context, string) (labels.Set, error) { return tc.labels, tc.unread }
			}
			aw := given.AppWrapper("a").With(given.Job("j", 1)).Build()
			aw.Labels = tc.queue
			v := &validator{podSetLimit: 8, managed: managed, own: &ownRights{resourceOf: mapper().RESTMapping}}
			response := admission.WithValidator(scheme(t), v).Handle(t.Context(), request(t, admissionv1.Create, nil, aw))
			if !response.Allowed {
				t.Fatal(response.Result)
			}
			if said := strings.Join(response.Warnings, "\n"); !strings.HasPrefix(said, tc.want) || (said == "") != (tc.want == "") {
				t.Errorf("warns %q, want %q", said, tc.want)
			}
		})
	}
}
