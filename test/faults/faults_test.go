// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/bench"
	"github.com/mlbatch/mlbatch/test/patience"
)

// fault is one story: a job runs, something breaks, and this follows.
type fault struct {
	sentence string
	// pods of the job, each with 5 GPUs, so that no two fit on a node; 1 by default.
	pods        int32
	annotations map[string]string
	// edit changes the pods' spec.
	edit func(*corev1.PodSpec)
	// before, if not nil, makes a node that the pods prefer and on which nothing starts. Then inject is called as
	// soon as a pod is there, and not when all run.
	before func(*testing.T) string
	// inject breaks something under the pods.
	inject func(*testing.T, []corev1.Pod)
	// found in so long; the default is a few seconds.
	within time.Duration
	// cause in the condition Unhealthy; empty if the job must not be touched.
	cause               string
	migrations, retries int32
	// late: the retries are because of late starts.
	late bool
	// fails: the job is not tried again.
	fails bool
	// returns: the job may return to the same node.
	returns bool
	// alone: it is not injected together with others, whose jobs it would change.
	alone bool
	// meet, if not nil, waits until all can be injected at once. Another may hit the node to which the job moves.
	meet func()
	// notForRivals says why the fault means nothing where others run the pods.
	notForRivals string
	// rivalsIn so long the fault may have been dealt with there; the default is a minute.
	rivalsIn time.Duration
}

const seconds = 15 * time.Second

const diskFull = "The node was low on resource: ephemeral-storage"

var (
	rounds = flag.Int("faults.rounds", 1, "how often each fault is injected")
	into   = flag.String("faults.report", "", "file for what followed, as JSON")
	commit = flag.String("faults.commit", "", "commit that is tested, for the report")
)

// hangsFor is how long the pods may be not ready.
func hangsFor(d string) map[string]string {
	return map[string]string{workload.NoProgressGracePeriodDurationAnnotation: d}
}

// startsSoon: the pods may take some seconds to start. The attempt after that has an hour.
func startsSoon() map[string]string {
	d := patience.For(5 * time.Second).String()
	return map[string]string{workload.AdmissionGracePeriodDurationAnnotation: d, workload.WarmupGracePeriodDurationAnnotation: d}
}

// probed adds a readiness probe. KWOK does not run it.
func probed(spec *corev1.PodSpec) {
	spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
}

var faults = []fault{
	{sentence: "a dead GPU on a Ready node rejects a pod", cause: "PodRejected UnexpectedAdmissionError", migrations: 1,
		inject: func(t *testing.T, pods []corev1.Pod) { fail(t, &pods[0], "UnexpectedAdmissionError", 0) }},
	{sentence: "a GPU is labelled EVICT", cause: "NodeLabel " + gpuHealth + "=EVICT", migrations: 1, inject: evict},
	{sentence: "a condition reports an XID", cause: "NodeCondition GpuXid=True", migrations: 1, inject: func(t *testing.T, pods []corev1.Pod) {
		changeStatus(t, pods[0].Spec.NodeName, func(s *corev1.NodeStatus) {
			s.Conditions = append(s.Conditions, corev1.NodeCondition{Type: xid, Status: corev1.ConditionTrue})
		})
	}},
	{sentence: "a device plugin withdraws a GPU", cause: "DevicesMissing nvidia.com/gpu", migrations: 1, inject: func(t *testing.T, pods []corev1.Pod) {
		changeStatus(t, pods[0].Spec.NodeName, func(s *corev1.NodeStatus) { s.Allocatable[gpu] = resource.MustParse("4") })
	}},
	{sentence: "a node is tainted", cause: "NodeTaint example.com/broken:NoExecute", migrations: 1, inject: func(t *testing.T, pods []corev1.Pod) {
		change(t, pods[0].Spec.NodeName, func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: broken, Effect: corev1.TaintEffectNoExecute})
		})
	}},
	{sentence: "a rack of 10 nodes is cordoned", pods: 10, cause: "NodeTaint node.kubernetes.io/unschedulable:NoSchedule", migrations: 1, inject: func(t *testing.T, pods []corev1.Pod) {
		for _, p := range pods {
			change(t, p.Spec.NodeName, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		}
	}},
	{sentence: "an exit code that is final", fails: true, cause: "exit code 13", annotations: map[string]string{workload.TerminalExitCodesAnnotation: "13"},
		inject: func(t *testing.T, pods []corev1.Pod) { fail(t, &pods[0], "", 13) }},
	{sentence: "an exit code that is not final", retries: 1, returns: true, cause: "exit code 12", annotations: map[string]string{workload.TerminalExitCodesAnnotation: "13"},
		inject: func(t *testing.T, pods []corev1.Pod) { fail(t, &pods[0], "", 12) }},
	{sentence: "out of memory", retries: 1, returns: true, cause: "OOMKilled",
		inject: func(t *testing.T, pods []corev1.Pod) { failBecause(t, &pods[0], "", "", "OOMKilled", 137) }},
	{sentence: "a flapping node", inject: func(t *testing.T, pods []corev1.Pod) {
		node := pods[0].Spec.NodeName
		kill(t, node)
		until(t, time.Minute, "the node controller notices", func(ctx context.Context) error { return tainted(ctx, node) })
		time.Sleep(seconds)
		heal(t, node)
	}},
	{sentence: "a label while the controller is down", cause: "NodeLabel " + gpuHealth + "=EVICT", migrations: 1, within: 2 * time.Minute, alone: true, notForRivals: "it is the controller of AppWrappers that is down", inject: func(t *testing.T, pods []corev1.Pod) {
		stop(t)
		evict(t, pods)
		time.Sleep(5 * time.Second)
		scale(t, 1)
	}},
	{sentence: "a rank hangs", pods: 2, cause: "NoProgress", retries: 1, returns: true, annotations: hangsFor("5s"), edit: probed,
		inject: func(t *testing.T, pods []corev1.Pod) { hang(t, pods[:1], metav1.Now()) }},
	{sentence: "all ranks hang at 100 %", pods: 4, cause: "NoProgress", retries: 1, returns: true, annotations: hangsFor("5s"), edit: probed,
		inject: func(t *testing.T, pods []corev1.Pod) { hang(t, pods, metav1.Now()) }},
	{sentence: "a start that is deadlocked", pods: 2, cause: "NoProgress", retries: 1, returns: true, annotations: hangsFor("5s"), edit: probed,
		inject: func(t *testing.T, pods []corev1.Pod) { hang(t, pods, *pods[0].Status.StartTime) }},
	{sentence: "a step that is slow", annotations: hangsFor("30s"), edit: probed, inject: func(t *testing.T, pods []corev1.Pod) {
		hang(t, pods, metav1.Now())
		time.Sleep(5 * time.Second)
		goOn(t, pods)
	}},
	{sentence: "a kubelet that starts nothing", cause: "PodNotStarted kubelet-silent", migrations: 1, annotations: startsSoon(), alone: true, before: lifeless, within: 30 * time.Second,
		inject: func(*testing.T, []corev1.Pod) {}},
	{sentence: "an image that never comes", pods: 2, cause: "InsufficientPodsReady", retries: 1, late: true, annotations: startsSoon(), alone: true, before: lifeless, within: 30 * time.Second,
		inject: func(t *testing.T, pods []corev1.Pod) { pulls(t, lifelessOf(pods)) }},
	{sentence: "a slow node", alone: true, before: lifeless, inject: func(t *testing.T, pods []corev1.Pod) {
		pulls(t, pods)
		time.Sleep(5 * time.Second)
		starts(t, pods)
	}},
	{sentence: "a full disk", cause: diskFull, retries: 1, inject: func(t *testing.T, pods []corev1.Pod) {
		t.Cleanup(func() { heal(t, pods[0].Spec.NodeName) })
		if err := report(t.Context(), pods[0].Spec.NodeName, corev1.NodeDiskPressure, corev1.ConditionTrue); err != nil {
			t.Fatal(err)
		}
		failBecause(t, &pods[0], "Evicted", diskFull+". Threshold quantity: 10Gi, available: 9Gi. ", "Error", 137)
	}},
	{sentence: "a pod is evicted through the API", cause: "PodEvicted EvictionByEvictionAPI", migrations: 1, returns: true, inject: func(t *testing.T, pods []corev1.Pod) {
		if err := admin.SubResource("eviction").Create(t.Context(), &pods[0], &policyv1.Eviction{}); err != nil {
			t.Fatal(err)
		}
	}},
	{sentence: "Kubernetes evicts a pod because of a taint", cause: "PodEvicted DeletionByTaintManager", migrations: 1, inject: func(t *testing.T, pods []corev1.Pod) {
		change(t, pods[0].Spec.NodeName, func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: unlisted, Effect: corev1.TaintEffectNoExecute})
		})
	}},
	{sentence: "a kubelet is silent", cause: "NodeNotReady node.kubernetes.io/unreachable", migrations: 1, within: 3 * time.Minute, rivalsIn: untilKubernetesEvicts,
		inject: func(t *testing.T, pods []corev1.Pod) { silence(t, pods[0].Spec.NodeName) }},
	{sentence: "a node is lost", cause: "NodeNotReady node.kubernetes.io/not-ready", migrations: 1, within: 3 * time.Minute, rivalsIn: untilKubernetesEvicts,
		inject: func(t *testing.T, pods []corev1.Pod) { kill(t, pods[0].Spec.NodeName) }},
}

func evict(t *testing.T, pods []corev1.Pod) {
	t.Helper()
	change(t, pods[0].Spec.NodeName, func(n *corev1.Node) { n.Labels[gpuHealth] = "EVICT" })
}

func tainted(ctx context.Context, name string) error {
	node, err := getNode(ctx, name)
	if err == nil && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }) {
		err = fmt.Errorf("its taints are %v", node.Spec.Taints)
	}
	return err
}

func TestFaults(t *testing.T) {
	crowd := newBystanders(t)
	crowd.raiseNothing(t, *alone)
	var all bench.Faults
	if *beside {
		prepareRivals(t)
	}
	for range *rounds {
		if *beside {
			t.Run("rivals", func(t *testing.T) { all.Rivals = append(all.Rivals, underRivals(t)...) })
			crowd.areUntouched(t, "the same under rivals")
		}
		for _, f := range faults {
			t.Run(f.sentence, func(t *testing.T) { all.Results = append(all.Results, f.happens(t)) })
			crowd.areUntouched(t, f.sentence)
		}
		t.Run(reclaims, func(t *testing.T) { all.Results = append(all.Results, reclaimed(t)) })
		t.Run(idles, func(t *testing.T) { all.Results = append(all.Results, idle(t)) })
		crowd.areUntouched(t, "idle GPUs")
	}
	t.Run("a second sign, from a Prometheus with TLS and tokens", secondSign)
	t.Run("nodes that fail unrelated work", unrelated)
	t.Run("a node on which programs fail", programsFail)
	t.Run("a node that fails two teams is cordoned", cordoned)
	t.Run("all at once", allAtOnce)
	crowd.areUntouched(t, "all of it")
	t.Logf("\n%s\n%s", all.Table(), all.Against())
	if *into != "" && !t.Failed() {
		keep(t, all)
	}
}

// allAtOnce injects all faults at the same moment, but for two sorts. Pods of others could come to a node on which
// nothing starts. And while the controller is down, nobody sees why Kubernetes evicts a pod from a tainted node.
func allAtOnce(t *testing.T) {
	enlarge(t)
	var missing sync.WaitGroup
	for _, f := range faults {
		if f.alone {
			continue
		}
		t.Run(f.sentence, func(t *testing.T) {
			missing.Add(1)
			arrive := sync.OnceFunc(missing.Done)
			t.Cleanup(arrive)
			t.Parallel()
			f.meet = func() { arrive(); missing.Wait() }
			f.within = max(f.within, time.Minute) // there is much to do
			f.happens(t)
		})
	}
}

// enlarge gives the team enough quota for all jobs until the test has ended.
func enlarge(t *testing.T) {
	t.Helper()
	set := func(ctx context.Context, gpus string) (before string, err error) {
		q := &kueue.ClusterQueue{}
		err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := admin.Get(ctx, client.ObjectKey{Name: team + "-cluster-queue"}, q); err != nil {
				return err
			}
			quotas := q.Spec.ResourceGroups[0].Flavors[0].Resources
			i := slices.IndexFunc(quotas, func(r kueue.ResourceQuota) bool { return r.Name == gpu })
			before, quotas[i].NominalQuota = quotas[i].NominalQuota.String(), resource.MustParse(gpus)
			return admin.Update(ctx, q)
		})
		return before, err
	}
	before, err := set(t.Context(), "500")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := set(context.Background(), before); err != nil {
			t.Error(err)
		}
	})
}

// keep writes what followed for docs/evidence/benchmarks.md.
func keep(t *testing.T, all bench.Faults) {
	t.Helper()
	head, err := bench.Here(*commit)
	if err == nil {
		all.Head = head
		err = bench.Write(*into, all)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// happens tells the story, and returns its times.
func (f fault) happens(t *testing.T) bench.Fault {
	j := &job{T: t, name: newName(), pods: max(f.pods, 1), gpus: gpusOfAPod, annotations: f.annotations, edit: f.edit}
	t.Cleanup(j.end)
	begin, left := f.begins(j)
	if f.cause != "" {
		return f.follows(j, begin, left)
	}
	time.Sleep(seconds)
	if l, moved := j.first(begin, func(aw *workload.AppWrapper) bool { return aw.Status.Phase == workload.AppWrapperResetting }); moved {
		t.Errorf("the job is %s: %s", l.aw.Status.Phase, why(l.aw))
	}
	j.await("runs", time.Minute, time.Time{}, running)
	j.balances(j.last(), f.losesTo())
	return bench.Fault{Says: f.sentence}
}

// begins injects the fault. It returns when, and the nodes to leave.
func (f fault) begins(j *job) (begin time.Time, left []string) {
	j.Helper()
	begin = time.Now()
	if f.before != nil {
		node := f.before(j.T)
		j.edit, left = prefer(node, 100), []string{node}
		j.submit()
		until(j.T, time.Minute, "a pod is on "+node, func(context.Context) error {
			if on := j.itsNodes(); !slices.Contains(on, node) {
				return fmt.Errorf("they are on %v", on)
			}
			return nil
		})
	} else {
		j.submit()
		j.await("runs", time.Minute, begin, running)
		left = j.itsNodes()
		workABit()
	}
	if f.meet != nil {
		f.meet()
	}
	begin = time.Now()
	f.inject(j.T, j.itsPods())
	return begin, left
}

func newName() string { return fmt.Sprintf("f%x", time.Now().UnixNano()) }

// follows checks what the platform does then.
func (f fault) follows(j *job, begin time.Time, left []string) bench.Fault {
	j.Helper()
	found := j.await("is reset", max(f.within, seconds), begin, func(aw *workload.AppWrapper) bool {
		return aw.Status.Phase == workload.AppWrapperResetting || aw.Status.Phase == workload.AppWrapperFailed
	})
	if got := why(found.aw); !strings.Contains(got, f.cause) {
		j.Errorf("it says %q, want %q", got, f.cause)
	}
	r := j.followed(f.sentence, f.cause, found.at.Sub(begin), 0)
	if f.fails {
		j.balances(j.await("has failed", seconds, begin, in(workload.AppWrapperFailed)), f.losesTo())
		return r
	}
	j.takeYourTime()
	again := j.await("runs again", time.Minute, found.at, running)
	j.balances(again, f.losesTo())
	r.Again.Duration = again.at.Sub(begin)
	if s := again.aw.Status; s.Migrations < f.migrations || s.Migrations > f.migrations && f.meet == nil || s.Retries != f.retries {
		j.Errorf("there were %d migrations and %d retries, want %d and %d", s.Migrations, s.Retries, f.migrations, f.retries)
	}
	if n := again.aw.Status.StartupRetries; n > 0 != f.late {
		j.Errorf("%d retries were because of late starts", n)
	}
	for _, node := range j.itsNodes() {
		if slices.Contains(left, node) && !f.returns {
			j.Errorf("it is on %s again", node)
		}
	}
	if l, gone := j.first(begin, func(aw *workload.AppWrapper) bool {
		return aw.Status.Phase != workload.AppWrapperSuspended && meta.IsStatusConditionFalse(aw.Status.Conditions, string(workload.QuotaReserved))
	}); gone {
		j.Errorf("it gave its quota back: %v", l.aw.Status.Conditions)
	}
	return r
}

// reserved are the GPUs that Kueue has given away.
func reserved(ctx context.Context) (int64, error) {
	queues := &kueue.ClusterQueueList{}
	if err := admin.List(ctx, queues); err != nil {
		return 0, err
	}
	total := int64(0)
	for _, q := range queues.Items {
		for _, flavor := range q.Status.FlavorsReservation {
			for _, r := range flavor.Resources {
				if r.Name == gpu {
					total += r.Total.Value()
				}
			}
		}
	}
	return total, nil
}
