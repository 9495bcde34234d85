// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
)

func TestAQueueWhereKueueDoesNotLookIsAWarning(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"mlbatch-team-namespace": "true"}}
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		queue    map[string]string
		labels   map[string]string
		unread   error
		want     string
	}{
		"a queue in another namespace":        {selector: selector, queue: map[string]string{v1beta2.QueueNameLabel: "q"}, want: `Kueue does not manage namespace "team-a"`},
		"a queue in a namespace of a team":    {selector: selector, queue: map[string]string{v1beta2.QueueNameLabel: "q"}, labels: map[string]string{"mlbatch-team-namespace": "true"}},
		"no queue":                            {selector: selector},
		"an empty queue":                      {selector: selector, queue: map[string]string{v1beta2.QueueNameLabel: ""}},
		"nobody said where Kueue looks":       {queue: map[string]string{v1beta2.QueueNameLabel: "q"}},
		"a namespace that nobody can look at": {selector: selector, queue: map[string]string{v1beta2.QueueNameLabel: "q"}, unread: errors.New("away")},
	} {
		t.Run(name, func(t *testing.T) {
			managed, err := newManaged(tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			read := func(context.Context, string) namespace { return namespace{labels: tc.labels, unread: tc.unread} }
			aw := given.AppWrapper("a").With(given.Job("j", 1)).Build()
			aw.Labels = tc.queue
			v := &validator{limits: admissionrules.DefaultLimits, namespaces: read, surroundings: none, managed: managed, own: &ownRights{resourceOf: mapper().RESTMapping}}
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

// What only the pods would tell otherwise, once the AppWrapper holds quota.
func TestWhatTheNamespaceRefusesIsRefusedOnCreate(t *testing.T) {
	baseline := namespace{labels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted"}}
	const exposed = "spec.components[0].template.spec.template: "
	for name, tc := range map[string]struct {
		found                  namespace
		privileged             bool
		managedBy              string
		wantRefusal, wantWarns string
	}{
		"root on the node is refused":                        {found: baseline, privileged: true, wantRefusal: exposed + "Forbidden: the namespace enforces the Pod Security level baseline"},
		"other pods are a warning":                           {found: baseline, wantWarns: exposed + "these pods do not meet the Pod Security level restricted: "},
		"what another controller deploys is not judged here": {found: baseline, privileged: true, managedBy: "kueue.x-k8s.io/multikueue"},
		"elsewhere anything goes":                            {privileged: true},
		"a namespace that nobody can read does":              {found: namespace{labels: baseline.labels, unread: errors.New("away")}, privileged: true},
	} {
		t.Run(name, func(t *testing.T) {
			aw := given.AppWrapper("a").With(given.Job("j", 1)).Build()
			if tc.privileged {
				raw := &aw.Spec.Components[0].Template.Raw
				*raw = bytes.Replace(*raw, []byte(`"containers":`), []byte(`"hostPID":true,"containers":`), 1)
			}
			if tc.managedBy != "" {
				aw.Spec.ManagedBy = &tc.managedBy
			}
			reads := 0
			read := func(context.Context, string) namespace { reads++; return tc.found }
			managed := managing(t, "team")
			v := &validator{limits: admissionrules.DefaultLimits, namespaces: read, surroundings: none, managed: managed, kueue: sets.New("ada"), own: &ownRights{resourceOf: mapper().RESTMapping}}
			response := admission.WithValidator(scheme(t), v).Handle(t.Context(), request(t, admissionv1.Create, nil, aw))
			if response.Allowed != (tc.wantRefusal == "") || (!response.Allowed && !strings.Contains(response.Result.Message, tc.wantRefusal)) {
				t.Errorf("allowed %t: %v", response.Allowed, response.Result)
			}
			if said := strings.Join(response.Warnings, "\n"); !strings.HasPrefix(said, tc.wantWarns) || (said == "") != (tc.wantWarns == "") {
				t.Errorf("warns %q, want %q", said, tc.wantWarns)
			}
			if reads != 1 {
				t.Errorf("the namespace is read %d times", reads)
			}
		})
	}
}
