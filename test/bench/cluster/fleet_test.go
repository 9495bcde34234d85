// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/bench"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

// Who runs jobs again after a fault.
const ours, theirs = "AppWrapper", "JobSet"

// ofJob is the label of pods that says whose they are.
const ofJob = "bench.example.com/job"

// gang is how many pods a job has.
const gang = 10

// fleet are the jobs that run on all nodes: as many AppWrappers as JobSets.
type fleet struct {
	*testing.T
	admin client.WithWatch
	jobs  int // of each
	used  int // nodes that have failed before

	mu    sync.Mutex
	pods  map[string]bench.Pod // by UID
	falls map[string]*bench.Fall
}

func newFleet(t *testing.T, admin client.WithWatch, pods int) *fleet {
	t.Helper()
	f := &fleet{T: t, admin: admin, jobs: pods / gang / 2, pods: map[string]bench.Pod{}}
	for by, namespace := range f.namespaces() {
		sandbox.Create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		sandbox.Follow(t, admin, &corev1.PodList{}, func(pod *corev1.Pod, gone bool) { f.hear(by, pod, gone) }, client.InNamespace(namespace))
	}
	sandbox.Follow(t, admin, &workload.AppWrapperList{}, func(aw *workload.AppWrapper, _ bool) {
		if aw.Status.Phase == workload.AppWrapperResetting {
			f.detected(ours, aw.Name)
		}
	})
	restarts := map[string]int32{} // only the watch uses it
	sandbox.Follow(t, admin, &jobset.JobSetList{}, func(js *jobset.JobSet, _ bool) {
		if js.Status.Restarts > restarts[js.Name] {
			restarts[js.Name] = js.Status.Restarts
			f.detected(theirs, js.Name)
		}
	})
	return f
}

func (f *fleet) namespaces() map[string]string {
	return map[string]string{ours: "react-appwrappers", theirs: "react-jobsets"}
}

func (f *fleet) hear(by string, pod *corev1.Pod, gone bool) {
	p := bench.Pod{
		Job: pod.Labels[ofJob], UID: string(pod.UID), Node: pod.Spec.NodeName,
		Runs: pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero(),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pods[p.UID] = p; gone {
		delete(f.pods, p.UID)
	}
	if fall := f.falls[by]; fall != nil {
		fall.Hear(p, gone, time.Now())
	}
}

func (f *fleet) detected(by, job string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fall := f.falls[by]; fall != nil {
		fall.Detect(job, time.Now())
	}
}

// create creates all jobs, those of both alternately, so that each node has pods of both.
func (f *fleet) create() {
	f.Helper()
	all, ctx := errgroup.WithContext(f.Context())
	all.SetLimit(authors)
	for i := range f.jobs {
		for _, o := range []client.Object{f.appWrapper(i), f.jobSet(i)} {
			all.Go(func() error { return f.admin.Create(ctx, o) })
		}
	}
	if err := all.Wait(); err != nil {
		f.Fatal(err)
	}
}

// job has pods of which twelve fit on a node. All jobs together leave a sixth of the nodes free.
func job(name string) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](gang), Completions: ptr.To[int32](gang), BackoffLimit: new(int32),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{ofJob: name}},
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
					Name: "main", Image: "registry.example/work:1",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}},
				}}},
			},
		},
	}
}

func (f *fleet) appWrapper(i int) *workload.AppWrapper {
	name := fmt.Sprintf("wrapped-%04d", i)
	raw, err := json.Marshal(job(name))
	if err != nil {
		panic(err) // a Job is JSON
	}
	return &workload.AppWrapper{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespaces()[ours], Name: name, Annotations: map[string]string{
			workload.RetryPausePeriodDurationAnnotation: "0s", workload.ForcefulDeletionGracePeriodAnnotation: "30s", workload.RetryLimitAnnotation: "100",
		}},
		Spec: workload.AppWrapperSpec{Components: []workload.AppWrapperComponent{{Template: runtime.RawExtension{Raw: raw}}}},
	}
}

func (f *fleet) jobSet(i int) *jobset.JobSet {
	name := fmt.Sprintf("set-%04d", i)
	return &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespaces()[theirs], Name: name},
		Spec: jobset.JobSetSpec{
			FailurePolicy:  &jobset.FailurePolicy{MaxRestarts: 100},
			ReplicatedJobs: []jobset.ReplicatedJob{{Name: "main", Replicas: 1, Template: batchv1.JobTemplateSpec{Spec: job(name).Spec}}},
		},
	}
}

// size is how many pods all jobs have.
func (f *fleet) size() int { return 2 * f.jobs * gang }

// allRun waits until all jobs have all their pods.
func (f *fleet) allRun(limit time.Duration) error {
	return sandbox.Within(f.Context(), limit, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		running := 0
		for _, p := range f.pods {
			if p.Runs {
				running++
			}
		}
		if want := f.size(); running != want {
			return fmt.Errorf("%d of %d pods run", running, want)
		}
		return nil
	})
}

// next are nodes that have not failed before, as long as there are any.
func (f *fleet) next(n int) (nodes []string) {
	for range n {
		nodes = append(nodes, fmt.Sprintf("gpu-%d", f.used%*fleetNodes))
		f.used++
	}
	return nodes
}

// begin begins to time a fault.
func (f *fleet) begin(nodes []string, b blow) map[string]*bench.Fall {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.falls = map[string]*bench.Fall{}
	for _, by := range b.seenBy {
		f.falls[by] = bench.NewFall(gang, nodes, b.returns, f.podsOf(by))
	}
	return f.falls
}

func (f *fleet) podsOf(by string) (all []bench.Pod) {
	names := map[string]string{ours: "wrapped-", theirs: "set-"}
	for _, p := range f.pods {
		if len(p.Job) > len(names[by]) && p.Job[:len(names[by])] == names[by] {
			all = append(all, p)
		}
	}
	return all
}

func (f *fleet) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.falls = nil
}

// hit begins the time of the jobs that have pods on a node.
func (f *fleet) hit(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.pods {
		if p.Node != node || !p.Runs {
			continue
		}
		for _, fall := range f.falls {
			fall.Hit(p.Job, time.Now())
		}
	}
}

// inEach does something to each node, to many at the same time.
func (f *fleet) inEach(nodes []string, do func(context.Context, *fleet, string) error) {
	f.Helper()
	all, ctx := errgroup.WithContext(f.Context())
	all.SetLimit(2 * authors)
	for _, node := range slices.Clone(nodes) {
		all.Go(func() error { return do(ctx, f, node) })
	}
	if err := all.Wait(); err != nil {
		f.Fatal(err)
	}
}
