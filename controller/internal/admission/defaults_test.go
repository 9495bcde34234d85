// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
)

func TestDefaultsOfANewAppWrapper(t *testing.T) {
	const queue, user, id = v1beta2.QueueNameLabel, v1beta2.UserLabel, v1beta2.UserIDLabel
	for name, tc := range map[string]struct {
		labels, want map[string]string
		defaultQueue string
	}{
		"without a queue it gets the default one":  {nil, map[string]string{queue: "default", user: "ada", id: "u-1"}, "default"},
		"without a default it stays without queue": {nil, map[string]string{user: "ada", id: "u-1"}, ""},
		"a queue of its own is kept": {
			map[string]string{queue: "mine"}, map[string]string{queue: "mine", user: "ada", id: "u-1"}, "default"},
		"an empty queue label is a choice too": {
			map[string]string{queue: ""}, map[string]string{queue: "", user: "ada", id: "u-1"}, "default"},
		"a borrowed identity is replaced": {
			map[string]string{user: "root", id: "0"}, map[string]string{user: "ada", id: "u-1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			aw := &v1beta2.AppWrapper{}
			aw.Labels = tc.labels
			setDefaults(aw, tc.defaultQueue, authenticationv1.UserInfo{Username: "ada", UID: "u-1"}, false)
			if diff := cmp.Diff(tc.want, aw.Labels); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if aw.Spec.Suspend {
				t.Error("only Kueue may set suspend")
			}
		})
	}
}

func TestOnlyWhoHasAttributeCreatesForAnother(t *testing.T) {
	const user, id = v1beta2.UserLabel, v1beta2.UserIDLabel
	ada := map[string]string{user: "ada", id: "u-1"}
	for name, tc := range map[string]struct {
		sent, want map[string]string
		grants     grants
		asked      []string
		fails      bool
	}{
		"the labels of whoever has the verb are kept": {
			sent: map[string]string{user: "eve", id: "u-2"}, grants: grants{allowed: "attribute appwrappers"},
			want: map[string]string{user: "eve", id: "u-2"}, asked: []string{"attribute appwrappers"}},
		"an author without a UID does not get the sender's": {
			sent: map[string]string{user: "eve"}, grants: grants{allowed: "attribute appwrappers"},
			want: map[string]string{user: "eve"}, asked: []string{"attribute appwrappers"}},
		"a name may come to nothing": {
			sent: map[string]string{user: ""}, grants: grants{allowed: "attribute appwrappers"},
			want: map[string]string{user: ""}, asked: []string{"attribute appwrappers"}},
		"a UID without a name is nobody": {
			sent: map[string]string{id: "u-2"}, grants: grants{allowed: "attribute appwrappers"}, want: ada},
		"who sends none is asked nothing": {
			grants: grants{allowed: "attribute appwrappers"}, want: ada},
		"others cannot create it, even with every other right": {
			sent: map[string]string{user: "eve", id: "u-2"}, grants: grants{allowed: "create appwrappers, control appwrappers"},
			want: ada, asked: []string{"attribute appwrappers"}},
		"a review that fails is an error": {
			sent: map[string]string{user: "eve"}, grants: grants{fails: true}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			aw := given.AppWrapper("a").Build()
			aw.Labels = tc.sent
			ctx := admission.NewContextWithRequest(t.Context(), request(t, admissionv1.Create, nil, aw))
			err := (&defaulter{review: tc.grants.review, namespaces: plain, surroundings: none}).Default(ctx, aw)
			if (err != nil) != tc.fails {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, aw.Labels); diff != "" && !tc.fails {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tc.asked, tc.grants.asked); diff != "" {
				t.Errorf("asked (-want +got)\n%s", diff)
			}
		})
	}
}

// plain is a namespace that says nothing.
func plain(context.Context, string) namespace { return namespace{} }

func TestADefaultOfTheNamespaceIsWrittenIntoTheAppWrapper(t *testing.T) {
	const hang = v1beta2.NoProgressGracePeriodDurationAnnotation
	for sentence, tc := range map[string]struct {
		found     namespace
		operation admissionv1.Operation
		want      string
	}{
		"on creation": {namespace{annotations: map[string]string{hang: "30m"}}, admissionv1.Create, "30m"},
		"not later, which would change what runs": {namespace{annotations: map[string]string{hang: "30m"}}, admissionv1.Update, ""},
		"not if nobody can look at it":            {namespace{unread: errors.New("away")}, admissionv1.Create, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			aw := given.AppWrapper("a").Build()
			var of string
			d := newDefaulter(t)
			d.namespaces = func(_ context.Context, name string) namespace { of = name; return tc.found }
			ctx := admission.NewContextWithRequest(t.Context(), request(t, tc.operation, given.AppWrapper("a").Build(), aw))
			if err := d.Default(ctx, aw); err != nil {
				t.Fatal(err)
			}
			if got := aw.Annotations[hang]; got != tc.want {
				t.Errorf("the annotation is %q, want %q", got, tc.want)
			}
			if asked := tc.operation == admissionv1.Create; asked != (of == given.Namespace) {
				t.Errorf("it looked at namespace %q", of)
			}
		})
	}
}
