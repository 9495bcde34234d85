// SPDX-License-Identifier: Apache-2.0

package accessreview

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
