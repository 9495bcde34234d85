// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package scenes_test

import (
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// later is longer than anybody may be silent.
const later = 5 * time.Minute

// lives are scenes in which something happens to work that runs.
var lives = map[explain.Code]scene{
	"StartedTooSlowly": {set: func(p *place) {
		p.queue()
		p.submit("train", onlyIn("nobody"), annotated(workload.WarmupGracePeriodDurationAnnotation, "2s"), annotated(workload.RetryPausePeriodDurationAnnotation, "10m"))
	}},
	"PodsNotReady": {set: func(p *place) {
		p.queue()
		p.runs("train", unwilling)
		p.evict(p.pod("train"))
	}},
	"ComponentMissing": {set: func(p *place) {
		p.queue()
		p.runs("train", annotated(workload.RetryPausePeriodDurationAnnotation, "10m"))
		p.remove(&batchv1.Job{ObjectMeta: p.named("train")})
	}},
	"PodDrained": {set: func(p *place) {
		p.queue()
		p.runs("train", unwilling)
		p.evict(p.pod("train"))
	}},
	"BadNode": {set: func(p *place) {
		p.queue(ofGPUs)
		p.runs("train", requesting("nvidia.com/gpu", "1"), unwilling, onlyIn("bad"))
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.pod("train").Spec.NodeName}}
		p.patch(node, `{"metadata": {"labels": {"autopilot.ibm.com/gpuhealth": "EVICT"}}}`)
	}},
	"DevicesIdle": {set: func(p *place) { p.idle("1m") }}, // the author is told, and half a minute later it is GivenBack
	"GivenBack":   {set: func(p *place) { p.idle("2s") }},
	"OperatorSilent": {later: later, set: func(p *place) {
		p.stop("kuberay-operator")
		p.queue()
		p.submit("train", instead(rayCluster()))
	}},
	"RunRefused": {set: func(p *place) {
		p.queue()
		sandbox.AllowRuns(p.T, p.admin, p.namespace)
		run := sandbox.RunOf(sandbox.Program(p.namespace), "train")
		run.Spec.QueueName = queueName
		p.create(run)
	}},
	"RunCancelled": {set: func(p *place) {
		p.queue()
		sandbox.AllowRuns(p.T, p.admin, p.namespace)
		program := sandbox.Program(p.namespace)
		p.create(program)
		run := sandbox.RunOf(program, "train")
		run.Spec.QueueName = queueName
		p.create(run)
		p.patch(run, `{"spec": {"cancel": true}}`)
	}},
}

// ends are scenes in which work has ended, is ended, or cannot end.
var ends = map[explain.Code]scene{
	"Succeeded": {set: func(p *place) { p.queue(); p.submit("train", on(runFor, "1s")) }},
	"SuccessKept": {set: func(p *place) {
		p.queue()
		p.submit("train", on(runFor, "1s"), annotated(workload.SuccessTTLAnnotation, "10m"))
	}},
	"Failed": {set: func(p *place) { p.queue(); p.submit("train", failing, annotated(workload.RetryLimitAnnotation, "0")) }},
	"RetryLimit": {set: func(p *place) {
		p.queue()
		p.submit("train", failing, annotated(workload.RetryLimitAnnotation, "1"), annotated(workload.RetryPausePeriodDurationAnnotation, "1s"))
	}},
	"HeldForDebugging": {set: func(p *place) {
		p.queue()
		p.submit("train", failing, annotated(workload.RetryLimitAnnotation, "0"), annotated(workload.DeletionOnFailureGracePeriodAnnotation, "10m"))
	}},
	"Retrying": {set: func(p *place) {
		p.queue()
		p.submit("train", failing, annotated(workload.RetryPausePeriodDurationAnnotation, "10m"))
	}},
	"ComponentFailed": {set: func(p *place) {
		p.queue()
		p.submit("train", failing, annotated(workload.RetryPausePeriodDurationAnnotation, "10m"))
	}},
	"RemovalStuck": {set: func(p *place) {
		p.queue()
		p.runs("train", impatient)
		p.keep("train")
		p.patch(p.its("train"), `{"spec": {"active": false}}`)
	}},
	"DeletionStuck": {set: func(p *place) {
		p.queue()
		p.runs("train", impatient)
		p.keep("train")
		p.remove(p.wrapper("train"))
	}},
	"BeingDeleted": {set: func(p *place) { p.queue(); p.runs("train", unwilling); p.remove(p.wrapper("train")) }},
	"PodsEnding":   {set: func(p *place) { p.queue(); p.runs("train", unwilling); p.remove(p.wrapper("train")) }},
	"PodStuck":     {later: later, set: func(p *place) { p.queue(); p.runs("train", unwilling); p.remove(p.wrapper("train")) }},
}

// failing is a Job whose pod fails after a second. A deadline of the Job would be final.
func failing(w *work) {
	on(runFor, "1s")(w)
	on(exitCode, "1")(w)
}

// impatient is work that waits for nothing.
func impatient(w *work) {
	annotated(workload.ForcefulDeletionGracePeriodAnnotation, "1s")(w)
	annotated(workload.RetryPausePeriodDurationAnnotation, "1s")(w)
	annotated(workload.FailureGracePeriodDurationAnnotation, "1s")(w)
}

// keep lets a finalizer keep a Job.
func (p *place) keep(name string) {
	p.Helper()
	p.patch(&batchv1.Job{ObjectMeta: p.named(name)}, `{"metadata": {"finalizers": ["example.com/keep"]}}`)
}

func (p *place) evict(pod *corev1.Pod) {
	p.Helper()
	if err := p.admin.SubResource("eviction").Create(p.Context(), pod, &policyv1.Eviction{}); err != nil {
		p.Fatal(err)
	}
}

// idle lets work run whose devices are idle, says whoever watches them.
func (p *place) idle(grace string) {
	p.Helper()
	p.queue(ofGPUs)
	p.runs("train", requesting("nvidia.com/gpu", "1"), annotated(workload.IdleGracePeriodDurationAnnotation, grace))
	pod := p.pod("train")
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: workload.PodIdleCondition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), LastProbeTime: metav1.Now(),
	})
	pod.ResourceVersion = ""
	if err := p.admin.Status().Update(p.Context(), pod); err != nil {
		p.Fatal(err)
	}
}

// stop ends an operator of the platform.
func (p *place) stop(name string) {
	p.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: platform.Namespace, Name: name}}
	p.patch(d, `{"spec": {"replicas": 0}}`)
	p.until(func() error {
		if err := p.admin.Get(p.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		if d.Status.Replicas > 0 {
			return errors.New(name + " is there")
		}
		return nil
	})
}

func rayCluster() map[string]any {
	return map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": map[string]any{"name": "train"},
		"spec": map[string]any{"headGroupSpec": map[string]any{"rayStartParams": map[string]any{}, "template": newJob("train").Spec.Template}},
	}
}
