// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/test/patience"
)

// rehearsal is a kind that the controller knows only from its configuration.
const rehearsal = "rehearsal"

// life is one object of a kind, from testdata/kinds, and how it must end.
type life struct {
	kind string
	// code is the exit code of its programs; "" for services, which do not end.
	code string
	// pods are the numbers of pods, by pod set, that Kueue must reserve quota for.
	pods []int32
	end  workload.AppWrapperPhase
	// declared is the path of the pod template, if the AppWrapper has to declare it.
	declared string
}

// lives has the kinds that the controller knows, and two that must be declared.
var lives = []life{
	{kind: "pod", code: "0", pods: []int32{1}, end: workload.AppWrapperSucceeded},
	{kind: "pod", code: "3", pods: []int32{1}, end: workload.AppWrapperFailed},
	{kind: "job", code: "0", pods: []int32{2}, end: workload.AppWrapperSucceeded},
	{kind: "job", code: "3", pods: []int32{2}, end: workload.AppWrapperFailed},
	{kind: "jobset", code: "0", pods: []int32{1, 2}, end: workload.AppWrapperSucceeded},
	{kind: "jobset", code: "3", pods: []int32{1, 2}, end: workload.AppWrapperFailed},
	{kind: "pytorchjob", code: "3", pods: []int32{1, 1}, end: workload.AppWrapperFailed},
	{kind: "tfjob", code: "0", pods: []int32{1, 2}, end: workload.AppWrapperSucceeded},
	{kind: "tfjob", code: "3", pods: []int32{1, 2}, end: workload.AppWrapperFailed},
	{kind: "xgboostjob", code: "0", pods: []int32{1, 2}, end: workload.AppWrapperSucceeded},
	{kind: "xgboostjob", code: "3", pods: []int32{1, 2}, end: workload.AppWrapperFailed},
	{kind: "paddlejob", code: "0", pods: []int32{1, 2}, end: workload.AppWrapperSucceeded},
	{kind: "paddlejob", code: "3", pods: []int32{1, 2}, end: workload.AppWrapperFailed},
	{kind: "jaxjob", code: "0", pods: []int32{2}, end: workload.AppWrapperSucceeded},
	{kind: "jaxjob", code: "3", pods: []int32{2}, end: workload.AppWrapperFailed},
	{kind: "mpijob", code: "0", pods: []int32{1, 2}, end: workload.AppWrapperSucceeded},
	{kind: "mpijob", code: "3", pods: []int32{1, 2}, end: workload.AppWrapperFailed},
	{kind: "rayjob", code: "0", pods: []int32{1, 1, 1}, end: workload.AppWrapperSucceeded},
	{kind: "rayjob", code: "3", pods: []int32{1, 1, 1}, end: workload.AppWrapperFailed},
	{kind: rehearsal, code: "0", pods: []int32{2}, end: workload.AppWrapperSucceeded, declared: "template.spec.template"},
	{kind: rehearsal, code: "3", pods: []int32{2}, end: workload.AppWrapperFailed, declared: "template.spec.template"},
	{kind: "deployment", pods: []int32{2}, end: workload.AppWrapperRunning},
	{kind: "statefulset", pods: []int32{2}, end: workload.AppWrapperRunning},
	{kind: "replicaset", pods: []int32{2}, end: workload.AppWrapperRunning},
	{kind: "leaderworkerset", pods: []int32{2, 2}, end: workload.AppWrapperRunning},
	{kind: "raycluster", pods: []int32{1, 2}, end: workload.AppWrapperRunning},
	{kind: "rayservice", pods: []int32{1, 1}, end: workload.AppWrapperRunning},
	{kind: "replicationcontroller", pods: []int32{2}, end: workload.AppWrapperRunning, declared: "template.spec.template"},
}

// Kueue reserves quota for the pods of every kind, and the controller notices the end that its
// operator reports. All lives run at the same time.
func TestEveryKindLives(t *testing.T) {
	testenv.Test(t, features.New("kinds").Assess("each comes to its end", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-kinds", "kate", needs.Pods, needs.RayPods, needs.EveryKind)
		all := map[*life]*workload.AppWrapper{}
		for i := range lives {
			aw := lives[i].wrapped(s)
			all[&lives[i]] = aw
			s.create(ctx, aw)
		}
		for i := range lives {
			l := &lives[i]
			t.Run(l.name(), func(t *testing.T) { s.in(t).comesToItsEnd(ctx, l, all[l]) })
		}
		for _, aw := range all {
			s.remove(ctx, aw)
		}
		s.until(ctx, "nothing is left", s.left)
		s.untilReserved(ctx, corev1.ResourceCPU, "0")
		return ctx
	}).Feature())
}

func (l *life) name() string {
	return l.kind + map[string]string{"": "", "0": "-succeeds", "3": "-fails"}[l.code]
}

// wrapped reads the manifest. No grace ends while all the others start beside it, or before the story creates the pods
// of a Rehearsal, and failure comes from the component's status rather than from its pods. One grace has to end: that
// of pods that outlive the success of an MPIJob, and of those that tell that a Rehearsal has failed.
func (l *life) wrapped(s *story) *workload.AppWrapper {
	s.t.Helper()
	annotations := map[string]string{
		workload.AdmissionGracePeriodDurationAnnotation: "1h",
		workload.WarmupGracePeriodDurationAnnotation:    "1h",
		workload.FailureGracePeriodDurationAnnotation:   "1h",
	}
	if l.end == workload.AppWrapperSucceeded || l.kind == rehearsal {
		annotations[workload.FailureGracePeriodDurationAnnotation] = patience.For(5 * time.Second).String()
	}
	if l.end == workload.AppWrapperFailed {
		annotations[workload.RetryLimitAnnotation] = "0"
	}
	aw := wrapped(l.name(), s.manifestOf(l.kind, l.name(), l.code), annotations)
	if l.declared != "" {
		aw.Spec.Components[0].DeclaredPodSets = []workload.AppWrapperPodSet{{Path: l.declared, Replicas: &l.pods[0]}}
	}
	return aw
}

// manifestOf returns an object from testdata/kinds.
func (s *story) manifestOf(kind, name, code string) map[string]any {
	s.t.Helper()
	object := map[string]any{}
	s.read(filepath.Join("kinds", kind+".yaml"), map[string]string{"NAME": name, "CODE": code, "IMAGE": here.Workload.Name, "RAY": here.Ray.Name}, &object)
	return object
}

// read decodes a file of testdata after replacing its shell-style variables.
func (s *story) read(file string, values map[string]string, into any) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(os.Expand(string(text), func(key string) string { return values[key] })), into); err != nil {
		s.t.Fatalf("%s: %v", file, err)
	}
}

// comesToItsEnd follows one life to the end that its row states.
func (s *story) comesToItsEnd(ctx context.Context, l *life, aw *workload.AppWrapper) {
	s.t.Helper()
	if l.kind == rehearsal {
		s.rehearse(ctx, l)
	}
	s.untilPhase(ctx, aw, l.end)
	if diff := gocmp.Diff(l.pods, s.podsWithQuota(ctx, aw)); diff != "" {
		s.t.Errorf("pods that have quota (-want +got):\n%s", diff)
	}
	switch l.end {
	case workload.AppWrapperRunning:
		s.untilReady(ctx, aw)
		s.untilRunning(ctx, aw.Name, sum(l.pods))
	case workload.AppWrapperFailed:
		s.untilWorkload(ctx, aw, kueue.WorkloadFinished, "True", kueue.WorkloadFinishedReasonFailed)
		want := cmp.Or(map[string]string{rehearsal: "FoundFailedPods"}[l.kind], "FailedComponent")
		if c := meta.FindStatusCondition(aw.Status.Conditions, string(workload.Unhealthy)); c == nil || c.Reason != want {
			s.t.Errorf("want the reason %s, got %+v", want, c)
		}
	default:
		s.untilWorkload(ctx, aw, kueue.WorkloadFinished, "True", kueue.WorkloadFinishedReasonSucceeded)
	}
}

// podsWithQuota returns the pod counts of an AppWrapper's Workload, by pod set.
func (s *story) podsWithQuota(ctx context.Context, aw *workload.AppWrapper) (counts []int32) {
	s.t.Helper()
	w, err := s.workloadOf(ctx, aw)
	if err != nil || w == nil {
		s.t.Fatalf("the Workload is %v (%v)", w, err)
	}
	for _, podSet := range w.Spec.PodSets {
		counts = append(counts, podSet.Count)
	}
	return counts
}

// untilReady waits until the condition PodsReady of an AppWrapper is true.
func (s *story) untilReady(ctx context.Context, aw *workload.AppWrapper) {
	s.t.Helper()
	s.until(ctx, "the pods of "+aw.Name+" are ready", func(ctx context.Context) (string, error) {
		err := s.admin.Get(ctx, aw.Name, s.namespace, aw)
		if meta.IsStatusConditionTrue(aw.Status.Conditions, string(workload.PodsReady)) {
			return "", err
		}
		return fmt.Sprintf("it is %s, and its conditions are %+v", aw.Status.Phase, aw.Status.Conditions), err
	})
}

// rehearse plays the operator of Rehearsals: it creates the pods.
func (s *story) rehearse(ctx context.Context, l *life) {
	s.t.Helper()
	owner := &unstructured.Unstructured{}
	owner.SetAPIVersion("e2e.mlbatch.dev/v1")
	owner.SetKind("Rehearsal")
	s.until(ctx, "the Rehearsal is made", func(ctx context.Context) (string, error) {
		return "", s.admin.Get(ctx, l.name(), s.namespace, owner)
	})
	content, _, _ := unstructured.NestedMap(owner.Object, "spec", "template")
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &template); err != nil {
		s.t.Fatal(err)
	}
	for i := range sum(l.pods) {
		pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
		pod.Name, pod.Namespace = fmt.Sprintf("%s-%d", l.name(), i), s.namespace
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
		if err := s.admin.Create(ctx, pod); err != nil {
			s.t.Fatal(err)
		}
	}
}

func sum(counts []int32) int {
	total := 0
	for _, count := range counts {
		total += int(count)
	}
	return total
}
