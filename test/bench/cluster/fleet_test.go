// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/bench"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

// ofJob is the label of pods that says whose they are.
const ofJob = "bench.example.com/job"

// gang is how many pods a job has, of which so many fit on a node.
const gang, fit = 10, 12

// fleet are the jobs that run on all nodes, as many of each restarter.
type fleet struct {
	*testing.T
	admin      client.WithWatch
	restarters []restarter
	jobs       int             // of each
	used       map[string]bool // nodes that have failed before

	mu    sync.Mutex
	pods  map[string]map[string]bench.Pod // by restarter and UID
	falls map[string]*bench.Fall
}

func newFleet(t *testing.T, admin client.WithWatch, pods int, restarters []restarter) *fleet {
	t.Helper()
	f := &fleet{
		T: t, admin: admin, restarters: restarters, jobs: pods / gang / len(restarters),
		used: map[string]bool{}, pods: map[string]map[string]bench.Pod{},
	}
	for _, r := range restarters {
		f.pods[r.by] = map[string]bench.Pod{}
	}
	for _, r := range restarters {
		sandbox.Create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace, Labels: r.labels}})
		sandbox.Follow(t, admin, &corev1.PodList{}, func(pod *corev1.Pod, gone bool) { f.hear(r.by, pod, gone) }, client.InNamespace(r.namespace))
		r.prepare(f, func(job string) { f.detected(r.by, job) })
	}
	return f
}

func (f *fleet) hear(by string, pod *corev1.Pod, gone bool) {
	p := bench.Pod{
		Job: pod.Labels[ofJob], UID: string(pod.UID), Node: pod.Spec.NodeName,
		Runs: pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero(),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pods[by][p.UID] = p; gone {
		delete(f.pods[by], p.UID)
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

// create creates all jobs, those of all restarters alternately, so that each node has pods of all.
func (f *fleet) create() {
	f.Helper()
	all, ctx := errgroup.WithContext(f.Context())
	all.SetLimit(authors)
	for i := range f.jobs {
		for _, r := range f.restarters {
			o := r.job(i)
			o.SetNamespace(r.namespace)
			all.Go(func() error { return f.admin.Create(ctx, o) })
		}
	}
	if err := all.Wait(); err != nil {
		f.Fatal(err)
	}
}

// remove removes all jobs, and waits until nothing is left of them.
func (f *fleet) remove() {
	f.Helper()
	for _, r := range f.restarters {
		err := f.admin.DeleteAllOf(f.Context(), r.job(0), client.InNamespace(r.namespace), client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil {
			f.Fatal(err)
		}
	}
	err := sandbox.Within(f.Context(), 10*time.Minute, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		for by, pods := range f.pods {
			if n := len(pods); n > 0 {
				return fmt.Errorf("%d pods of %s are left", n, by)
			}
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
}

// size is how many pods all jobs have.
func (f *fleet) size() int { return len(f.restarters) * f.jobs * gang }

// allRun waits until all jobs have all their pods.
func (f *fleet) allRun(limit time.Duration) error {
	return sandbox.Within(f.Context(), limit, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		running := 0
		for _, p := range f.all() {
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

// all are the pods of all restarters.
func (f *fleet) all() (all []bench.Pod) {
	for _, pods := range f.pods {
		all = slices.AppendSeq(all, maps.Values(pods))
	}
	return all
}

// next are the nodes that fail next.
func (f *fleet) next(n int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	nodes := bench.Victims(f.all(), f.used, n)
	for _, node := range nodes {
		f.used[node] = true
	}
	return nodes
}

// begin begins to time a fault.
func (f *fleet) begin(nodes []string, b blow) map[string]*bench.Fall {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.falls = map[string]*bench.Fall{}
	for _, r := range f.restarters {
		if b.seen(r) {
			f.falls[r.by] = bench.NewFall(gang, nodes, b.returns, slices.Collect(maps.Values(f.pods[r.by])))
		}
	}
	return f.falls
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
	for by, fall := range f.falls {
		for _, p := range f.pods[by] {
			if p.Node == node && p.Runs {
				fall.Hit(p.Job, time.Now())
			}
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
