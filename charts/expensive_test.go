// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"strings"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// ceiling is what an expression may cost more for large work than for small. The API server stops at a million, but the
// time that it takes grows with the square of the cost: 60,000 tolerations kept it busy for half a minute.
const ceiling = 50_000

// Long lists of what every kind has make no expression of any policy expensive.
func TestNoExpressionIsExpensive(t *testing.T) {
	all, large := policiesWith(t, nil), bombs()
	for _, list := range []string{"tolerations", "owners"} {
		object := unstructuredOf(t, large[list](true))
		small := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "o"}, "spec": map[string]any{}}}
		small.SetGroupVersionKind(object.GroupVersionKind())
		for name, policy := range all {
			expressions := evaluators(t, policy)
			for i, r := range asked(object) {
				little := costs(t, expressions, asked(small)[i])
				for expression, cost := range costs(t, expressions, r) {
					if cost > little[expression]+ceiling {
						t.Errorf("%s of %s costs %d with many %s (%s)", expression, name, cost, list, r.operation)
					}
				}
			}
		}
	}
}

// asked are the requests with an object.
func asked(object *unstructured.Unstructured) []sent {
	return []sent{{admission.Create, object, nil}, {admission.Update, object, object}, {admission.Delete, nil, object}}
}

type sent struct {
	operation   admission.Operation
	object, old *unstructured.Unstructured
}

// costs are what expressions cost for a request.
func costs(t *testing.T, all map[string]cel.ConditionEvaluator, r sent) map[string]int64 {
	t.Helper()
	of := request{operation: r.operation, annotations: map[string]string{"mlbatch-priorities": "low-priority", "mlbatch-tolerations": "nvidia.com/gpu"}}
	of.labels = map[string]string{"pod-security.kubernetes.io/enforce": "baseline", "mlbatch-pod-security": "baseline"}
	attributes, namespace := of.about(r.object, r.old, nil)
	asked := cel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(attributes.GetResource()), metav1.GroupVersionKind(attributes.GetKind()))
	found := map[string]int64{}
	for name, e := range all {
		_, left, err := e.ForInput(t.Context(), attributes, asked, cel.OptionalVariableBindings{Authorizer: rights(false)}, namespace, celconfig.RuntimeCELCostBudget)
		if found[name] = celconfig.RuntimeCELCostBudget - left; err != nil {
			found[name] = celconfig.RuntimeCELCostBudget
		}
	}
	return found
}

// evaluators are all expressions of a policy, each alone.
func evaluators(t *testing.T, policy admissionregistration.ValidatingAdmissionPolicy) map[string]cel.ConditionEvaluator {
	t.Helper()
	compiler := compilerOf(t, policy)
	all := map[string]cel.ConditionEvaluator{}
	add := func(name string, accessor cel.ExpressionAccessor) {
		all[name] = compiler.CompileCondition([]cel.ExpressionAccessor{accessor}, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
	}
	for _, c := range policy.Spec.MatchConditions {
		add("the match condition "+c.Name, &matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	for _, v := range policy.Spec.Variables {
		add("the variable "+v.Name, &validating.ValidationCondition{Expression: "[variables." + v.Name + "].size() == 1"})
	}
	for i, v := range policy.Spec.Validations {
		add(fmt.Sprintf("validation %d (%.40s…)", i, strings.TrimSpace(v.Expression)), &validating.ValidationCondition{Expression: v.Expression})
	}
	return all
}
