// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package chaos_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	retry "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// judge records all events in a namespace. Afterwards it decides whether pods existed without
// quota and whether anything was created twice. All kinds are in one etcd, so the
// resourceVersions give the order of events.
type judge struct {
	namespace string
	mu        sync.Mutex
	events    []watch.Event
}

// lists are of the kinds that the judge watches.
var lists = []client.ObjectList{&workload.AppWrapperList{}, &corev1.PodList{}, &batchv1.JobList{}}

type lister struct {
	list client.ObjectList
	in   client.InNamespace
}

func (l lister) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return admin.Watch(ctx, l.list, l.in, &client.ListOptions{Raw: &options})
}

func watchQuota(t *testing.T, namespace string) *judge {
	t.Helper()
	now := &corev1.ConfigMapList{}
	if err := admin.List(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	j := &judge{namespace: namespace}
	for _, list := range lists {
		events, err := retry.NewRetryWatcherWithContext(t.Context(), now.ResourceVersion, lister{list, client.InNamespace(namespace)})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for event := range events.ResultChan() {
				j.mu.Lock()
				j.events = append(j.events, event)
				j.mu.Unlock()
			}
		}()
	}
	return j
}

const fence = "fence"

// seen creates an object of each kind and waits until the judge has seen it, so that no earlier
// event is missing.
func (j *judge) seen(t *testing.T) []watch.Event {
	t.Helper()
	inNamespace := metav1.ObjectMeta{Namespace: j.namespace, Name: fence}
	pods := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, SchedulerName: "nobody", Containers: []corev1.Container{{Name: "c", Image: "none"}}}
	aw := &workload.AppWrapper{ObjectMeta: inNamespace}
	aw.Spec.ManagedBy, aw.Spec.Components = ptr.To("example.com/other"), []workload.AppWrapperComponent{}
	first := ""
	for _, object := range []client.Object{aw, &corev1.Pod{ObjectMeta: inNamespace, Spec: pods},
		&batchv1.Job{ObjectMeta: inNamespace, Spec: batchv1.JobSpec{Suspend: ptr.To(true), Template: corev1.PodTemplateSpec{Spec: pods}}}} {
		await(t, "a fence is made", func(ctx context.Context) error { return admin.Create(ctx, object) })
		if first == "" {
			first = object.GetResourceVersion()
		}
	}
	fences := 0
	await(t, "the judge has seen everything", func(context.Context) error {
		j.mu.Lock()
		defer j.mu.Unlock()
		fences = 0
		for _, e := range j.events {
			if o, ok := e.Object.(client.Object); ok && o.GetName() == fence && e.Type == watch.Added {
				fences++
			}
		}
		if fences < len(lists) {
			return context.DeadlineExceeded
		}
		return nil
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	slices.SortStableFunc(j.events, func(a, b watch.Event) int { return version(a) - version(b) })
	return slices.DeleteFunc(j.events, func(e watch.Event) bool {
		limit, _ := strconv.Atoi(first)
		return version(e) >= limit
	})
}

func version(e watch.Event) int {
	object, ok := e.Object.(client.Object)
	if !ok {
		return 0
	}
	n, _ := strconv.Atoi(object.GetResourceVersion())
	return n
}

// decide checks all recorded events in order.
func (j *judge) decide(t *testing.T) {
	t.Helper()
	quota, jobs, pods := map[string]bool{}, map[string]int{}, map[string]*corev1.Pod{}
	for _, e := range j.seen(t) {
		switch object := e.Object.(type) {
		case *workload.AppWrapper:
			holds := e.Type != watch.Deleted && holdsQuota(object)
			if quota[object.Name] && !holds {
				wantNoPods(t, object, pods)
			}
			quota[object.Name] = holds
		case *batchv1.Job:
			if e.Type == watch.Added {
				jobs[object.Name]++
				wantQuota(t, object, quota)
			}
		case *corev1.Pod:
			pods[object.Name] = object
			if e.Type == watch.Deleted {
				delete(pods, object.Name)
			}
			if e.Type == watch.Added {
				wantQuota(t, object, quota)
			}
		}
	}
	for _, l := range sorts {
		for round := range *rounds {
			if name := l.name + "-" + strconv.Itoa(round); jobs[name] != l.creations() {
				t.Errorf("the Job of %s was created %d times, want %d", name, jobs[name], l.creations())
			}
		}
	}
	t.Logf("%d AppWrappers, %d Jobs; none had a pod without quota", len(quota), len(jobs))
}

// holdsQuota reports whether Kueue counts the quota of an unsuspended AppWrapper as used.
func holdsQuota(aw *workload.AppWrapper) bool {
	is := func(c workload.AppWrapperCondition) bool {
		return meta.IsStatusConditionTrue(aw.Status.Conditions, string(c))
	}
	if aw.Status.Phase == workload.AppWrapperSucceeded || aw.Status.Phase == workload.AppWrapperFailed && !is(workload.ResourcesDeployed) {
		return false
	}
	return is(workload.QuotaReserved) || !aw.Spec.Suspend
}

func wantQuota(t *testing.T, object client.Object, quota map[string]bool) {
	t.Helper()
	if owner := object.GetLabels()[workload.AppWrapperLabel]; !quota[owner] {
		t.Errorf("%T %s was created while %s had no quota", object, object.GetName(), owner)
	}
}

func wantNoPods(t *testing.T, aw *workload.AppWrapper, pods map[string]*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.Labels[workload.AppWrapperLabel] == aw.Name && !ended {
			t.Errorf("%s, which is %s, released its quota while pod %s was %s", aw.Name, aw.Status.Phase, pod.Name, pod.Status.Phase)
		}
	}
}
