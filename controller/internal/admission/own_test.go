// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestWhatTheControllerCouldNotDeployIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		kinds   []schema.GroupVersionKind
		rights  []string // verbs
		away    bool
		asked   []string
		refused string
	}{
		"a kind of its own role, without a question": {kinds: []schema.GroupVersionKind{job, service}},
		"another that it may deploy":                 {kinds: []schema.GroupVersionKind{secret}, rights: []string{"create", "get", "delete"}, asked: []string{"create secrets", "get secrets", "delete secrets"}},
		"one that it may not create":                 {kinds: []schema.GroupVersionKind{secret, secret}, asked: []string{"create secrets"}, refused: "may not create secrets"},
		"one that it could not remove":               {kinds: []schema.GroupVersionKind{secret}, rights: []string{"create", "get"}, asked: []string{"create secrets", "get secrets", "delete secrets"}, refused: "may not delete secrets"},
		"one that is not served is for others":       {kinds: []schema.GroupVersionKind{unknown}},
		"a cluster-scoped one, whatever its rights":  {kinds: []schema.GroupVersionKind{node}, rights: []string{"create", "get", "delete"}, refused: "Node is a cluster-scoped kind"},
		"no answer refuses nothing":                  {kinds: []schema.GroupVersionKind{secret}, away: true, asked: []string{"create secrets"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			o := ownRights{resourceOf: mapper().RESTMapping, allowed: func(_ context.Context, _, verb string, resource schema.GroupVersionResource) (bool, error) {
				asked = append(asked, verb+" "+resource.Resource)
				if tc.away {
					return false, errors.New("the API server is away")
				}
				return slices.Contains(tc.rights, verb), nil
			}}
			var components []wrapped
			for i, kind := range tc.kinds {
				components = append(components, wrapped{kind, field.NewPath("spec", "components").Index(i)})
			}
			problems := o.check(t.Context(), "blue", components)
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("asked (-want +got)\n%s", diff)
			}
			if tc.refused == "" {
				expectProblem(t, problems, "", "")
				return
			}
			if len(problems) != len(tc.kinds) {
				t.Errorf("want a problem for each component, got %v", problems)
			}
			expectProblem(t, problems[:1], field.ErrorTypeForbidden, tc.refused)
		})
	}
}
