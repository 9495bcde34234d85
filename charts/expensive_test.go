// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
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

// ceiling is what an expression may cost, beside the question for rights. The API server stops at a million, but the
// time that it takes grows with the square of the cost: 60,000 tolerations kept it busy for half a minute.
const ceiling, question = 200_000, 350_000

// Whatever a member sends, no expression of any policy is expensive. What a policy does not judge for its size,
// another one refuses (TestWorkThatIsTooLargeIsRefusedWithASentence).
func TestNoExpressionIsExpensive(t *testing.T) {
	all := policiesWith(t, nil)
	expressions, judged := map[string]map[string]cel.ConditionEvaluator{}, map[string]bool{}
	for name, policy := range all {
		expressions[name] = evaluators(t, policy)
	}
	for what, of := range merged(bombs(), brinks()) {
		object := unstructuredOf(t, of(true))
		for _, r := range asked(object) {
			resource := request{object: of(true)}.resourceOf(t)
			for _, name := range judging(all, resource, admissionregistration.OperationType(r.operation)) {
				judged[name] = true
				for _, controller := range []bool{false, true} {
					for expression, cost := range costs(t, expressions[name], r, controller) {
						if cost%question > ceiling {
							t.Errorf("%s of %s costs %d with many %s (%s, by a controller: %t)", expression, name, cost, what, r.operation, controller)
						}
					}
				}
			}
		}
	}
	for name := range all {
		if !judged[name] && name != "mlbatch-wrapped" {
			t.Errorf("%s judged nothing", name)
		}
	}
}

// brinks are work that is as large as it may be.
func brinks() map[string]func(suspend bool) string {
	groups := func(count int, spec string) func(bool) string {
		return ray(`"workerGroupSpecs":[` + repeat(count, `{"groupName":"a","template":{"spec":{`+spec+`}}}`) + `]`)
	}
	return map[string]func(bool) string{
		"few worker groups": groups(64, `"nodeName":""`),
		"few containers":    groups(50, `"containers":[`+repeat(10, `{"name":"c"}`)+`]`),
		"few variables":     groups(50, `"containers":[`+repeat(10, `{"name":"c","env":[`+repeat(8, `{"name":"v"}`)+`]}`)+`]`),
		"few tolerations":   groups(50, `"tolerations":[`+repeat(10, `{"key":"example.com/t"}`)+`]`),
		"few capabilities":  groups(50, `"containers":[{"name":"c","securityContext":{"capabilities":{"add":[`+repeat(64, `"KILL"`)+`]}}}]`),
		"few ports":         groups(50, containerWith(`"ports":[`+repeat(80, `{"containerPort":1}`)+`]`)),
		"few amounts":       groups(40, containerWith(`"resources":{"requests":{`+keyed(100*15, `"ray.io/%d":"1"`)+`}}`)),
		"few files":         groups(50, `"volumes":[{"name":"v","downwardAPI":{"items":[`+repeat(80, `{"path":"v"}`)+`]}}]`),
		"few labels":        torch(`,"labels":{`+keyed(4000*14, `"ray.io/%d":""`)+`}`, worker(`"nodeName":""`)),
	}
}

func repeat(count int, entry string) string { return strings.Repeat(entry+",", count-1) + entry }

func merged(all ...map[string]func(bool) string) map[string]func(bool) string {
	found := map[string]func(bool) string{}
	for _, some := range all {
		maps.Copy(found, some)
	}
	return found
}

// asked are the requests with an object, stored, new or both.
func asked(object *unstructured.Unstructured) []sent {
	few := object.DeepCopy()
	few.Object["spec"] = map[string]any{"suspend": true}
	return []sent{
		{admission.Create, object, nil}, {admission.Update, object, object}, {admission.Update, few, object}, {admission.Update, object, few},
		{admission.Delete, nil, object},
	}
}

type sent struct {
	operation   admission.Operation
	object, old *unstructured.Unstructured
}

// costs are what expressions cost for a request: the match conditions, and all others only if they are true.
func costs(t *testing.T, all map[string]cel.ConditionEvaluator, r sent, controller bool) map[string]int64 {
	t.Helper()
	of := request{operation: r.operation, annotations: map[string]string{"mlbatch-priorities": "low-priority", "mlbatch-tolerations": "nvidia.com/gpu"}}
	of.labels = map[string]string{"pod-security.kubernetes.io/enforce": "baseline", "mlbatch-pod-security": "baseline"}
	attributes, namespace := of.about(r.object, r.old, nil)
	asked := cel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(attributes.GetResource()), metav1.GroupVersionKind(attributes.GetKind()))
	found, matches := map[string]int64{}, true
	evaluate := func(name string) {
		results, left, err := all[name].ForInput(t.Context(), attributes, asked, cel.OptionalVariableBindings{Authorizer: rights(controller)}, namespace, celconfig.RuntimeCELCostBudget)
		if found[name] = celconfig.RuntimeCELCostBudget - left; err != nil {
			found[name] = celconfig.RuntimeCELCostBudget
		}
		matches = matches && (len(results) != 1 || results[0].EvalResult != types.False)
	}
	for name := range all {
		if strings.HasPrefix(name, condition) {
			evaluate(name)
		}
	}
	if !matches {
		return found
	}
	for name := range all {
		if !strings.HasPrefix(name, condition) {
			evaluate(name)
		}
	}
	return found
}

const condition = "the match condition "

// evaluators are all expressions of a policy, each alone.
func evaluators(t *testing.T, policy admissionregistration.ValidatingAdmissionPolicy) map[string]cel.ConditionEvaluator {
	t.Helper()
	compiler := compilerOf(t, policy)
	all := map[string]cel.ConditionEvaluator{}
	add := func(name string, accessor cel.ExpressionAccessor) {
		all[name] = compiler.CompileCondition([]cel.ExpressionAccessor{accessor}, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
	}
	for _, c := range policy.Spec.MatchConditions {
		add(condition+c.Name, &matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	for _, v := range policy.Spec.Variables {
		add("the variable "+v.Name, &validating.ValidationCondition{Expression: "[variables." + v.Name + "].size() == 1"})
	}
	for i, v := range policy.Spec.Validations {
		add(fmt.Sprintf("validation %d (%.40s…)", i, strings.TrimSpace(v.Expression)), &validating.ValidationCondition{Expression: v.Expression})
	}
	return all
}
