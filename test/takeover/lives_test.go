// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package takeover_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// A ResourceQuota in the namespace full forbids Services at first.
const open, full = "open", "full"

// hold is a finalizer that keeps a Job until the test removes it.
const hold = "example.com/hold"

// life is an AppWrapper in some phase at the change of controllers, and its component.
type life struct {
	namespace, name string
	phase           workload.AppWrapperPhase
	annotations     map[string]string
	component       *batchv1.Job
	service         bool
	// then is what happens to it before the change of controllers.
	then func(*site, *testing.T, *life)
}

func lives() []*life {
	prefix := workload.AnnotationPrefix
	generated := job("generated")
	generated.Name, generated.GenerateName = "", "generated-"
	return []*life{
		{namespace: open, name: "waiting", component: job("waiting"), phase: workload.AppWrapperSuspended, then: (*site).isLeftAlone},
		{namespace: full, name: "creating", component: job("creating"), service: true, phase: workload.AppWrapperResuming, then: (*site).hasRunningPods},
		{namespace: open, name: "running", component: job("running"), phase: workload.AppWrapperRunning, then: (*site).hasRunningPods},
		{namespace: open, name: "generated", component: generated, phase: workload.AppWrapperRunning, then: (*site).hasRunningPods},
		{namespace: open, name: "pausing", component: job("pausing"), phase: workload.AppWrapperResetting, then: (*site).failsAndIsRemoved},
		{namespace: open, name: "suspending", component: held(job("suspending")), phase: workload.AppWrapperSuspending, then: (*site).isSuspended},
		{namespace: open, name: "done", component: short(job("done")), phase: workload.AppWrapperSucceeded, then: (*site).isLeftAlone},
		{namespace: open, name: "kept", component: job("kept"), phase: workload.AppWrapperFailed, then: (*site).fails,
			annotations: map[string]string{prefix + "retryLimit": "0", prefix + "deletionOnFailureGracePeriodDuration": "1h"}},
		{namespace: open, name: "failed", component: job("failed"), phase: workload.AppWrapperFailed, then: (*site).failsAndIsRemoved,
			annotations: map[string]string{prefix + "retryLimit": "0"}},
		{namespace: open, name: "leaving", component: held(job("leaving")), phase: workload.AppWrapperTerminating, then: (*site).isDeleted},
	}
}

// job has two pods that run until they are told to stop.
func job(name string) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](2), Completions: ptr.To[int32](2), BackoffLimit: ptr.To[int32](0),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{
					Name: "main", Image: "registry.example/work:1",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}},
				}},
			}},
		},
	}
}

func short(j *batchv1.Job) *batchv1.Job {
	j.Spec.Template.Annotations = map[string]string{runFor: "1s"}
	return j
}

const runFor = "localcluster.mlbatch.dev/run-for"

func held(j *batchv1.Job) *batchv1.Job {
	j.Finalizers = []string{hold}
	return j
}

func (l *life) key() client.ObjectKey { return client.ObjectKey{Namespace: l.namespace, Name: l.name} }

func (l *life) begin(t *testing.T, s *site) {
	t.Helper()
	aw := &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: l.name, Annotations: l.annotations}}
	aw.Spec.Suspend = l.phase == workload.AppWrapperSuspended
	aw.Spec.Components = []workload.AppWrapperComponent{wrap(t, l.component)}
	if l.service {
		aw.Spec.Components = append(aw.Spec.Components, wrap(t, &corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Name: l.name},
			Spec: corev1.ServiceSpec{ClusterIP: "None"},
		}))
	}
	s.create(t, aw)
}

func wrap(t *testing.T, object client.Object) workload.AppWrapperComponent {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return workload.AppWrapperComponent{Template: runtime.RawExtension{Raw: raw}}
}

func (s *site) jobs(t *testing.T, l *life) []batchv1.Job {
	t.Helper()
	jobs := &batchv1.JobList{}
	if err := s.client.List(t.Context(), jobs, client.InNamespace(l.namespace), client.MatchingLabels{workload.AppWrapperLabel: l.name}); err != nil {
		t.Fatal(err)
	}
	return jobs.Items
}

func (s *site) pods(t *testing.T, l *life) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	if err := s.client.List(t.Context(), pods, client.InNamespace(l.namespace), client.MatchingLabels{workload.AppWrapperLabel: l.name}); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// summary describes what a change of controllers must not change.
func (s *site) summary(t *testing.T, l *life) string {
	t.Helper()
	aw := &workload.AppWrapper{}
	if err := s.client.Get(t.Context(), l.key(), aw); err != nil {
		return err.Error()
	}
	var parts []string
	for _, j := range s.jobs(t, l) {
		parts = append(parts, fmt.Sprintf("Job %s (deleted: %t)", j.UID, j.DeletionTimestamp != nil))
	}
	for _, p := range s.pods(t, l) {
		parts = append(parts, fmt.Sprintf("pod %s %s", p.UID, p.Status.Phase))
	}
	return fmt.Sprintf("%s, %d retries: %s", aw.Status.Phase, aw.Status.Retries, strings.Join(parts, ", "))
}
