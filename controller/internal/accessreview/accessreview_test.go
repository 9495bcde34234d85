// SPDX-License-Identifier: Apache-2.0

package accessreview

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// apiServer answers each review with the same verdict, or with an error.
type apiServer struct {
	client.Writer // nil: only Create is used
	allowed       bool
	err           error
	asked         authorizationv1.ResourceAttributes
}

func (s *apiServer) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	review := object.(*authorizationv1.SelfSubjectAccessReview)
	s.asked = *review.Spec.ResourceAttributes
	review.Status.Allowed = s.allowed
	return s.err
}

func TestTheControllerAsksAboutItself(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		api := &apiServer{allowed: allowed}
		got, err := Self(t.Context(), api, "blue", "delete", jobs)
		if err != nil || got != allowed {
			t.Errorf("got %t and %v, want %t", got, err, allowed)
		}
		want := authorizationv1.ResourceAttributes{Namespace: "blue", Verb: "delete", Group: "batch", Version: "v1", Resource: "jobs"}
		if diff := cmp.Diff(want, api.asked); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestAReviewThatFailsIsNoPermission(t *testing.T) {
	away := errors.New("the API server is away")
	allowed, err := Self(t.Context(), &apiServer{allowed: true, err: away}, "", "list", jobs)
	if allowed || !errors.Is(err, away) || !strings.Contains(err.Error(), "list jobs.batch") {
		t.Errorf("got %t and %v", allowed, err)
	}
}

func TestAReviewCarriesTheWholeIdentity(t *testing.T) {
	user := authenticationv1.UserInfo{
		Username: "ada", UID: "u-1", Groups: []string{"team"},
		Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}},
	}
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "ada", UID: "u-1", Groups: []string{"team"},
		Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a", "b"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "blue", Verb: "create", Group: "batch", Version: "v1", Resource: "jobs",
		},
	}
	var asked authorizationv1.SubjectAccessReviewSpec
	review := Review(func(_ context.Context, r *authorizationv1.SubjectAccessReview) error {
		asked, r.Status.Allowed = r.Spec, true
		return nil
	})
	if allowed, err := review.Allows(t.Context(), user, "blue", "create", jobs); !allowed || err != nil {
		t.Errorf("got %t and %v", allowed, err)
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestOneOfTwoVerbsLetsAUserWrap(t *testing.T) {
	away := errors.New("the API server is away")
	for name, tc := range map[string]struct {
		allowed string
		fails   error
		want    bool
	}{
		"create":                    {allowed: "create", want: true},
		"wrap":                      {allowed: "wrap", want: true},
		"neither":                   {allowed: "get"},
		"an answer that never came": {allowed: "create", fails: away},
	} {
		t.Run(name, func(t *testing.T) {
			review := Review(func(_ context.Context, r *authorizationv1.SubjectAccessReview) error {
				r.Status.Allowed = r.Spec.ResourceAttributes.Verb == tc.allowed
				return tc.fails
			})
			got, err := review.MayWrap(t.Context(), authenticationv1.UserInfo{Username: "ada"}, "blue", jobs)
			if got != tc.want || !errors.Is(err, tc.fails) {
				t.Errorf("got %t and %v", got, err)
			}
		})
	}
}
