// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// oldest is the oldest Kubernetes that the charts support: its API server must know all functions
// that the policies use.
var oldest = version.MajorMinor(1, 30)

// policies are the compiled policies of the platform, by name.
func policies(t *testing.T) map[string]validating.Validator {
	t.Helper()
	compiled := map[string]validating.Validator{}
	for name, policy := range policiesWith(t, nil) {
		compiled[name] = compile(t, policy)
	}
	return compiled
}

func policiesWith(t *testing.T, values map[string]any) map[string]admissionregistration.ValidatingAdmissionPolicy {
	t.Helper()
	rendered, err := renderLight(t, here(t), "mlbatch", values)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]admissionregistration.ValidatingAdmissionPolicy{}
	for _, document := range strings.Split(rendered.Manifest, "\n---\n") {
		if parse(t, document).Kind != "ValidatingAdmissionPolicy" {
			continue
		}
		var policy admissionregistration.ValidatingAdmissionPolicy
		if err := yaml.UnmarshalStrict([]byte(document), &policy); err != nil {
			t.Fatal(err)
		}
		found[policy.Name] = policy
	}
	return found
}

// validators are compiled policies, by their text. An API server shares them among all requests, too.
var validators sync.Map

// compile compiles a policy as an API server does that stores it.
func compile(t *testing.T, policy admissionregistration.ValidatingAdmissionPolicy) validating.Validator {
	t.Helper()
	text := string(must(json.Marshal(policy))(t))
	known, is := validators.Load(text)
	if !is {
		known = validator(t, policy)
		validators.Store(text, known)
	}
	return known.(validating.Validator)
}

func validator(t *testing.T, policy admissionregistration.ValidatingAdmissionPolicy) validating.Validator {
	t.Helper()
	compiler := compilerOf(t, policy)
	authorized, plain := cel.OptionalVariableDeclarations{HasAuthorizer: true}, cel.OptionalVariableDeclarations{}
	var conditions, validations, messages []cel.ExpressionAccessor
	for _, c := range policy.Spec.MatchConditions {
		conditions = append(conditions, &matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	for _, v := range policy.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		var message cel.ExpressionAccessor
		if v.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		messages = append(messages, message)
	}
	matcher := matchconditions.NewMatcher(compiler.CompileCondition(conditions, authorized, environment.NewExpressions),
		policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	return validating.NewValidator(compiler.CompileCondition(validations, authorized, environment.NewExpressions), matcher,
		compiler.CompileCondition(nil, authorized, environment.NewExpressions),
		compiler.CompileCondition(messages, plain, environment.NewExpressions), policy.Spec.FailurePolicy, nil)
}

// compilerOf knows the variables of a policy.
func compilerOf(t *testing.T, policy admissionregistration.ValidatingAdmissionPolicy) *cel.CompositedCompiler {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(oldest))
	if err != nil {
		t.Fatal(err)
	}
	authorized := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range policy.Spec.Variables {
		variable := &validating.Variable{Name: v.Name, Expression: v.Expression}
		if result := compiler.CompileAndStoreVariable(variable, authorized, environment.NewExpressions); result.Error != nil {
			t.Errorf("%s: variable %s: %v", policy.Name, v.Name, result.Error)
		}
	}
	return compiler
}

// request is what a policy judges.
type request struct {
	operation   admission.Operation
	subresource string
	resource    string            // with group and subresource, if the kind does not say it
	object, old string            // YAML; the kind is that of either
	options     string            // of a deletion; YAML
	labels      map[string]string // of the namespace
	annotations map[string]string // of the namespace
}

// judge returns the refusals of a policy, in the order of its validations.
func judge(t *testing.T, policy validating.Validator, r request, may bool) (refusals []string) {
	t.Helper()
	for _, d := range decide(t, policy, r, may) {
		if d.Evaluation == validating.EvalError {
			t.Errorf("cannot evaluate: %s", d.Message)
		} else if d.Action == validating.ActionDeny {
			refusals = append(refusals, d.Message)
		}
	}
	return refusals
}

// decide also returns what the API server cannot evaluate, and therefore refuses.
func decide(t *testing.T, policy validating.Validator, r request, may bool) []validating.PolicyDecision {
	t.Helper()
	var options runtime.Object
	if r.options != "" {
		options = unstructuredOf(t, "{apiVersion: v1, kind: DeleteOptions, "+r.options+"}")
	}
	attributes, namespace := r.about(unstructuredOf(t, r.object), unstructuredOf(t, r.old), options)
	result := policy.Validate(t.Context(), attributes.GetResource(), attributes, nil, namespace, celconfig.RuntimeCELCostBudget, rights(may))
	return result.Decisions
}

// about is what the API server knows of a request with these objects.
func (r request) about(object, old *unstructured.Unstructured, options runtime.Object) (*admission.VersionedAttributes, *corev1.Namespace) {
	known := object
	if known == nil {
		known = old
	}
	gvk := known.GroupVersionKind()
	gvr := gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s")
	if resource, _, is := strings.Cut(r.resource, "/"); is { // the kind is that of the subresource
		name, group, _ := strings.Cut(resource, ".")
		gvr = schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}
	}
	member := &user.DefaultInfo{Name: "mallory"}
	attributes := &admission.VersionedAttributes{VersionedKind: gvk}
	var newObject, oldObject runtime.Object
	if object != nil {
		newObject, attributes.VersionedObject = object, admission.NewLazyObject(object)
	}
	if old != nil {
		oldObject, attributes.VersionedOldObject = old, admission.NewLazyObject(old)
	}
	attributes.Attributes = admission.NewAttributesRecord(newObject, oldObject, gvk, "blue", known.GetName(), gvr, r.subresource, r.operation, options, false, member)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "blue", Labels: r.labels, Annotations: r.annotations}}
	return attributes, namespace
}

// parsed are objects by their text. Policies change none.
var parsed sync.Map

func unstructuredOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	if known, is := parsed.Load(text); is {
		return known.(*unstructured.Unstructured)
	}
	o := &unstructured.Unstructured{}
	defer parsed.Store(text, o)
	unmarshal := func(text []byte, into any) error { return yaml.Unmarshal(text, into) }
	if strings.HasPrefix(text, `{"`) { // a megabyte of YAML takes minutes
		unmarshal = json.Unmarshal
	}
	if err := unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

// rights answers whether the user has the verb control on appwrappers. Nobody has another one.
type rights bool

func (may rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	asked := schema.GroupResource{Group: a.GetAPIGroup(), Resource: a.GetResource()}
	if bool(may) && a.GetVerb() == "control" && asked.String() == "appwrappers.workload.codeflare.dev" && a.GetNamespace() == "blue" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

const (
	freeJob       = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, finalizers: [a]}, spec: {n: 1}}`
	ownedJob      = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, finalizers: [a], ownerReferences: [{kind: AppWrapper, name: train, controller: true}]}, spec: {n: 1}}`
	otherJob      = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, finalizers: [a], ownerReferences: [{kind: AppWrapper, name: other, controller: true}]}, spec: {n: 1}}`
	grownJob      = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, finalizers: [a], ownerReferences: [{kind: AppWrapper, name: train, controller: true}]}, spec: {n: 2}}`
	looseJob      = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, ownerReferences: [{kind: AppWrapper, name: train, controller: true}]}, spec: {n: 1}}`
	labelled      = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, labels: {a: b}, finalizers: [a], ownerReferences: [{kind: AppWrapper, name: train, controller: true}]}, spec: {n: 1}}`
	prebuilt      = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, labels: {kueue.x-k8s.io/prebuilt-workload-name: w}}, spec: {n: 1}}`
	dependent     = `{apiVersion: batch/v1, kind: Job, metadata: {name: c, ownerReferences: [{kind: AppWrapper, name: train}]}, spec: {a: b}}`
	independent   = `{apiVersion: batch/v1, kind: Job, metadata: {name: c}, spec: {a: b}}`
	ownedPod      = `{apiVersion: v1, kind: Pod, metadata: {name: p, ownerReferences: [{kind: Job, name: train, controller: true}]}, spec: {n: 1}}`
	grownPod      = `{apiVersion: v1, kind: Pod, metadata: {name: p, ownerReferences: [{kind: Job, name: train, controller: true}]}, spec: {n: 2}}`
	ownedBatchJob = `{apiVersion: batch/v1, kind: Job, metadata: {name: s-0, ownerReferences: [{kind: JobSet, name: s, controller: true}]}, spec: {a: b}}`
	// Deleting these makes their owners create others.
	ownedReplicaSet = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: d-1, ownerReferences: [{kind: Deployment, name: d, controller: true}]}, spec: {a: b}}`
	scale           = `{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: j}, spec: {replicas: 9}}`
	wrapper         = `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: train, finalizers: [workload.codeflare.dev/finalizer, mine]}, spec: {components: [1]}}`
	bare            = `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: train}, spec: {components: [1]}}`
	dying           = `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: train, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [workload.codeflare.dev/finalizer]}, spec: {components: [1]}}`
	emptied         = `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: train, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [workload.codeflare.dev/finalizer]}, spec: {components: []}}`
	unguarded       = `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: train, finalizers: [mine]}, spec: {components: [1]}}`
	foreign         = `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: train, finalizers: [workload.codeflare.dev/finalizer]}, spec: {components: [1]}}`
)

// Whatever makes pods could name a spoofed owner.
func TestTheOwnersOfExtraKindsAreJudged(t *testing.T) {
	ownership := policiesWith(t, map[string]any{"appwrapper": map[string]any{"config": map[string]any{"appwrapper": map[string]any{
		"extraKinds": []any{map[string]any{"group": "example.com", "version": "v1", "kind": "Rocket", "resource": "rockets"}},
	}}}})["mlbatch-ownership"]
	for _, wanted := range []schema.GroupResource{
		{Group: "example.com", Resource: "rockets"}, {Group: "example.com", Resource: "rockets/scale"},
		{Resource: "pods"}, {Group: "batch", Resource: "*"}, {Group: "ray.io", Resource: "*/scale"}, {Group: "kueue.x-k8s.io", Resource: "workloads"},
	} {
		if !slices.ContainsFunc(ownership.Spec.MatchConstraints.ResourceRules, func(r admissionregistration.NamedRuleWithOperations) bool {
			return slices.Contains(r.APIGroups, wanted.Group) && slices.Contains(r.Resources, wanted.Resource)
		}) {
			t.Errorf("nobody judges the owners of %s", wanted)
		}
	}
}

// An administrator can look first.
func TestPoliciesCanWarnOnly(t *testing.T) {
	for enforcement, want := range map[string][]admissionregistration.ValidationAction{
		"Deny": {admissionregistration.Deny},
		"Warn": {admissionregistration.Warn, admissionregistration.Audit},
	} {
		rendered := must(render(t, "mlbatch", map[string]any{
			"policies":   map[string]any{"enforcement": enforcement},
			"appwrapper": map[string]any{"config": map[string]any{"appwrapper": map[string]any{"policies": map[string]any{"placement": false, "exposure": false, "podSecurity": false}}}},
		}))(t)
		bindings := 0
		for _, document := range strings.Split(rendered.Manifest, "\n---\n") {
			var binding admissionregistration.ValidatingAdmissionPolicyBinding
			if parse(t, document).Kind != "ValidatingAdmissionPolicyBinding" {
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(document), &binding); err != nil {
				t.Fatal(err)
			}
			if bindings++; !slices.Equal(binding.Spec.ValidationActions, want) {
				t.Errorf("%s: %s does %v", enforcement, binding.Name, binding.Spec.ValidationActions)
			}
		}
		if bindings != 11 {
			t.Errorf("there are %d bindings", bindings)
		}
	}
}

// An administrator can do without one of them.
func TestEachPolicyCanBeDisabledAlone(t *testing.T) {
	values := map[string]string{
		"ownership": "mlbatch-ownership", "started": "mlbatch-started", "lifecycle": "mlbatch-lifecycle", "labels": "mlbatch-labels", "growth": "mlbatch-growth",
		"placement": "mlbatch-placement", "priorities": "mlbatch-priorities", "exposure": "mlbatch-exposure", "podSecurity": "mlbatch-pod-security", "wrapped": "mlbatch-wrapped",
		"size": "mlbatch-size",
	}
	all := policiesWith(t, nil)
	if len(all) != len(values) {
		t.Errorf("there are %d policies", len(all))
	}
	for value, name := range values {
		off := map[string]any{"policies": map[string]any{value: map[string]any{"enabled": false}}}
		if value == "placement" || value == "exposure" || value == "podSecurity" { // the webhook's switch has to be the same
			off["appwrapper"] = map[string]any{"config": map[string]any{"appwrapper": map[string]any{"policies": map[string]any{value: false}}}}
		}
		left := policiesWith(t, off)
		if _, there := left[name]; there || len(left) != len(all)-1 {
			t.Errorf("without %s there are %d policies", value, len(left))
		}
		if manifest := must(renderLight(t, here(t), "mlbatch", off))(t).Manifest; strings.Contains(manifest, "policyName: "+name+"\n") {
			t.Errorf("without %s there is its binding", value)
		}
	}
}

// An administrator's group can act as a controller in an emergency.
func TestOthersCanBeMadeControllers(t *testing.T) {
	manifest := must(render(t, "mlbatch", map[string]any{"policies": map[string]any{"controllers": map[string]any{
		"groups": []any{"emergency"}, "users": []any{"root"}, "serviceAccounts": []any{map[string]any{"name": "own", "namespace": "operators"}},
	}}}))(t).Manifest
	var bound []string
	for _, document := range strings.Split(manifest, "\n---\n") {
		var binding rbacv1.ClusterRoleBinding
		if parse(t, document).Kind != "ClusterRoleBinding" || yaml.Unmarshal([]byte(document), &binding) != nil || binding.RoleRef.Name != "mlbatch-control" {
			continue
		}
		for _, s := range binding.Subjects {
			bound = append(bound, s.Kind+" "+s.Namespace+"/"+s.Name)
		}
	}
	for _, who := range []string{"Group /emergency", "User /root", "ServiceAccount operators/own", "User /system:kube-controller-manager"} {
		if !slices.Contains(bound, who) {
			t.Errorf("%s is not among %q", who, bound)
		}
	}
	for _, who := range bound {
		if strings.HasPrefix(who, "Group /system:") && who != "Group /system:serviceaccounts:kube-system" {
			t.Errorf("%s may act as a controller", who)
		}
	}
}

// What members are refused and controllers may do.
func TestPoliciesRefuseMembersWhatOnlyControllersDo(t *testing.T) {
	compiled := policies(t)
	for name, c := range map[string]struct {
		policy string
		request
		want string
	}{
		"an object of an owner":                       {"ownership", request{operation: admission.Create, object: ownedJob}, "only controllers may create objects that another object controls"},
		"an object that gets an owner":                {"ownership", request{operation: admission.Update, object: ownedJob, old: freeJob}, "only controllers may change which object controls"},
		"an object that leaves it":                    {"ownership", request{operation: admission.Update, object: freeJob, old: ownedJob}, "only controllers may change which object controls"},
		"an object that changes it":                   {"ownership", request{operation: admission.Update, object: otherJob, old: ownedJob}, "only controllers may change which object controls"},
		"work that dies with another object":          {"ownership", request{operation: admission.Create, object: dependent}, "only controllers may make what runs pods depend on another object"},
		"work that begins to":                         {"ownership", request{operation: admission.Update, object: dependent, old: independent}, "remove metadata.ownerReferences"},
		"work that depends on it in another way":      {"ownership", request{operation: admission.Update, object: strings.Replace(dependent, "name: train", "name: train, blockOwnerDeletion: true", 1), old: dependent}, "remove metadata.ownerReferences"},
		"a Run that dies with another object":         {"ownership", request{operation: admission.Create, object: strings.NewReplacer("batch/v1", "codeflare.dev/v1alpha1", "kind: Job", "kind: Run").Replace(dependent)}, "remove metadata.ownerReferences"},
		"an autoscaler of a PyTorchJob":               {"growth", request{operation: admission.Create, object: autoscalerOf("kubeflow.org/v1", "PyTorchJob", "")}, "can scale a Deployment, StatefulSet, ReplicaSet or ReplicationController only"},
		"an autoscaler that turns to one":             {"growth", request{operation: admission.Update, object: autoscalerOf("kubeflow.org/v1", "PyTorchJob", ""), old: autoscalerOf("apps/v1", "Deployment", "")}, "submit the work with the size that you need"},
		"an autoscaler that says to be another's":     {"growth", request{operation: admission.Create, object: autoscalerOf("ray.io/v1", "RayCluster", "ownerReferences: [{kind: ScaledObject, name: o, controller: true}]")}, "can scale a Deployment"},
		"an autoscaler of a kind that sounds like it": {"growth", request{operation: admission.Create, object: autoscalerOf("example.com/v1", "Deployment", "")}, "can scale a Deployment"},
		"an owned object that grows": {"started", request{operation: admission.Update, object: grownJob, old: ownedJob},
			"it belongs to AppWrapper train, which got quota for its spec as it is: delete AppWrapper train and submit"},
		"an owned object without its finalizer": {"lifecycle", request{operation: admission.Update, object: looseJob, old: ownedJob}, "only controllers may remove the finalizer a of this PyTorchJob"},
		"a cluster that gets another hash": {"started", request{operation: admission.Update, object: ownedCluster("annotations: {ray.io/hash: b}"), old: ownedCluster("annotations: {ray.io/hash: a}")},
			"it belongs to RayService s: only controllers may change its labels and annotations of kueue.x-k8s.io/, "},
		"a cluster that loses its service": {"started", request{operation: admission.Update, object: ownedCluster("labels: {}"), old: ownedCluster("labels: {ray.io/originated-from-cr-name: s}")},
			"it belongs to RayService s: only controllers may change its labels and annotations of kueue.x-k8s.io/, "},
		"an object that claims another AppWrapper": {"started", request{operation: admission.Update, object: ownedCluster("labels: {workload.codeflare.dev/appwrapper: b}"), old: ownedCluster("labels: {}")},
			"it belongs to RayService s: only controllers may change its labels and annotations of kueue.x-k8s.io/, "},
		"an AppWrapper of a Run":          {"ownership", request{operation: admission.Create, object: ofRun("digits", "n: 1")}, "only controllers may create objects that another object controls"},
		"an AppWrapper that gets a Run":   {"ownership", request{operation: admission.Update, object: ofRun("digits", "n: 1"), old: ofNoRun("n: 1")}, "only controllers may change which object controls"},
		"an AppWrapper of another Run":    {"ownership", request{operation: admission.Update, object: ofRun("other", "n: 1"), old: ofRun("digits", "n: 1")}, "only controllers may change which object controls"},
		"an AppWrapper that leaves a Run": {"ownership", request{operation: admission.Update, object: ofNoRun("n: 1"), old: ofRun("digits", "n: 1")}, "only controllers may change which object controls"},
		"a Run's AppWrapper that starts":  {"started", request{operation: admission.Update, object: ofRun("digits", "suspend: false"), old: ofRun("digits", "suspend: true")}, "it belongs to Run digits"},
		"a Run's AppWrapper that hides": {"started", request{operation: admission.Update, object: strings.Replace(ofRun("digits", "n: 1"), "/run: a", "/run: b", 1), old: ofRun("digits", "n: 1")},
			"codeflare.dev/run as it is"},
		"a new scale":                          {"ownership", request{operation: admission.Update, object: scale, old: scale, subresource: "scale", resource: "deployments.apps/scale"}, "only controllers may scale work"},
		"an AppWrapper without its finalizer":  {"lifecycle", request{operation: admission.Update, object: unguarded, old: wrapper}, "only controllers may remove the finalizer"},
		"an AppWrapper without any finalizers": {"lifecycle", request{operation: admission.Update, object: bare, old: wrapper}, "only controllers may remove the finalizer"},
		"a pod of an owner that gets more":     {"started", request{operation: admission.Update, subresource: "resize", object: grownPod, old: ownedPod}, "it belongs to Job train"},
		"work that is deleted without its pods": {"lifecycle", request{operation: admission.Delete, old: freeJob, options: "propagationPolicy: Orphan"},
			"in the background only"},
		"a Job deleted by a client that says nothing": {"lifecycle", request{operation: admission.Delete, old: strings.Replace(ownedBatchJob, "JobSet", "AppWrapper", 1), options: "gracePeriodSeconds: 0"},
			"with the propagationPolicy Background"},
		"the same, by an old client": {"lifecycle", request{operation: admission.Delete, old: freeJob, options: "orphanDependents: true"},
			"in the background only"},
		"a submitter deleted without its pod": {"lifecycle", request{operation: admission.Delete, old: `{apiVersion: batch/v1, kind: Job, metadata: {name: j}}`, options: "propagationPolicy: Orphan"}, "in the background only"},
		"a pod that ends next year":           {"lifecycle", request{operation: admission.Delete, old: podWith(""), options: "gracePeriodSeconds: 31"}, "--grace-period=30"},
		"a pod that takes its time":           {"lifecycle", request{operation: admission.Delete, old: podWith("terminationGracePeriodSeconds: 31"), options: "propagationPolicy: Background"}, "--grace-period=30"},
		"a Job that a JobSet creates anew":    {"lifecycle", request{operation: admission.Delete, old: ownedBatchJob, options: "propagationPolicy: Background"}, "it belongs to JobSet s"},
		"a ReplicaSet that comes again":       {"lifecycle", request{operation: admission.Delete, old: ownedReplicaSet, options: "propagationPolicy: Background"}, "it belongs to Deployment d"},
		"the same, prepared":                  {"lifecycle", request{operation: admission.Update, object: strings.Replace(freeJob, "[a]", "[a, orphan]", 1), old: freeJob}, "remove orphan from metadata.finalizers"},
		"the same, prepared from birth":       {"lifecycle", request{operation: admission.Create, object: strings.Replace(freeJob, "[a]", "[orphan]", 1)}, "remove orphan from metadata.finalizers"},
		"the quota of other work":             {"lifecycle", request{operation: admission.Create, object: strings.Replace(freeJob, "finalizers: [a]", "labels: {kueue.x-k8s.io/prebuilt-workload-name: w}", 1)}, "prebuilt-workload-name"},
		"the quota of other work, by an annotation": {"lifecycle", request{operation: admission.Update, object: strings.Replace(bare, "name: train", "name: train, annotations: {kueue.x-k8s.io/prebuilt-workload-name: w}", 1), old: bare},
			"prebuilt-workload-name"},
		"a pod with an AppWrapper's label":                  {"labels", request{operation: admission.Create, object: labelledPod("train")}, "of a pod"},
		"a pod that gets it":                                {"labels", request{operation: admission.Update, object: labelledPod("train"), old: podWith("")}, "of a pod"},
		"a pod that gets another one":                       {"labels", request{operation: admission.Update, object: labelledPod("train"), old: labelledPod("other")}, "of a pod"},
		"a pod that hides":                                  {"labels", request{operation: admission.Update, object: podWith(""), old: labelledPod("train")}, "of a pod"},
		"a pod that gets it with its status":                {"labels", request{operation: admission.Update, subresource: "status", object: labelledPod("train"), old: podWith("")}, "of a pod"},
		"a group whose pods get it":                         {"labels", request{operation: admission.Create, object: rayClusterWith("workerGroupSpecs: [{labels: {workload.codeflare.dev/appwrapper: train}}]")}, "a pod template"},
		"a head that gets it":                               {"labels", request{operation: admission.Update, object: rayJobWith("headGroupSpec: {labels: {workload.codeflare.dev/appwrapper: train}}"), old: rayJobWith("headGroupSpec: {}")}, "a pod template"},
		"a RayCluster that KubeRay gives up":                {"started", request{operation: admission.Update, object: rayClusterWith("headGroupSpec: {rayStartParams: {labels: a=b}}"), old: rayClusterWith("headGroupSpec: {rayStartParams: {}}")}, "only suspend of its spec can be changed"},
		"one that it gives up for an annotation":            {"started", request{operation: admission.Update, object: annotated(rayClusterWith("a: b"), "ray.io/ft-enabled: x"), old: rayClusterWith("a: b")}, "ray.io/ft-enabled as it is"},
		"a RayJob that KubeRay gives up":                    {"started", request{operation: admission.Update, object: rayJobThat("activeDeadlineSeconds: -1"), old: rayJobThat("a: b")}, "only suspend of its spec can be changed"},
		"a RayJob whose attempts overlap":                   {"growth", request{operation: admission.Create, object: rayJobThat("backoffLimit: 1, rayClusterSpec: {headGroupSpec: {template: {spec: {terminationGracePeriodSeconds: 31}}}}")}, "lower one of the two"},
		"a template that gets it":                           {"labels", request{operation: admission.Update, object: workWith("apps/v1", "Deployment", "template: "+labelledTemplate), old: workWith("apps/v1", "Deployment", "template: {}")}, "a pod template"},
		"a template that gets another one":                  {"labels", request{operation: admission.Update, object: workWith("apps/v1", "Deployment", "template: "+labelledTemplate), old: workWith("apps/v1", "Deployment", "template: "+strings.Replace(labelledTemplate, "train", "other", 1))}, "a pod template"},
		"an AppWrapper that is emptied while it is deleted": {"started", request{operation: admission.Update, object: emptied, old: dying}, "it is being deleted: wait until it is gone and submit it"},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(t, compiled["mlbatch-"+c.policy], c.request, false)
			if len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("want one refusal with %q, got %q", c.want, got)
			}
			if got := judge(t, compiled["mlbatch-"+c.policy], c.request, true); len(got) > 0 {
				t.Errorf("a controller is refused: %q", got)
			}
		})
	}
}

// An autoscaler acts as a controller. What it adds to work has no quota, whoever created it.
func TestNobodyScalesWork(t *testing.T) {
	ownership := onePolicy(t, "ownership")
	for resource, refused := range map[string]bool{
		"pytorchjobs.kubeflow.org/scale": true, "rayclusters.ray.io/scale": true, "jobsets.jobset.x-k8s.io/scale": true,
		"deployments.apps/scale": false, "statefulsets.apps/scale": false, "replicationcontrollers/scale": false,
		// Each of its groups waits for quota of its own.
		"leaderworkersets.leaderworkerset.x-k8s.io/scale": false,
	} {
		got := judge(t, ownership, request{operation: admission.Update, object: scale, old: scale, subresource: "scale", resource: resource}, true)
		if refused != (len(got) == 1 && strings.Contains(got[0], "not even an autoscaler")) || !refused && len(got) > 0 {
			t.Errorf("%s: got %q", resource, got)
		}
	}
}

func autoscalerOf(version, kind, metadata string) string {
	return `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, ` + metadata + `}, spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: ` + version + `, kind: ` + kind + `, name: w}}}`
}

// ofRun is an AppWrapper as the controller of Runs creates it.
func ofRun(name, spec string) string {
	return `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: a, labels: {codeflare.dev/run: a},
		ownerReferences: [{apiVersion: codeflare.dev/v1alpha1, kind: Run, name: ` + name + `, controller: true}]}, spec: {` + spec + `}}`
}

func ofNoRun(spec string) string {
	return `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: a, labels: {codeflare.dev/run: a}}, spec: {` + spec + `}}`
}

const labelledTemplate = "{metadata: {labels: {workload.codeflare.dev/appwrapper: train}}, spec: {}}"

func labelledPod(name string) string {
	return strings.Replace(podWith(""), "name: p", "name: p, labels: {workload.codeflare.dev/appwrapper: "+name+"}", 1)
}

func workWith(version, kind, spec string) string {
	return `{apiVersion: ` + version + `, kind: ` + kind + `, metadata: {name: w}, spec: {` + spec + `}}`
}

// In whatever kind a template is, its pods would count as the AppWrapper's.
func TestTheLabelOfAnAppWrapperIsFoundInEveryKind(t *testing.T) {
	labels := policies(t)["mlbatch-labels"]
	for name, object := range map[string]string{
		"Deployment":            workWith("apps/v1", "Deployment", "template: "+labelledTemplate),
		"Job":                   workWith("batch/v1", "Job", "template: "+labelledTemplate),
		"CronJob":               workWith("batch/v1", "CronJob", "jobTemplate: {spec: {template: "+labelledTemplate+"}}"),
		"ReplicationController": workWith("v1", "ReplicationController", "template: "+labelledTemplate),
		"JobSet":                workWith("jobset.x-k8s.io/v1alpha2", "JobSet", "replicatedJobs: [{template: {spec: {}}}, {template: {spec: {template: "+labelledTemplate+"}}}]"),
		"LeaderWorkerSet":       workWith("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderWorkerTemplate: {workerTemplate: "+labelledTemplate+"}"),
		"its leader":            workWith("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderWorkerTemplate: {leaderTemplate: "+labelledTemplate+"}"),
		"PyTorchJob":            workWith("kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs: {Master: {replicas: 1}, Worker: {template: "+labelledTemplate+"}}"),
		"TFJob":                 workWith("kubeflow.org/v1", "TFJob", "tfReplicaSpecs: {PS: {template: "+labelledTemplate+"}}"),
		"XGBoostJob":            workWith("kubeflow.org/v1", "XGBoostJob", "xgbReplicaSpecs: {Master: {template: "+labelledTemplate+"}}"),
		"PaddleJob":             workWith("kubeflow.org/v1", "PaddleJob", "paddleReplicaSpecs: {Master: {template: "+labelledTemplate+"}}"),
		"JAXJob":                workWith("kubeflow.org/v1", "JAXJob", "jaxReplicaSpecs: {Worker: {template: "+labelledTemplate+"}}"),
		"MPIJob":                workWith("kubeflow.org/v2beta1", "MPIJob", "mpiReplicaSpecs: {Launcher: {template: "+labelledTemplate+"}}"),
		"the head of a cluster": rayClusterWith("headGroupSpec: {template: " + labelledTemplate + "}"),
		"its workers":           rayClusterWith("headGroupSpec: {}, workerGroupSpecs: [{groupName: a}, {template: " + labelledTemplate + "}]"),
		"those of a RayJob":     rayJobWith("workerGroupSpecs: [{template: " + labelledTemplate + "}]"),
		"its submitter":         workWith("ray.io/v1", "RayJob", "submitterPodTemplate: "+labelledTemplate),
		"a RayService":          workWith("ray.io/v1", "RayService", "rayClusterConfig: {headGroupSpec: {template: "+labelledTemplate+"}}"),
		"a kind of the site":    workWith("example.com/v1", "Rocket", "template: "+labelledTemplate),
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(t, labels, request{operation: admission.Create, object: object}, false); len(got) != 1 || !strings.Contains(got[0], "remove it from metadata.labels of the template") {
				t.Errorf("got %q", got)
			}
			if got := judge(t, labels, request{operation: admission.Create, object: object}, true); len(got) > 0 {
				t.Errorf("a controller is refused: %q", got)
			}
			other := strings.Replace(object, "workload.codeflare.dev/appwrapper", "app", 1)
			if got := judge(t, labels, request{operation: admission.Create, object: other}, false); len(got) > 0 {
				t.Errorf("another label is refused: %q", got)
			}
			if got := judge(t, labels, request{operation: admission.Update, object: object, old: object}, false); len(got) > 0 {
				t.Errorf("what is stored cannot be changed: %q", got)
			}
		})
	}
}

// What members do every day.
func TestPoliciesLeaveHonestMembersAlone(t *testing.T) {
	platform := defences(t)
	for name, r := range map[string]request{
		"work of one's own":                    {operation: admission.Create, object: strings.Replace(freeJob, "finalizers: [a]", "labels: {}", 1)},
		"a change of it while it waits":        {operation: admission.Update, object: strings.Replace(freeJob, "n: 1", "n: 2, runPolicy: {suspend: true}", 1), old: strings.Replace(freeJob, "n: 1", "n: 1, runPolicy: {suspend: true}", 1)},
		"a label on what an AppWrapper made":   {operation: admission.Update, object: labelled, old: ownedJob},
		"a label on a cluster of a service":    {operation: admission.Update, object: ownedCluster("labels: {a: b, ray.io/c: d}"), old: ownedCluster("labels: {ray.io/c: d}")},
		"one that dies with another one":       {operation: admission.Update, object: strings.Replace(dependent, "name: c", "name: c, labels: {a: b}", 1), old: dependent},
		"an autoscaler of a Deployment":        {operation: admission.Create, object: autoscalerOf("apps/v1", "Deployment", "")},
		"one of a ReplicationController":       {operation: admission.Create, object: autoscalerOf("v1", "ReplicationController", "")},
		"one of before the policies":           {operation: admission.Update, object: autoscalerOf("kubeflow.org/v1", "PyTorchJob", "labels: {a: b}"), old: autoscalerOf("kubeflow.org/v1", "PyTorchJob", "")},
		"one that does so no more":             {operation: admission.Update, object: independent, old: dependent},
		"an AppWrapper":                        {operation: admission.Create, object: bare},
		"a queue for a Run's AppWrapper":       {operation: admission.Update, object: strings.Replace(ofRun("digits", "suspend: true"), "labels: {", "labels: {kueue.x-k8s.io/queue-name: q, ", 1), old: ofRun("digits", "suspend: true")},
		"a Run's AppWrapper deleted":           {operation: admission.Delete, old: ofRun("digits", "n: 1"), options: "propagationPolicy: Background"},
		"a finalizer of one's own removed":     {operation: admission.Update, object: foreign, old: wrapper},
		"a pod":                                {operation: admission.Create, object: podWith("")},
		"a pod on nodes of its flavor":         {operation: admission.Create, object: podWith("nodeSelector: {a: b}, tolerations: [{key: nvidia.com/gpu, operator: Exists}]")},
		"a PyTorchJob":                         {operation: admission.Create, object: pyTorchJobWith("")},
		"a PyTorchJob that removes all":        {operation: admission.Create, object: strings.Replace(pyTorchJobWith(""), "Running", "All", 1)},
		"a Master with a deadline":             {operation: admission.Create, object: `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}, spec: {runPolicy: {cleanPodPolicy: Running, activeDeadlineSeconds: 2}, pytorchReplicaSpecs: {Master: {}}}}`},
		"a PodGroup":                           {operation: admission.Create, object: podGroupWith("minMember: 2, minResources: {cpu: 8, memory: 1.5Gi, nvidia.com/gpu: 1e3, ephemeral-storage: 500M}")},
		"a PodGroup of nothing":                {operation: admission.Create, object: podGroupWith("")},
		"a PodGroup without a spec":            {operation: admission.Create, object: `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}}`},
		"amounts in a template":                {operation: admission.Create, object: pyTorchJobWith("containers: [{resources: {requests: {cpu: 0.5, memory: '1e-2'}, limits: {cpu: 1, memory: 64Gi}}}], volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {sizeLimit: 1Gi}}, {name: c, configMap: {name: c}}]")},
		"a PyTorchJob of a master":             {operation: admission.Create, object: `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}, spec: {pytorchReplicaSpecs: {Master: {}}}}`},
		"a RayJob with a submitter of its own": {operation: admission.Create, object: rayJobThat("ttlSecondsAfterFinished: 0, submitterPodTemplate: {spec: {containers: [{resources: {limits: {cpu: 1}, requests: {memory: 1Gi}}}]}}")},
		"an elastic PyTorchJob":                {operation: admission.Create, object: elastic("maxReplicas: 3")},
		"an elastic one of before":             {operation: admission.Update, object: elastic("metrics: [{type: Pods}]"), old: elastic("metrics: [{type: Pods}]")},
		"a RayCluster":                         {operation: admission.Create, object: rayClusterWith("headGroupSpec: {template: {spec: {}}}")},
		"a RayCluster of many workers":         {operation: admission.Create, object: rayClusterWith("workerGroupSpecs: [{replicas: 10000, minReplicas: 10000}]")},
		"a RayCluster with room to grow":       {operation: admission.Create, object: rayClusterWith("workerGroupSpecs: [{replicas: 2, minReplicas: 2, maxReplicas: 9}, {minReplicas: 1}]")},
		"a Job deleted":                        {operation: admission.Delete, old: `{apiVersion: batch/v1, kind: Job, metadata: {name: j}}`, options: "propagationPolicy: Background"},
		"a pod deleted":                        {operation: admission.Delete, old: podWith("terminationGracePeriodSeconds: 30"), options: "propagationPolicy: Background"},
		"a pod deleted at once":                {operation: admission.Delete, old: podWith(""), options: "gracePeriodSeconds: 0"},
		"a pod that has a while to end":        {operation: admission.Delete, old: podWith("terminationGracePeriodSeconds: 60"), options: "gracePeriodSeconds: 30"},
		"a PyTorchJob that has a while to end": {operation: admission.Create, object: pyTorchJobWith("terminationGracePeriodSeconds: 600")},
		"work deleted":                         {operation: admission.Delete, old: freeJob, options: "gracePeriodSeconds: 1"},
		"a wrapped PyTorchJob deleted":         {operation: admission.Delete, old: ownedJob, options: "propagationPolicy: Background"},
		"work that MultiKueue gave its quota":  {operation: admission.Update, object: prebuilt, old: prebuilt},
		"a pod of an AppWrapper, touched":      {operation: admission.Update, object: strings.Replace(labelledPod("train"), "name: p", "name: p, annotations: {a: b}", 1), old: labelledPod("train")},
		"a worker group more":                  {operation: admission.Update, object: rayClusterWith("suspend: true, workerGroupSpecs: [{}, {template: " + labelledTemplate + "}]"), old: rayClusterWith("suspend: true, workerGroupSpecs: [{template: " + labelledTemplate + "}]")},
		"a started RayCluster that is stopped": {operation: admission.Update, object: rayClusterWith("suspend: true, a: b"), old: rayClusterWith("suspend: false, a: b")},
		"a RayCluster that is described":       {operation: admission.Update, object: annotated(rayClusterWith("a: b"), "what: for"), old: rayClusterWith("a: b")},
		"a Service":                            {operation: admission.Create, object: serviceWith("type: ClusterIP")},
		"a headless Service":                   {operation: admission.Create, object: serviceWith("clusterIP: None")},
		"a Secret":                             {operation: admission.Create, object: `{apiVersion: v1, kind: Secret, metadata: {name: s}, type: Opaque}`},
		"a Service of before the policies":     {operation: admission.Update, object: serviceWith("type: NodePort, externalIPs: [1.1.1.1], a: b"), old: serviceWith("type: NodePort, externalIPs: [1.1.1.1]")},
		"a PyTorchJob that stays on its node":  {operation: admission.Update, object: strings.Replace(pyTorchJobWith("nodeName: n"), "Running", "All, suspend: true", 1), old: strings.Replace(pyTorchJobWith("nodeName: n"), "Running", "Running, suspend: true", 1)},
		"a RayCluster of before the policies":  {operation: admission.Update, object: rayClusterWith("suspend: true, a: b, headGroupSpec: {enableIngress: true, serviceType: NodePort}"), old: rayClusterWith("suspend: true, headGroupSpec: {enableIngress: true, serviceType: NodePort}")},
		"a RayCluster that names its Service":  {operation: admission.Create, object: rayClusterWith("headGroupSpec: {headService: {metadata: {name: mine}, spec: {type: ClusterIP}}}")},
		"a RayService of before the policies":  {operation: admission.Update, object: rayServiceWith("suspend: true, a: b, serveService: {spec: {type: NodePort}}"), old: rayServiceWith("suspend: true, serveService: {spec: {type: NodePort}}")},
		"a Secret of no type":                  {operation: admission.Create, object: `{apiVersion: v1, kind: Secret, metadata: {name: s}}`},
	} {
		t.Run(name, func(t *testing.T) {
			platform.accept(t, name, r, false)
		})
	}
}

// Its controller adds the toleration to each. So nobody of a team creates one.
func TestPodsOfDaemonSetsMayRunOnCordonedNodes(t *testing.T) {
	set := workWith("apps/v1", "DaemonSet", "template: {}")
	for _, administrator := range []bool{true, false} {
		if got := judge(t, policies(t)["mlbatch-placement"], request{operation: admission.Create, object: set}, administrator); (len(got) == 0) != administrator {
			t.Errorf("created by an administrator, %t: %q", administrator, got)
		}
	}
	if got := judge(t, policies(t)["mlbatch-placement"], request{operation: admission.Update, object: annotated(set, "a: b"), old: set}, false); len(got) > 0 {
		t.Errorf("changed: %q", got)
	}
	pod := strings.Replace(podWith("tolerations: [{key: node.kubernetes.io/unschedulable}]"), "name: p", "name: p, ownerReferences: [{kind: DaemonSet, name: d, controller: true}]", 1)
	if got := judge(t, policies(t)["mlbatch-placement"], request{operation: admission.Create, object: pod}, true); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

// What nobody may do in a team's namespace, not even a controller.
func TestPoliciesJudgeWhatAnObjectIs(t *testing.T) {
	compiled := policies(t)
	const toNode, toAll, toMasters = "nodeName: node-1", "tolerations: [{key: a}, {operator: Exists}]", "tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]"
	const anAmount = "write it as 8, 500m, 1.5Gi or 1e3"
	const noNode, noAll, noMasters = "may not name their node", "may not tolerate every taint", "may not run on control planes"
	const toCordoned = "tolerations: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]"
	ofTeam := admissionrules.Namespace{Labels: map[string]string{"mlbatch-team-namespace": "true"}, Policies: admissionrules.Policies{Placement: true, Exposure: true}}
	for name, c := range map[string]struct{ policy, object, want string }{
		"a pod on a node":                        {"placement", podWith(toNode), noNode},
		"a pod that tolerates everything":        {"placement", podWith(toAll), noAll},
		"a pod on control planes":                {"placement", podWith(toMasters), noMasters},
		"a pod that tolerates too much":          {"placement", podWith("tolerations: [" + strings.Repeat("{key: a},", 65) + "]"), "at most 64 tolerations"},
		"a pod on a cordoned node":               {"placement", podWith(toCordoned), "may not run on cordoned nodes"},
		"a PyTorchJob on a cordoned node":        {"placement", pyTorchJobWith(toCordoned), "may not run on cordoned nodes"},
		"a PyTorchJob on a node":                 {"placement", pyTorchJobWith(toNode), noNode},
		"a PyTorchJob that tolerates everything": {"placement", pyTorchJobWith(toAll), noAll},
		"a PyTorchJob on control planes":         {"placement", pyTorchJobWith(toMasters), noMasters},
		"a Ray head on a node":                   {"placement", rayClusterWith("headGroupSpec: {template: {spec: {" + toNode + "}}}"), noNode},
		"a Ray worker that tolerates everything": {"placement", rayClusterWith("workerGroupSpecs: [{template: {spec: {}}}, {template: {spec: {" + toAll + "}}}]"), noAll},
		"a RayJob's worker on control planes":    {"placement", rayJobWith("workerGroupSpecs: [{template: {spec: {" + toMasters + "}}}]"), noMasters},
		"a RayJob's submitter on a node":         {"placement", `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {rayClusterSpec: {}, submitterPodTemplate: {spec: {nodeName: node-1}}}}`, noNode},
		"a PyTorchJob that scales by default":    {"growth", elastic("metrics: []"), "elasticPolicy.metrics"},
		"a RayCluster with an autoscaler":        {"growth", rayClusterWith("enableInTreeAutoscaling: true"), "enableInTreeAutoscaling"},
		"a RayCluster that starts larger":        {"growth", rayClusterWith("workerGroupSpecs: [{replicas: 1}, {replicas: 0, minReplicas: 50}]"), "more minReplicas than replicas"},
		"a RayCluster that fills KubeRay":        {"growth", rayClusterWith("workerGroupSpecs: [{replicas: 10001, maxReplicas: 1}]"), "more than 10000 replicas"},
		"a RayJob that fills KubeRay":            {"growth", rayJobWith("workerGroupSpecs: [{replicas: 10001, minReplicas: 10001}]"), "more than 10000 replicas"},
		"a RayJob that starts larger":            {"growth", rayJobWith("workerGroupSpecs: [{replicas: 0, minReplicas: 50}]"), "more minReplicas than replicas"},
		"a RayJob with a submitter alone":        {"growth", `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {clusterSelector: {a: b}}}`, "never starts"},
		"one without a submitter":                {"growth", `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {clusterSelector: {a: b}, submissionMode: HTTPMode}}`, "never starts"},
		"a Ray head without containers":          {"growth", rayClusterWith("headGroupSpec: {template: {spec: {containers: []}}}"), "needs a container"},
		"a RayJob's head without containers":     {"growth", rayJobWith("headGroupSpec: {template: {spec: {containers: []}}}"), "needs a container"},
		"a Ray worker without containers":        {"growth", rayClusterWith("workerGroupSpecs: [{template: {spec: {containers: [{}]}}}, {template: {spec: {containers: []}}}]"), "needs a container"},
		"a RayCluster that is elastic":           {"growth", annotated(rayClusterWith(""), "kueue.x-k8s.io/elastic-job: 'true'"), "submit the work with the size that you need"},
		"a cleanup with devices":                 {"growth", rayJobWith("gcsFaultToleranceOptions: {redisAddress: r}, headGroupSpec: {template: {spec: {initContainers: [{}]}}}"), "KubeRay's cleanup"},
		"a cleanup with more for all":            {"growth", annotated(rayClusterWith("headGroupSpec: {template: {spec: {resources: {}}}}"), "ray.io/ft-enabled: 'true'"), "KubeRay's cleanup"},
		"a PyTorchJob with a role of none":       {"growth", strings.Replace(pyTorchJobWith(""), "Worker: {", "Worker: {replicas: 0, ", 1), "leave out the role"},
		"a PyTorchJob that scales itself":        {"growth", elastic("metrics: [{type: Resource}]"), "elasticPolicy.metrics"},
		"a PyTorchJob that leaves its workers":   {"growth", strings.Replace(pyTorchJobWith(""), "cleanPodPolicy: Running", "", 1), "needs spec.runPolicy.cleanPodPolicy Running or All"},
		"the same, said":                         {"growth", strings.Replace(pyTorchJobWith(""), "Running", "None", 1), "needs spec.runPolicy.cleanPodPolicy Running or All"},
		"a Master that outlives its deadline":    {"growth", `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}, spec: {runPolicy: {cleanPodPolicy: None, activeDeadlineSeconds: 2}, pytorchReplicaSpecs: {Master: {}}}}`, "needs spec.runPolicy.cleanPodPolicy Running or All"},
		"a Master that fails too often":          {"growth", `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}, spec: {runPolicy: {backoffLimit: 0}, pytorchReplicaSpecs: {Master: {}}}}`, "needs spec.runPolicy.cleanPodPolicy Running or All"},
		"an amount that takes hours":             {"growth", podGroupWith("minResources: {cpu: 1, memory: '1e-2000000000'}"), anAmount},
		"a large one":                            {"growth", podGroupWith("minResources: {cpu: 1E+100}"), anAmount},
		"a long one":                             {"growth", podGroupWith("minResources: {cpu: '" + strings.Repeat("1", 41) + "'}"), anAmount},
		"one of a PyTorchJob":                    {"growth", pyTorchJobWith("containers: [{}, {resources: {requests: {cpu: '1e-1000'}}}]"), anAmount},
		"one of an init container":               {"growth", pyTorchJobWith("initContainers: [{resources: {limits: {cpu: '1e-1000'}}}]"), anAmount},
		"one of a gang":                          {"growth", strings.Replace(pyTorchJobWith(""), "runPolicy: {", "runPolicy: {schedulingPolicy: {minResources: {cpu: '1e-1000'}}, ", 1), anAmount},
		"one of a pod":                           {"growth", rayClusterWith("headGroupSpec: {template: {spec: {resources: {requests: {cpu: '1e-1000'}}}}}"), anAmount},
		"one of a group":                         {"growth", rayJobWith("workerGroupSpecs: [{resources: {CPU: '1e-1000'}}]"), anAmount},
		"one of a volume":                        {"growth", rayJobWith("workerGroupSpecs: [{template: {spec: {volumes: [{name: v, emptyDir: {sizeLimit: '1e-1000'}}]}}}]"), anAmount},
		"one of a claim":                         {"growth", rayJobWith("headGroupSpec: {template: {spec: {volumes: [{name: e}, {name: v, ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: '1e-1000'}}}}}}]}}}"), anAmount},
		"a PyTorchJob that ends next year":       {"growth", pyTorchJobWith("terminationGracePeriodSeconds: 601"), "terminationGracePeriodSeconds"},
		"a Ray head that ends next year":         {"growth", rayClusterWith("headGroupSpec: {template: {spec: {terminationGracePeriodSeconds: 601}}}"), "terminationGracePeriodSeconds"},
		"a Ray worker that ends next year":       {"growth", rayJobWith("workerGroupSpecs: [{template: {spec: {terminationGracePeriodSeconds: 601}}}]"), "terminationGracePeriodSeconds"},
		"a submitter that ends next year":        {"growth", rayJobThat("submitterPodTemplate: {spec: {terminationGracePeriodSeconds: 601}}"), "terminationGracePeriodSeconds"},
		"a RayJob that keeps its pods":           {"growth", rayJobThat("ttlSecondsAfterFinished: 1"), "ttlSecondsAfterFinished"},
		"a RayJob that deletes what it likes":    {"growth", rayJobThat("deletionStrategy: {onSuccess: {policy: DeleteNone}, onFailure: {policy: DeleteNone}}"), "deletionStrategy"},
		"a submitter with devices":               {"growth", rayJobThat("submitterPodTemplate: {spec: {containers: [{resources: {limits: {cpu: 1, nvidia.com/gpu: 1}}}]}}"), "submitterPodTemplate"},
		"an init container of one":               {"growth", rayJobThat("submitterPodTemplate: {spec: {initContainers: [{resources: {requests: {rdma/hca: 1}}}]}}"), "submitterPodTemplate"},
		"a Service of type LoadBalancer":         {"exposure", serviceWith("type: LoadBalancer"), "type LoadBalancer or NodePort"},
		"a Service of type NodePort":             {"exposure", serviceWith("type: NodePort"), "type LoadBalancer or NodePort"},
		"a Service with externalIPs":             {"exposure", serviceWith("externalIPs: [1.1.1.1]"), "externalIPs"},
		"a token that never expires":             {"exposure", `{apiVersion: v1, kind: Secret, metadata: {name: s}, type: kubernetes.io/service-account-token}`, "never expires"},
		"a RayCluster with an Ingress":           {"exposure", rayClusterWith("headGroupSpec: {enableIngress: true}"), "enableIngress"},
		"a RayJob with an Ingress":               {"exposure", rayJobWith("headGroupSpec: {enableIngress: true}"), "enableIngress"},
		"a RayService with an Ingress":           {"exposure", rayServiceWith("rayClusterConfig: {headGroupSpec: {enableIngress: true}}"), "enableIngress"},
		"a RayCluster with a port on each node":  {"exposure", rayClusterWith("headGroupSpec: {serviceType: NodePort}"), "serviceType"},
		"a RayCluster whose Service has one":     {"exposure", rayClusterWith("headGroupSpec: {headService: {spec: {type: LoadBalancer}}}"), "type LoadBalancer or NodePort"},
		"a RayJob whose Service has an address":  {"exposure", rayJobWith("headGroupSpec: {headService: {spec: {externalIPs: [1.1.1.1]}}}"), "externalIPs"},
		"a RayService that serves on each node":  {"exposure", rayServiceWith("serveService: {spec: {type: NodePort}}"), "type LoadBalancer or NodePort"},
		"a RayCluster with a load balancer":      {"exposure", rayClusterWith("headGroupSpec: {serviceType: LoadBalancer}"), "serviceType"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, controller := range []bool{false, true} {
				got := judge(t, compiled["mlbatch-"+c.policy], request{operation: admission.Create, object: c.object}, controller)
				if controller && c.policy == "growth" { // Kueue starts and stops what is stored
					if len(got) > 0 {
						t.Errorf("a controller is refused: %q", got)
					}
				} else if len(got) != 1 || !strings.Contains(got[0], c.want) {
					t.Errorf("want one refusal with %q, got %q", c.want, got)
				}
				if c.policy == "placement" || c.policy == "exposure" {
					if says := wrapped(t, c.object).ValidateIn(ofTeam); len(says) != 1 || says[0].Detail != got[0] {
						t.Errorf("the webhook says %v, and the policy %q", says, got)
					}
				}
			}
		})
	}
}

// Annotations may change while work waits, with the same spec.
func TestAnnotationsThatOperatorsCountByAreJudgedLater(t *testing.T) {
	growth := policies(t)["mlbatch-growth"]
	for key, object := range map[string]string{
		"kueue.x-k8s.io/elastic-job": pyTorchJobWith(""),
		"ray.io/ft-enabled":          rayClusterWith("headGroupSpec: {template: {spec: {initContainers: [{}]}}}"),
	} {
		with := annotated(object, key+": 'true'")
		if got := judge(t, growth, request{operation: admission.Update, object: with, old: object}, false); len(got) != 1 {
			t.Errorf("%s is added: %q", key, got)
		}
		stays := request{operation: admission.Update, object: strings.Replace(with, "metadata: {", "metadata: {labels: {a: b}, ", 1), old: with}
		if got := judge(t, growth, stays, false); len(got) > 0 {
			t.Errorf("%s stays: %q", key, got)
		}
	}
}

// The AppWrapper's webhook counts minReplicas, and Kueue looks at the owner alone.
func TestWhatAnotherObjectControlsIsNotJudgedForGrowth(t *testing.T) {
	child := strings.Replace(rayClusterWith("workerGroupSpecs: [{replicas: 0, minReplicas: 2}]"), "name: r", "name: r, ownerReferences: [{kind: AppWrapper, name: a, controller: true}]", 1)
	if got := judge(t, policies(t)["mlbatch-growth"], request{operation: admission.Create, object: child}, false); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

// A change is judged as well as a creation.
func TestPoliciesJudgeWhatAnObjectBecomes(t *testing.T) {
	compiled := policies(t)
	const served = "serveService: {spec: {type: NodePort}}"
	for name, c := range map[string]struct{ object, old, want string }{
		"a Service that gets another type":    {serviceWith("type: NodePort"), serviceWith("type: ClusterIP"), "type LoadBalancer or NodePort"},
		"a Service that gets one more":        {serviceWith("type: LoadBalancer"), serviceWith("type: NodePort"), "type LoadBalancer or NodePort"},
		"a Service that gets an externalIP":   {serviceWith("externalIPs: [a, b]"), serviceWith("externalIPs: [a]"), "externalIPs"},
		"a RayCluster that gets an Ingress":   {rayClusterWith("headGroupSpec: {enableIngress: true}"), rayClusterWith("headGroupSpec: {}"), "enableIngress"},
		"a RayCluster whose Service gets one": {rayClusterWith("headGroupSpec: {headService: {spec: {type: NodePort}}}"), rayClusterWith("headGroupSpec: {headService: {spec: {}}}"), "type LoadBalancer or NodePort"},
		"a RayService that gets another":      {rayServiceWith(served), rayServiceWith("rayClusterConfig: {headGroupSpec: {headService: {spec: {type: NodePort}}}}"), "type LoadBalancer or NodePort"},
		"a RayJob that gets a load balancer":  {rayJobWith("headGroupSpec: {serviceType: LoadBalancer}"), rayJobWith("headGroupSpec: {}"), "serviceType"},
		"a PyTorchJob that gets a node":       {pyTorchJobWith("nodeName: n"), pyTorchJobWith(""), "may not name their node"},
		"a PyTorchJob that tolerates more":    {pyTorchJobWith("tolerations: [{operator: Exists}]"), pyTorchJobWith("nodeName: n"), "may not tolerate every taint"},
		"a Ray head that gets a node":         {rayClusterWith("headGroupSpec: {template: {spec: {nodeName: n}}}"), rayClusterWith("headGroupSpec: {}"), "may not name their node"},
		"a RayJob on control planes": {rayJobWith("workerGroupSpecs: [{template: {spec: {tolerations: [{key: node-role.kubernetes.io/a}]}}}]"), rayJobWith("workerGroupSpecs: [{}]"),
			"may not run on control planes"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := "mlbatch-placement"
			if len(judge(t, compiled["mlbatch-exposure"], request{operation: admission.Create, object: c.object}, true)) > 0 {
				policy = "mlbatch-exposure"
			}
			got := judge(t, compiled[policy], request{operation: admission.Update, object: c.object, old: c.old}, false)
			if len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("want one refusal with %q, got %q", c.want, got)
			}
		})
	}
}

// Kueue ranks work by its class before there are pods, which are refused.
func TestWorkHasAPriorityOfItsTeam(t *testing.T) {
	policy := policies(t)["mlbatch-priorities"]
	const system, low = "system-node-critical", "low-priority"
	team := map[string]string{"mlbatch-priorities": "low-priority,high-priority"}
	inTemplate := func(class string) string { return "template: {spec: {priorityClassName: " + class + "}}" }
	for name, of := range map[string]func(class string) string{
		"a PyTorchJob's worker": func(class string) string { return pyTorchJobWith("priorityClassName: " + class) },
		"a PyTorchJob whose pods name none": func(class string) string {
			return strings.Replace(pyTorchJobWith(""), "runPolicy: {", "runPolicy: {schedulingPolicy: {priorityClass: "+class+"}, ", 1)
		},
		"a Ray head": func(class string) string { return rayClusterWith("headGroupSpec: {" + inTemplate(class) + "}") },
		"a Ray worker": func(class string) string {
			return rayClusterWith("workerGroupSpecs: [{}, {" + inTemplate(class) + "}]")
		},
		"a RayJob's head":      func(class string) string { return rayJobWith("headGroupSpec: {" + inTemplate(class) + "}") },
		"a RayJob's worker":    func(class string) string { return rayJobWith("workerGroupSpecs: [{" + inTemplate(class) + "}]") },
		"a RayJob's submitter": func(class string) string { return rayJobThat("submitterPodT" + inTemplate(class)[1:]) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				what        string
				object, old string
				annotations map[string]string
				refused     bool
			}{
				{"of the system", of(system), "", team, true},
				{"that becomes one of the system", of(system), of(low), team, true},
				{"that gets one", of(system), of(`""`), team, true},
				{"of the team", of(low), "", team, false},
				{"of none", of(`""`), "", team, false},
				{"of before the policies", of(system), of(system), team, false},
				{"in a namespace of any priority", of(system), "", nil, false},
			} {
				r := request{operation: admission.Create, object: c.object, old: c.old, annotations: c.annotations}
				if c.old != "" {
					r.operation = admission.Update
				}
				for _, controller := range []bool{false, true} {
					got := judge(t, policy, r, controller)
					if controller && c.old != "" { // Kueue stops what is stored
						if len(got) > 0 {
							t.Errorf("%s: a controller is refused: %q", c.what, got)
						}
						continue
					}
					if c.refused != (len(got) == 1) || c.refused && got[0] != "this team's work may not have the priority class system-node-critical: choose one of low-priority, high-priority, or leave it out" {
						t.Errorf("%s: got %q", c.what, got)
					}
				}
			}
		})
	}
}

// A team with exceptions is held to the rest of the level baseline.
func TestTheLevelBaselineHasExceptionsForATeam(t *testing.T) {
	policy := policies(t)["mlbatch-pod-security"]
	excepted := map[string]string{"mlbatch-pod-security": "baseline", "pod-security.kubernetes.io/enforce": "privileged"}
	given := map[string]string{"mlbatch-allowed-capabilities": "IPC_LOCK", "mlbatch-allowed-host-paths": "/mnt/a,/mnt/b"}
	none := map[string]string{"mlbatch-allowed-capabilities": "", "mlbatch-allowed-host-paths": ""}
	container := func(fields string) string { return "containers: [{name: a}, {name: b, " + fields + "}]" }
	in := func(fields string) string { return container("securityContext: {" + fields + "}") }
	mount := func(path string) string {
		return container("") + ", volumes: [{name: e, emptyDir: {}}, {name: v, hostPath: {path: " + path + "}}]"
	}
	for name, c := range map[string]struct {
		annotations map[string]string
		pod, want   string
	}{
		"an ordinary pod":                {none, in("capabilities: {add: [CHOWN], drop: [ALL]}, seccompProfile: {type: RuntimeDefault}, procMount: Default"), ""},
		"a namespace without exceptions": {nil, container("ports: [{containerPort: 80}], livenessProbe: {httpGet: {port: 80}}"), ""},
		"the capability":                 {given, in("capabilities: {add: [IPC_LOCK]}"), ""},
		"a safe sysctl":                  {given, container("") + ", securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: a}]}", ""},
		"a folder":                       {given, mount("/mnt/b"), ""},
		"a folder in it, perhaps a link": {given, mount("/mnt/a/c"), "use subPath"},
		"an init container's type":       {given, container("") + ", initContainers: [{name: i, securityContext: {seLinuxOptions: {type: container_init_t}}}]", ""},
		"another team's capability":      {none, in("capabilities: {add: [IPC_LOCK]}"), "may add no capabilities but AUDIT_WRITE"},
		"another capability":             {given, in("capabilities: {add: [SYS_ADMIN]}"), "IPC_LOCK"},
		"all capabilities":               {given, in("capabilities: {add: [ALL]}"), "may add no capabilities"},
		"an empty capability":            {none, in("capabilities: {add: ['CHOWN,SYS_ADMIN']}"), "may add no capabilities"},
		"another team's folder":          {none, mount("/mnt/a"), "may mount no files of the node"},
		"another folder":                 {given, mount("/mnt/ab"), "but /mnt/a, /mnt/b"},
		"the node":                       {given, mount("/"), "may mount no files of the node"},
		"a way out of a folder":          {given, mount("/mnt/a/../../etc"), "may mount no files of the node"},
		"the network of the node":        {given, container("") + ", hostNetwork: true", "hostNetwork"},
		"its processes":                  {given, container("") + ", hostPID: true", "hostPID"},
		"its shared memory":              {given, container("") + ", hostIPC: true", "hostIPC"},
		"a privileged container":         {given, in("privileged: true"), "privileged"},
		"a privileged init container":    {given, container("") + ", initContainers: [{name: i, securityContext: {privileged: true}}]", "privileged"},
		"a privileged debugger":          {given, container("") + ", ephemeralContainers: [{name: i, securityContext: {privileged: true}}]", "privileged"},
		"a process of a Windows node":    {given, container("") + ", securityContext: {windowsOptions: {hostProcess: true}}", "privileged"},
		"a port of the node":             {given, container("ports: [{containerPort: 80, hostPort: 80}]"), "hostPort"},
		"no seccomp":                     {given, container("") + ", securityContext: {seccompProfile: {type: Unconfined}}", "Unconfined"},
		"no AppArmor":                    {given, in("appArmorProfile: {type: Unconfined}"), "Unconfined"},
		"all of /proc":                   {given, in("procMount: Unmasked"), "procMount"},
		"a SELinux type":                 {given, in("seLinuxOptions: {type: spc_t}"), "SELinux"},
		"a SELinux user":                 {given, container("") + ", securityContext: {seLinuxOptions: {user: system_u}}", "SELinux"},
		"a sysctl that is safe by now":   {given, container("") + ", securityContext: {sysctls: [{name: net.ipv4.tcp_rmem, value: a}]}", ""},
		"an unsafe sysctl":               {given, container("") + ", securityContext: {sysctls: [{name: kernel.msgmax, value: a}]}", "sysctls"},
		"a probe of another host":        {given, container("readinessProbe: {tcpSocket: {host: 169.254.169.254, port: 80}}"), "name a host"},
		"a hook that calls another host": {given, container("lifecycle: {preStop: {httpGet: {host: 169.254.169.254, port: 80}}}"), "name a host"},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(t, policy, request{operation: admission.Create, object: podWith(c.pod), labels: excepted, annotations: c.annotations}, true)
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("want %q, got %q", c.want, got)
			}
			namespace := admissionrules.Namespace{
				Labels:      excepted,
				Annotations: c.annotations, Policies: admissionrules.Policies{PodSecurity: true},
			}
			if says := wrapped(t, podWith(c.pod)).ValidateIn(namespace); len(says) != len(got) {
				t.Errorf("the webhook says %v, and the policy %q", says.ToAggregate(), got)
			}
			for kind, work := range workOf(c.pod) {
				ofWork := judge(t, policy, request{operation: admission.Create, object: work, labels: excepted, annotations: c.annotations}, false)
				if !slices.Equal(ofWork, got) {
					t.Errorf("%s: got %q", kind, ofWork)
				}
			}
		})
	}
	unconfined := strings.Replace(podWith(container("")), "name: p", "name: p, annotations: {container.apparmor.security.beta.kubernetes.io/a: unconfined}", 1)
	if got := judge(t, policy, request{operation: admission.Create, object: unconfined, labels: excepted, annotations: given}, true); len(got) != 1 {
		t.Errorf("the annotation of AppArmor gets %q", got)
	}
}

// workOf is work with such a template, by its kind.
func workOf(spec string) map[string]string {
	template := "template: {spec: {" + spec + "}}"
	return map[string]string{
		"PyTorchJob": pyTorchJobWith(spec),
		"RayCluster": rayClusterWith("headGroupSpec: {template: {spec: {}}}, workerGroupSpecs: [{groupName: a}, {" + template + "}]"),
		"head":       rayJobWith("headGroupSpec: {" + template + "}"),
		"submitter":  rayJobThat("submitterPodT" + template[1:]),
	}
}

// The API server's own check looks at pods, and work has its quota before there are any.
func TestWorkIsHeldToTheLevelOfItsNamespace(t *testing.T) {
	policy := policies(t)["mlbatch-pod-security"]
	const fine, bad = "containers: [{name: a}]", "containers: [{name: a, securityContext: {privileged: true}}]"
	at := func(level string) map[string]string {
		return map[string]string{"pod-security.kubernetes.io/enforce": level}
	}
	for kind, refused := range workOf(bad) {
		accepted := workOf(fine)[kind]
		for what, c := range map[string]struct {
			object, old string
			labels      map[string]string
			want        int
		}{
			"in a namespace of the level baseline":   {refused, "", at("baseline"), 1},
			"in one of the level restricted":         {refused, "", at("restricted"), 1},
			"in one that enforces nothing":           {refused, "", nil, 0},
			"in one of the level privileged":         {refused, "", at("privileged"), 0},
			"as it should be":                        {accepted, "", at("baseline"), 0},
			"that becomes so while it waits":         {refused, accepted, at("baseline"), 1},
			"of before the policies":                 {refused, refused, at("baseline"), 0},
			"of before the policies, that is better": {accepted, refused, at("baseline"), 0},
		} {
			r := request{operation: admission.Create, object: c.object, old: c.old, labels: c.labels}
			if c.old != "" {
				r.operation = admission.Update
			}
			for _, controller := range []bool{false, true} {
				if controller && c.old != "" {
					c.want = 0 // Kueue stops what is stored
				}
				if got := judge(t, policy, r, controller); len(got) != c.want || c.want == 1 && !strings.Contains(got[0], "may not be privileged") {
					t.Errorf("%s %s: got %q", kind, what, got)
				}
			}
		}
	}
	if got := judge(t, policy, request{operation: admission.Create, object: podWith(bad), labels: at("baseline")}, true); len(got) > 0 {
		t.Errorf("a pod that the API server judges itself: %q", got)
	}
}

// wrapped is an AppWrapper around an object.
func wrapped(t *testing.T, object string) admissionrules.Decoded {
	t.Helper()
	aw := &v1beta2.AppWrapper{}
	if err := yaml.Unmarshal([]byte("{spec: {components: [{template: "+object+"}]}}"), aw); err != nil {
		t.Fatal(err)
	}
	return admissionrules.Decode(aw)
}

func podWith(spec string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {` + spec + `}}`
}

func serviceWith(spec string) string {
	return `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {` + spec + `}}`
}

func pyTorchJobWith(spec string) string {
	return `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}, spec: {runPolicy: {cleanPodPolicy: Running}, pytorchReplicaSpecs: {Master: {template: {spec: {}}}, Worker: {template: {spec: {` + spec + `}}}}}}`
}

func podGroupWith(spec string) string {
	return `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, spec: {` + spec + `}}`
}

func elastic(policy string) string {
	return `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}, spec: {elasticPolicy: {` + policy + `}}}`
}

func rayClusterWith(spec string) string {
	return `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r}, spec: {` + spec + `}}`
}

func rayJobWith(spec string) string {
	return `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {rayClusterSpec: {` + spec + `}}}`
}

func rayServiceWith(spec string) string {
	return `{apiVersion: ray.io/v1, kind: RayService, metadata: {name: r}, spec: {` + spec + `}}`
}

func rayJobThat(fields string) string {
	return `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {` + fields + `}}`
}

func annotated(object, annotations string) string {
	return strings.Replace(object, "metadata: {", "metadata: {annotations: {"+annotations+"}, ", 1)
}

func ownedCluster(metadata string) string {
	return `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r, ` + metadata + `, ownerReferences: [{kind: RayService, name: s, controller: true}]}, spec: {n: 1}}`
}
