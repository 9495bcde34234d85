// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
)

var (
	job     = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	service = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	secret  = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	node    = schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	unknown = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Unknown"}
)

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(job, meta.RESTScopeNamespace)
	m.Add(service, meta.RESTScopeNamespace)
	m.Add(secret, meta.RESTScopeNamespace)
	m.Add(node, meta.RESTScopeRoot)
	return m
}

// grants allows what it lists, as "verb resource", and records the requests.
type grants struct {
	allowed string
	fails   bool
	asked   []string
}

func (g *grants) review(_ context.Context, r *authorizationv1.SubjectAccessReview) error {
	if g.fails {
		return errors.New("the API server is away")
	}
	question := r.Spec.ResourceAttributes.Verb + " " + r.Spec.ResourceAttributes.Resource
	g.asked = append(g.asked, question)
	r.Status.Allowed = strings.Contains(g.allowed, question)
	return nil
}

func TestAccessAsksForEachDistinctResource(t *testing.T) {
	for name, tc := range map[string]struct {
		kinds     []schema.GroupVersionKind
		grants    grants
		wantAsked []string
		wantError field.ErrorType
		wantText  string
	}{
		"who may create a resource may wrap it": {
			kinds: []schema.GroupVersionKind{job}, grants: grants{allowed: "create jobs"},
			wantAsked: []string{"create jobs"},
		},
		"who holds wrap needs no right to create": {
			kinds: []schema.GroupVersionKind{job}, grants: grants{allowed: "wrap jobs"},
			wantAsked: []string{"create jobs", "wrap jobs"},
		},
		"who holds neither is refused by name": {
			kinds: []schema.GroupVersionKind{job}, grants: grants{allowed: "create services"},
			wantAsked: []string{"create jobs", "wrap jobs"},
			wantError: field.ErrorTypeForbidden, wantText: `user "ada" may neither create nor wrap jobs.batch in namespace "blue"`,
		},
		"a right to one kind is none to another": {
			kinds: []schema.GroupVersionKind{job, service}, grants: grants{allowed: "create jobs"},
			wantAsked: []string{"create jobs", "create services", "wrap services"},
			wantError: field.ErrorTypeForbidden, wantText: "services",
		},
		"three components of a kind cost one review": {
			kinds: []schema.GroupVersionKind{job, job, job}, grants: grants{allowed: "create jobs"},
			wantAsked: []string{"create jobs"},
		},
		"a kind that is not served is refused without a review": {
			kinds: []schema.GroupVersionKind{unknown}, grants: grants{allowed: "create jobs"},
			wantError: field.ErrorTypeForbidden, wantText: "does not serve the kind Unknown of example.com/v1",
		},
		"a cluster-scoped kind is refused without a review": {
			kinds: []schema.GroupVersionKind{node}, grants: grants{allowed: "create nodes"},
			wantError: field.ErrorTypeForbidden, wantText: "Node is a cluster-scoped kind",
		},
		"a review that fails is nobody's permission": {
			kinds: []schema.GroupVersionKind{job}, grants: grants{fails: true},
			wantError: field.ErrorTypeInternal, wantText: "cannot check whether ada may create jobs.batch",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := access{resourceOf: mapper().RESTMapping, mayWrap: accessreview.Review(tc.grants.review).MayWrap}
			var components []wrapped
			for i, kind := range tc.kinds {
				components = append(components, wrapped{kind, field.NewPath("spec", "components").Index(i)})
			}
			problems := a.check(t.Context(), authenticationv1.UserInfo{Username: "ada"}, "blue", components)
			if diff := cmp.Diff(tc.wantAsked, tc.grants.asked); diff != "" {
				t.Errorf("asked (-want +got)\n%s", diff)
			}
			expectProblem(t, problems, tc.wantError, tc.wantText)
		})
	}
}

func expectProblem(t *testing.T, problems field.ErrorList, kind field.ErrorType, text string) {
	t.Helper()
	if kind == "" {
		if len(problems) > 0 {
			t.Errorf("unexpected problems: %v", problems.ToAggregate())
		}
		return
	}
	if len(problems) != 1 || problems[0].Type != kind || !strings.Contains(problems[0].Error(), text) {
		t.Errorf("want one %s that contains %q, got %v", kind, text, problems)
	}
}

func TestAccessRefusesEveryPlaceOfAForbiddenKind(t *testing.T) {
	a := access{resourceOf: mapper().RESTMapping, mayWrap: accessreview.Review((&grants{}).review).MayWrap}
	root := field.NewPath("spec", "components")
	problems := a.check(t.Context(), authenticationv1.UserInfo{}, "blue", []wrapped{{job, root.Index(0)}, {job, root.Index(1)}})
	if len(problems) != 2 || problems[1].Field != "spec.components[1]" {
		t.Errorf("want a problem for each of two components, got %v", problems)
	}
}
