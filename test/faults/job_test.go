// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/patience"
)

// team is the namespace of all work, unless a job says otherwise.
const team = "blue"

const gpu = corev1.ResourceName("nvidia.com/gpu")

// gpusOfAPod are so many that no two pods fit on a node with 8.
const gpusOfAPod = "5"

// job is an AppWrapper of one Job, and what was seen of it.
type job struct {
	*testing.T
	name        string
	team        string
	pods        int32
	gpus        string
	annotations map[string]string
	// edit changes the pods' spec.
	edit func(*corev1.PodSpec)

	mu   sync.Mutex
	seen []look
}

// look is an AppWrapper at a time.
type look struct {
	at time.Time
	aw *workload.AppWrapper
}

func (j *job) namespace() string { return cmp.Or(j.team, team) }

// newJob has so many pods, each with so many GPUs. Edit may be nil.
func newJob(name string, pods int32, gpus string, edit func(*corev1.PodSpec)) *batchv1.Job {
	amount := corev1.ResourceList{gpu: resource.MustParse(gpus), corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	made := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{Parallelism: &pods, Completions: &pods, BackoffLimit: new(int32), Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{
				{Name: "main", Image: "registry.example/work:1", Resources: corev1.ResourceRequirements{Requests: amount, Limits: amount}},
			}},
		}},
	}
	if edit != nil {
		edit(&made.Spec.Template.Spec)
	}
	return made
}

// submit creates the AppWrapper, and begins to watch it.
func (j *job) submit() {
	j.Helper()
	raw, err := json.Marshal(newJob(j.name, j.pods, j.gpus, j.edit))
	if err != nil {
		j.Fatal(err)
	}
	annotations := map[string]string{
		workload.RetryPausePeriodDurationAnnotation: "1s", workload.ForcefulDeletionGracePeriodAnnotation: "1s", workload.RetryLimitAnnotation: "1",
	}
	maps.Copy(annotations, j.annotations)
	aw := &workload.AppWrapper{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.namespace(), Name: j.name, Annotations: annotations},
		Spec:       workload.AppWrapperSpec{Components: []workload.AppWrapperComponent{{Template: runtime.RawExtension{Raw: raw}}}},
	}
	if err := admin.Create(j.Context(), aw); err != nil {
		j.Fatal(err)
	}
	j.watch()
}

// takeYourTime gives the next attempt as long as a busy machine needs: no grace is what a fault is about then.
func (j *job) takeYourTime() {
	j.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"1h",%q:"1h",%q:"1h"}}}`, workload.AdmissionGracePeriodDurationAnnotation,
		workload.WarmupGracePeriodDurationAnnotation, workload.NoProgressGracePeriodDurationAnnotation)
	aw := &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: j.namespace(), Name: j.name}}
	if err := admin.Patch(j.Context(), aw, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		j.Fatal(err)
	}
}

func (j *job) watch() {
	watch, err := admin.Watch(j.Context(), &workload.AppWrapperList{}, client.InNamespace(j.namespace()), client.MatchingFields{"metadata.name": j.name})
	if err != nil {
		j.Fatal(err)
	}
	go func() {
		for event := range watch.ResultChan() {
			if aw, ok := event.Object.(*workload.AppWrapper); ok {
				j.mu.Lock()
				j.seen = append(j.seen, look{time.Now(), aw})
				j.mu.Unlock()
			}
		}
	}()
}

// first is the first look since then that a condition is about.
func (j *job) first(since time.Time, condition func(*workload.AppWrapper) bool) (look, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.IndexFunc(j.seen, func(l look) bool { return l.at.After(since) && condition(l.aw) })
	if i < 0 {
		return look{}, false
	}
	return j.seen[i], true
}

// await returns the first such look.
func (j *job) await(what string, limit time.Duration, since time.Time, condition func(*workload.AppWrapper) bool) look {
	j.Helper()
	var found look
	until(j.T, limit, j.name+" "+what, func(context.Context) error {
		l, ok := j.first(since, condition)
		if found = l; !ok {
			return fmt.Errorf("it is not: %s", j.latest())
		}
		return nil
	})
	return found
}

func (j *job) latest() string {
	l := j.last()
	if l.aw == nil {
		return "unknown"
	}
	text, _ := json.Marshal(l.aw.Status)
	return string(text)
}

// last is the last look; empty if there is none.
func (j *job) last() look {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.seen) == 0 {
		return look{}
	}
	return j.seen[len(j.seen)-1]
}

// running: all pods are ready.
func running(aw *workload.AppWrapper) bool {
	return aw.Status.Phase == workload.AppWrapperRunning && meta.IsStatusConditionTrue(aw.Status.Conditions, string(workload.PodsReady))
}

func in(phase workload.AppWrapperPhase) func(*workload.AppWrapper) bool {
	return func(aw *workload.AppWrapper) bool { return aw.Status.Phase == phase }
}

// why is what the condition Unhealthy says.
func why(aw *workload.AppWrapper) string {
	if c := meta.FindStatusCondition(aw.Status.Conditions, string(workload.Unhealthy)); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}

// itsPods are the pods that have not ended.
func (j *job) itsPods() []corev1.Pod {
	j.Helper()
	pods := &corev1.PodList{}
	if err := admin.List(j.Context(), pods, client.InNamespace(j.namespace()), client.MatchingLabels{workload.AppWrapperLabel: j.name}); err != nil {
		j.Fatal(err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil })
}

func (j *job) allGPUs() int64 {
	amount := resource.MustParse(j.gpus)
	return amount.Value() * int64(j.pods)
}

func (j *job) itsNodes() []string {
	j.Helper()
	var names []string
	for _, p := range j.itsPods() {
		names = append(names, p.Spec.NodeName)
	}
	return names
}

// end deletes the AppWrapper, and waits until nothing is left.
func (j *job) end() {
	ctx := context.Background()
	aw := &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: j.namespace(), Name: j.name}}
	if err := admin.Delete(ctx, aw); client.IgnoreNotFound(err) != nil {
		j.Error(err)
	}
	err := patience.Poll(ctx, time.Second/5, func(ctx context.Context) (bool, error) {
		return admin.Get(ctx, client.ObjectKeyFromObject(aw), aw) != nil, nil
	})
	if err != nil {
		j.Errorf("%s is not gone: %v", j.name, err)
	}
}

func until(t *testing.T, limit time.Duration, what string, condition func(context.Context) error) {
	t.Helper()
	var missing error
	err := patience.PollFor(t.Context(), time.Second/10, limit, func(ctx context.Context) (bool, error) {
		missing = condition(ctx)
		return missing == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v: %v", what, err, missing)
	}
}
