// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package scenes_test

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// refusals are scenes in which the API server does not create what is wrapped, or its pods.
var refusals = map[explain.Code]scene{
	"WebhookDown": {set: func(p *place) {
		p.create(&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}, Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "jobs.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionv1.SideEffectClassNone),
			ClientConfig:      admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: p.namespace, Name: "nobody"}},
			NamespaceSelector: here(p),
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{
				APIGroups: []string{batchv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"jobs"},
			}}},
		}}})
		p.queue()
		p.submit("train")
	}},
	"PodSecurityRefused": {set: func(p *place) {
		p.queue(stopped)
		p.submit("train")
		p.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}, `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`)
		p.open()
	}},
	"ResourceQuotaExceeded": {set: func(p *place) {
		p.create(&corev1.ResourceQuota{ObjectMeta: p.named("objects"), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}})
		p.queue()
		p.submit("train")
	}},
	"ServiceAccountMissing": {set: func(p *place) {
		p.queue()
		p.submit("train", inPod(func(spec *corev1.PodSpec) { spec.ServiceAccountName = "nobody" }))
	}},
	"PriorityClassMissing": {set: func(p *place) {
		p.queue()
		p.submit("train", inPod(func(spec *corev1.PodSpec) { spec.PriorityClassName = "nothing" }))
	}},
	"NameTaken": {set: func(p *place) { p.create(p.anotherJob()); p.queue(); p.submit("train") }},
	"StillBeingDeleted": {set: func(p *place) {
		p.beingDeleted()
		p.queue()
		p.submit("train")
	}},
	"ControllerMayNot": {set: func(p *place) {
		budget := map[string]any{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": map[string]any{"name": "train"}, "spec": map[string]any{"minAvailable": 1}}
		p.queue(stopped)
		binding := p.allow("policy", "poddisruptionbudgets")
		p.until(func() error { return p.try("train", and(budget)) })
		p.remove(binding)
		p.open()
	}},
	"ResourceInvalid": {set: func(p *place) {
		p.queue()
		p.submit("train", inJob(func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(-1)) }))
	}},
	"PolicyRefused": {set: func(p *place) {
		p.forbid(admissionv1.Create, batchv1.GroupName, "v1", "jobs", "'team' in object.metadata.labels")
		p.queue()
		p.submit("train")
		p.until(func() error { // by then the status of the Job does not say it any more
			if aw := p.wrapper("train"); aw.Status.Phase != workload.AppWrapperFailed {
				return fmt.Errorf("it is %s", aw.Status.Phase)
			}
			return nil
		})
	}},
}

// here selects the namespace of a scene.
func here(p *place) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: p.namespace}}
}

// instead wraps something else than a Job.
func instead(component any) func(*work) {
	return func(w *work) { w.job, w.more = nil, append(w.more, component) }
}

// and wraps something beside the Job.
func and(component any) func(*work) {
	return func(w *work) { w.more = append(w.more, component) }
}

// allow lets the controller of AppWrappers make something in the namespace.
func (p *place) allow(group, resource string) *rbacv1.RoleBinding {
	p.Helper()
	p.create(&rbacv1.Role{ObjectMeta: p.named("controller"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"*"}}}})
	binding := &rbacv1.RoleBinding{
		ObjectMeta: p.named("controller"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "controller"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: platform.Namespace, Name: controller}},
	}
	p.create(binding)
	return binding
}

// stopped is a queue that is opened later.
func stopped(q *kueue.ClusterQueue) { q.Spec.StopPolicy = new(kueue.Hold) }

func (p *place) open() {
	p.Helper()
	p.patch(p.clusterQueue(), `{"spec": {"stopPolicy": "None"}}`)
}

// anotherJob is one that has the name of the work's, and waits.
func (p *place) anotherJob() *batchv1.Job {
	j := newJob("train")
	j.Namespace, j.Spec.Suspend = p.namespace, new(true)
	return j
}

// beingDeleted leaves a Job of which a finalizer is left.
func (p *place) beingDeleted() {
	p.Helper()
	j := p.anotherJob()
	j.Finalizers = []string{"example.com/keep"}
	p.create(j)
	p.remove(j)
}

// limitRange limits containers to one CPU.
func (p *place) limitRange() {
	p.Helper()
	p.create(&corev1.LimitRange{ObjectMeta: p.named("limits"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
	}}})
}

// forbid makes a policy, and waits until the API server knows it. Then it refuses a ConfigMap, too.
func (p *place) forbid(operation admissionv1.OperationType, group, version, resource, unless string) {
	p.Helper()
	rule := func(operation admissionv1.OperationType, group, version, resource string) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{operation},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
		}}
	}
	p.create(&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{
			rule(operation, group, version, resource), rule(admissionv1.Create, "", "v1", "configmaps"),
		}},
		Validations: []admissionv1.Validation{{Expression: "object.kind != 'ConfigMap' && (" + unless + ")", Message: "this is against the rules"}},
	}})
	p.create(&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: p.namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}, MatchResources: &admissionv1.MatchResources{NamespaceSelector: here(p)},
	}})
	p.until(func() error {
		err := p.admin.Create(p.Context(), &corev1.ConfigMap{ObjectMeta: p.named("probe")}, client.DryRunAll)
		if err == nil {
			return errors.New("a ConfigMap is not refused")
		}
		return nil
	})
}
