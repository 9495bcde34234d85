// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

const (
	ofPod = `{spec: {containers: [{name: main, image: x, resources: {requests: {cpu: 10m, memory: 16Mi}}}]}}`
	ofJob = `{spec: {restartPolicy: Never, containers: [{name: main, image: x, resources: {requests: {cpu: 10m, memory: 16Mi}}}]}}`
	aJob  = `{apiVersion: batch/v1, kind: Job, metadata: {name: refused, %s}, spec: {template: ` + ofJob + `}}`
	aTF   = `{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: refused}, spec: {tfReplicaSpecs: {Worker: {replicas: 0, template: ` + ofPod + `}}}}`
	aRay  = `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: refused}, spec: {enableInTreeAutoscaling: true, headGroupSpec: {rayStartParams: {}, template: ` + ofPod + `}}}`
)

// wrapping is an AppWrapper of these templates.
func wrapping(templates ...string) string {
	return `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: refused, labels: {kueue.x-k8s.io/queue-name: default-queue}}, ` +
		`spec: {components: [{template: ` + strings.Join(templates, `}, {template: `) + `}]}}`
}

// refused are objects that a member may not create, and what the API server says. Unlike attacks,
// they cannot be seen to succeed; harmless says why.
var refused = map[string]struct{ manifest, says, harmless string }{
	"more components than anybody needs": {wrapping(strings.Split(strings.Repeat(fmt.Sprintf(aJob, "")+"\n", 65), "\n")[:65]...), "64",
		"Kueue counts the pods of all of them; the limit keeps objects small"},
	"a template with another queue": {wrapping(fmt.Sprintf(aJob, "labels: {kueue.x-k8s.io/queue-name: another}")), "metadata.labels",
		"Kueue does not queue what belongs to an AppWrapper"},
	"a template that claims an owner": {wrapping(fmt.Sprintf(aJob, "ownerReferences: [{apiVersion: v1, kind: Pod, name: x, uid: x, controller: true}]")), "metadata.ownerReferences",
		"the API server accepts one controller, and that is the AppWrapper"},
	"a role of no pods, for which the training operator makes one": {wrapping(aTF), "replicas cannot be 0",
		"the operator deletes the pod again at once"},
	"a Ray cluster that grows by itself": {wrapping(aRay), "enableInTreeAutoscaling",
		"the autoscaler is a program of Ray, and the stand-in for Ray has none"},
	"an image that no registry can have": {wrapping(strings.Replace(fmt.Sprintf(aJob, ""), "image: x", "image: Not-An-Image", 1)), "no registry can have an image of this name",
		"its kubelet never asks for it, and the AppWrapper would keep its quota through all attempts"},
	"an amount that the scheduler would decode for hours": {`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: refused}, spec: {minMember: 1, minResources: {cpu: "1e-1000"}}}`, "write it as 8, 500m",
		"this one takes no time, and the scheduler shall live on"},
	"a Lease of the name of the controller's": {`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: f134c674.codeflare.dev}}`, "cannot create resource", byRole},
	"a Workload of Kueue's":                   {`{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: refused}, spec: {queueName: default-queue, podSets: []}}`, "cannot create resource", byRole},
	"a pod that no queue knows":               {`{apiVersion: v1, kind: Pod, metadata: {name: refused}, spec: ` + strings.TrimSuffix(strings.TrimPrefix(ofPod, "{spec: "), "}") + `}`, "cannot create resource", byRole},
	"a Run that chooses a class of the system's": {`{apiVersion: codeflare.dev/v1alpha1, kind: Run, metadata: {name: refused}, spec: {application: {name: x}, priority: system-node-critical}}`, "spec.priority",
		"its AppWrapper would be refused, as a pod that evicts others is"},
}

const byRole = "it is RBAC that refuses it, whose other side is an administrator's role"

// triesInVain creates and changes what could not succeed anyway.
func (s *story) triesInVain(ctx context.Context) {
	s.t.Helper()
	for name, r := range refused {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(r.manifest), &object.Object); err != nil {
			s.t.Fatalf("%s: %v in %s", name, err, r.manifest)
		}
		err := s.sends(ctx, object)
		if isRefusal := apierrors.IsForbidden(err) || apierrors.IsInvalid(err); !isRefusal || !strings.Contains(err.Error(), r.says) {
			s.t.Errorf("%s: the API server answers: %v", name, err)
		}
	}
	// The controller removes what its status lists, whatever becomes of the spec.
	if err := s.patch(ctx, ofAppWrappers, "AppWrapper", "handed", `{"spec":{"components":[]}}`); err == nil || !strings.Contains(err.Error(), "mlbatch-started") {
		s.t.Errorf("an AppWrapper that is emptied while it is deleted: the API server answers: %v", err)
	}
	s.deletesInTheBackgroundOnly(ctx)
	s.changesNoWorkload(ctx)
	s.getsNoPods(ctx)
}

// deletesInTheBackgroundOnly: otherwise the Workload could go before the pods, or stay without an owner. No
// attack does this, because the controller looks after both.
func (s *story) deletesInTheBackgroundOnly(ctx context.Context) {
	s.t.Helper()
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		for _, object := range []client.Object{&workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: "door"}}, s.unwrapped("pytorchjob", "bare")} {
			object.SetNamespace(s.namespace)
			if err := s.user.Delete(ctx, object, client.PropagationPolicy(policy), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "can be deleted in the background only") {
				s.t.Errorf("%s of %s: the API server answers: %v", policy, object.GetName(), err)
			}
		}
	}
}

// changesNoWorkload: a member may only read what Kueue writes.
func (s *story) changesNoWorkload(ctx context.Context) {
	s.t.Helper()
	workloads := &kueue.WorkloadList{}
	if err := s.admin.List(ctx, workloads); err != nil || len(workloads.Items) == 0 {
		s.t.Fatalf("there are %d Workloads (%v)", len(workloads.Items), err)
	}
	w := &workloads.Items[0]
	for what, patch := range map[string]string{"active": `{"spec":{"active":false}}`, "priority": `{"spec":{"priority":1000}}`, "finalizers": `{"metadata":{"finalizers":null}}`} {
		if err := s.patch(ctx, kueue.SchemeGroupVersion.String(), "Workload", w.Name, patch); !apierrors.IsForbidden(err) {
			s.t.Errorf("%s of a Workload: the API server answers: %v", what, err)
		}
	}
}

// getsNoPods: what the webhook refuses before there are pods, the API server refuses of pods, too,
// whoever creates them.
func (s *story) getsNoPods(ctx context.Context) {
	s.t.Helper()
	for defence, change := range map[string]func(*corev1.PodSpec){
		"mlbatch-placement":  func(p *corev1.PodSpec) { p.NodeName = "any" },
		"mlbatch-priorities": func(p *corev1.PodSpec) { p.PriorityClassName = "system-node-critical" },
		"PodSecurity":        func(p *corev1.PodSpec) { p.HostNetwork = true },
		`serviceaccount "appwrapper-controller-manager" not found`: func(p *corev1.PodSpec) { p.ServiceAccountName = "appwrapper-controller-manager" },
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "refused", Namespace: s.namespace}}
		pod.Spec = job("refused", "50m", "linger", "0s").Spec.Template.Spec
		change(&pod.Spec)
		if err := s.admin.GetControllerRuntimeClient().Create(ctx, pod, client.DryRunAll); err == nil || !strings.Contains(err.Error(), defence) {
			s.t.Errorf("%s: the API server answers: %v", defence, err)
		}
	}
}
