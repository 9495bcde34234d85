// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package scenes_test

import (
	"encoding/json"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// work is a Job in an AppWrapper of the same name.
type work struct {
	*workload.AppWrapper
	job *batchv1.Job
	// more are further components.
	more []any
}

// submit creates work of one pod with one CPU, unless a change says otherwise.
func (p *place) submit(name string, changes ...func(*work)) {
	p.Helper()
	if err := p.try(name, changes...); err != nil {
		p.Fatalf("cannot submit %s: %v", name, err)
	}
}

// try is submit, unless it is refused.
func (p *place) try(name string, changes ...func(*work)) error {
	w := &work{
		AppWrapper: &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{
			Namespace: p.namespace, Name: name, Labels: map[string]string{workload.QueueNameLabel: queueName}, Annotations: map[string]string{},
		}},
		job: newJob(name),
	}
	for _, change := range changes {
		change(w)
	}
	components := w.more
	if w.job != nil {
		components = append([]any{w.job}, w.more...)
	}
	for _, c := range components {
		raw, err := json.Marshal(c)
		if err != nil {
			return err
		}
		w.Spec.Components = append(w.Spec.Components, workload.AppWrapperComponent{Template: runtime.RawExtension{Raw: raw}})
	}
	return p.admin.Create(p.Context(), w.AppWrapper)
}

func newJob(name string) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{Parallelism: new(int32(1)), Completions: new(int32(1)), BackoffLimit: new(int32(0)), Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/work:1",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			}}},
		}},
	}
}

func cpu(amount string) func(*work) { return requesting(corev1.ResourceCPU, amount) }

// requesting replaces what a pod requests.
func requesting(name corev1.ResourceName, amount string) func(*work) {
	return inPod(func(spec *corev1.PodSpec) {
		list := corev1.ResourceList{name: resource.MustParse(amount)}
		spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list}
		if name != corev1.ResourceCPU {
			spec.Containers[0].Resources.Limits = list
		}
	})
}

func pods(n int32) func(*work) {
	return func(w *work) { w.job.Spec.Parallelism, w.job.Spec.Completions = &n, &n }
}

func inPod(change func(*corev1.PodSpec)) func(*work) {
	return func(w *work) { change(&w.job.Spec.Template.Spec) }
}

func inJob(change func(*batchv1.Job)) func(*work) { return func(w *work) { change(w.job) } }

// on sets an annotation of the pods.
func on(annotation, value string) func(*work) {
	return func(w *work) {
		metav1.SetMetaDataAnnotation(&w.job.Spec.Template.ObjectMeta, annotation, value)
	}
}

func annotated(name, value string) func(*work) {
	return func(w *work) { metav1.SetMetaDataAnnotation(&w.ObjectMeta, name, value) }
}

func labelled(name, value string) func(*work) {
	return func(w *work) { metav1.SetMetaDataLabel(&w.ObjectMeta, name, value) }
}

func inQueue(name string) func(*work) { return labelled(workload.QueueNameLabel, name) }

const priorityLabel = "kueue.x-k8s.io/priority-class"

func important(w *work) { labelled(priorityLabel, urgent)(w) }

// Annotations that KWOK's stages of a local cluster know.
const (
	runFor   = "localcluster.mlbatch.dev/run-for"
	stopFor  = "localcluster.mlbatch.dev/stop-for"
	exitCode = "localcluster.mlbatch.dev/exit-code"
)

// unwilling are pods that take their time to stop.
func unwilling(w *work) {
	on(stopFor, "1h")(w)
	inPod(func(spec *corev1.PodSpec) { spec.TerminationGracePeriodSeconds = new(int64(60)) })(w)
	annotated(workload.ForcefulDeletionGracePeriodAnnotation, "1h")(w)
}

func (p *place) wrapper(name string) *workload.AppWrapper {
	p.Helper()
	aw := &workload.AppWrapper{}
	if err := p.admin.Get(p.Context(), client.ObjectKey{Namespace: p.namespace, Name: name}, aw); err != nil {
		p.Fatal(err)
	}
	return aw
}

// started submits work, and waits until Kueue lets it begin.
func (p *place) started(name string, changes ...func(*work)) {
	p.Helper()
	p.submit(name, changes...)
	p.until(func() error {
		if aw := p.wrapper(name); aw.Status.Phase == workload.AppWrapperEmpty || aw.Status.Phase == workload.AppWrapperSuspended {
			return fmt.Errorf("%s is %q", name, aw.Status.Phase)
		}
		return nil
	})
}

// runs submits work, and waits until its pods are ready.
func (p *place) runs(name string, changes ...func(*work)) {
	p.Helper()
	p.submit(name, changes...)
	p.untilReady(name)
}

func (p *place) untilReady(name string) {
	p.Helper()
	p.until(func() error {
		if aw := p.wrapper(name); !meta.IsStatusConditionTrue(aw.Status.Conditions, string(workload.PodsReady)) {
			return fmt.Errorf("%s is %q: %v", name, aw.Status.Phase, aw.Status.Conditions)
		}
		return nil
	})
}

// pod is one of the work.
func (p *place) pod(name string) *corev1.Pod {
	p.Helper()
	all := &corev1.PodList{}
	p.until(func() error {
		err := p.admin.List(p.Context(), all, client.InNamespace(p.namespace), client.MatchingLabels{workload.AppWrapperLabel: name})
		if err == nil && len(all.Items) == 0 {
			err = errors.New(name + " has no pods")
		}
		return err
	})
	return &all.Items[0]
}
