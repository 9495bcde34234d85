// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/test/given"
)

const drains = "EvictionByEvictionAPI"

// evictBecause is what Kubernetes writes into a pod before it deletes it.
func evictBecause(reason string, at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Time{Time: at},
		})
	}
}

// going marks a pod as being deleted.
func going(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

// exited lets a pod fail by itself.
func exited(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		ended := &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Time{Time: at}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: ended}}}
	}
}

// A pod that Kubernetes evicts is gone when its Job fails. Its watch has told why.
func TestWhatAnEvictionBreaksCostsNoRetry(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC)
	onDelete := func(h toolscache.ResourceEventHandler, p *corev1.Pod) { h.OnDelete(p) }
	onUpdate := func(h toolscache.ResourceEventHandler, p *corev1.Pod) { h.OnUpdate(p, p) }
	for sentence, tc := range map[string]struct {
		becomes []func(*corev1.Pod)
		heard   func(toolscache.ResourceEventHandler, *corev1.Pod)
		want    string // no cause is a retry
	}{
		"a taint of which no rule says anything": {[]func(*corev1.Pod){evictBecause("DeletionByTaintManager", now)}, onDelete, "PodEvicted DeletionByTaintManager"},
		"a drain":                                {[]func(*corev1.Pod){evictBecause(drains, now)}, onDelete, "PodEvicted " + drains},
		"the end of its node":                    {[]func(*corev1.Pod){evictBecause("DeletionByPodGC", now), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }}, onDelete, "NodeGone deleted"},
		"a drain whose end nobody heard of":      {[]func(*corev1.Pod){evictBecause(drains, now), going}, onUpdate, "PodEvicted " + drains},
		"one that was there from the start": {[]func(*corev1.Pod){evictBecause(drains, now), going},
			func(h toolscache.ResourceEventHandler, p *corev1.Pod) { h.OnAdd(p, true) }, "PodEvicted " + drains},
		"one whose end the watch missed": {[]func(*corev1.Pod){evictBecause(drains, now)},
			func(h toolscache.ResourceEventHandler, p *corev1.Pod) {
				h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: p})
			}, "PodEvicted " + drains},
		"a pod that fails while it goes":   {[]func(*corev1.Pod){evictBecause(drains, now), going, exited(now.Add(time.Second))}, onUpdate, "PodEvicted " + drains},
		"a pod that had failed before":     {[]func(*corev1.Pod){exited(now.Add(-time.Second)), evictBecause(drains, now)}, onDelete, ""},
		"a pod that had succeeded before":  {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, evictBecause(drains, now)}, onDelete, ""},
		"an eviction that does not happen": {[]func(*corev1.Pod){evictBecause(drains, now)}, onUpdate, ""},
		"a pod without a node":             {[]func(*corev1.Pod){evictBecause(drains, now), func(p *corev1.Pod) { p.Spec.NodeName = "" }}, onDelete, ""},
		"a pod of an earlier attempt":      {[]func(*corev1.Pod){evictBecause(drains, now.Add(-time.Hour))}, onDelete, ""},
		"a pod of another AppWrapper":      {[]func(*corev1.Pod){evictBecause(drains, now), func(p *corev1.Pod) { p.Labels[v1beta2.AppWrapperLabel] = "b" }}, onDelete, ""},
		"a pod that somebody deletes":      {[]func(*corev1.Pod){going}, onDelete, ""},
		"a more important pod":             {[]func(*corev1.Pod){evictBecause(corev1.PodReasonPreemptionByScheduler, now)}, onDelete, ""},
		"a controller that was down": {[]func(*corev1.Pod){evictBecause(drains, now)},
			func(toolscache.ResourceEventHandler, *corev1.Pod) {}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, given.AppWrapper("a").Unsuspended().WithFinalizer().With(given.Job("train", 1)).Build(), gpuNode("n", "OK"))
			w.reconciler.rules = theRules
			w.settle()
			p := pod("train-0", corev1.PodRunning)
			p.Spec.NodeName = "n"
			for _, becomes := range tc.becomes {
				becomes(p)
			}
			tc.heard(w.reconciler.heard.handler(), slim(p).(*corev1.Pod))
			w.now = now.Add(time.Minute)
			w.setJobCondition("train", "Failed")
			w.settle()
			w.expectBlame("n", tc.want)
		})
	}
}

// expectBlame checks that the reset is a migration because of this, or a retry if that is empty.
func (w *world) expectBlame(node, cause string) {
	w.Helper()
	status := w.get().Status
	message := condition(status, v1beta2.Unhealthy).Message
	if cause == "" {
		if status.Migrations != 0 || status.Retries != 1 {
			w.Errorf("after %d migrations and %d retries it says %q, want a retry", status.Migrations, status.Retries, message)
		}
		return
	}
	if status.Migrations != 1 || status.Retries != 0 || !strings.Contains(message, ": "+node+" ("+cause+");") {
		w.Errorf("after %d migrations and %d retries it says %q, want a migration because of %s", status.Migrations, status.Retries, message, cause)
	}
	source, _, _ := strings.Cut(cause, " ")
	expectSample(w.T, w, `appwrapper_migrations_total{cause="`+source+`"} 1`)
}

// A pod that is still there tells itself, even if its watch has not been heard.
func TestAPodThatIsBeingEvictedCostsNoRetry(t *testing.T) {
	for _, monitored := range []bool{true, false} {
		t.Run(fmt.Sprint("monitored ", monitored), func(t *testing.T) {
			w := newWorld(t, given.AppWrapper("a").Unsuspended().WithFinalizer().With(given.Job("train", 1)).Build(), gpuNode("n", "OK"))
			w.reconciler.rules, w.reconciler.rules.Monitored = gpuRules, monitored
			w.settle()
			p := pod("train-0", corev1.PodFailed)
			p.Spec.NodeName = "n"
			evictBecause(drains, w.now.Add(time.Second))(p)
			w.add(slimBy(w.reconciler.rules, p))
			w.now = w.now.Add(time.Minute)
			w.setJobCondition("train", "Failed")
			w.settle()
			w.expectBlame("n", map[bool]string{true: "PodEvicted " + drains}[monitored])
		})
	}
}

// However many pods a drain evicts, a few are remembered.
func TestTheLatestEvictionsAreKept(t *testing.T) {
	e, begin := newEvictions(), time.Unix(1000, 0)
	evict := func(i int) {
		p := pod("p", corev1.PodRunning)
		p.UID, p.Spec.NodeName = types.UID(fmt.Sprint(i)), fmt.Sprint("n", i)
		evictBecause(drains, begin.Add(time.Duration(i)*time.Second))(p)
		e.note(p, true)
	}
	for i := range 20 {
		evict(19 - i)
	}
	for i := range 20 {
		evict(i)
	}
	var nodes []string
	for _, found := range e.of(client.ObjectKey{Namespace: given.Namespace, Name: "a"}) {
		nodes = append(nodes, found.Node)
	}
	if diff := cmp.Diff([]string{"n12", "n13", "n14", "n15", "n16", "n17", "n18", "n19"}, nodes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAnEvictedPodBelongsToAComponent(t *testing.T) {
	e, at := newEvictions(), time.Unix(1000, 0)
	for i, label := range []string{"3", ""} {
		p := pod("p", corev1.PodRunning)
		p.UID, p.Spec.NodeName, p.Labels[v1beta2.AppWrapperComponentLabel] = types.UID(fmt.Sprint(i)), "n", label
		evictBecause(drains, at)(p)
		e.note(p, true)
	}
	because := nodehealth.Cause{Source: nodehealth.PodEvicted, Sign: drains}
	want := []eviction{
		{"0", lifecycle.Eviction{Component: 3, Node: "n", Because: because, At: at}},
		{"1", lifecycle.Eviction{Component: lifecycle.UnknownComponent, Node: "n", Because: because, At: at}},
	}
	got := e.of(client.ObjectKey{Namespace: given.Namespace, Name: "a"})
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(eviction{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// unindexed takes any index.
type unindexed struct{}

func (unindexed) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

// A replica that waits to be the leader has a cache, and hears of evictions.
func TestEvictionsAreHeardFromTheCache(t *testing.T) {
	pods := informers{byKind: map[schema.GroupVersionKind]*controllertest.FakeInformer{}}
	heard, err := Hear(t.Context(), unindexed{}, pods)
	if err != nil {
		t.Fatal(err)
	}
	p := pod("p", corev1.PodRunning)
	p.Spec.NodeName = "n"
	evictBecause(drains, time.Unix(1000, 0))(p)
	pods.byKind[podKind].Delete(p)
	if got := heard.evictions.of(client.ObjectKey{Namespace: given.Namespace, Name: "a"}); len(got) != 1 {
		t.Errorf("heard of %v", got)
	}
}

// Who is woken because a pod is gone finds why.
func TestAnEvictionIsKnownBeforeItWakes(t *testing.T) {
	h, p := newHeard(time.Now), pod("p", corev1.PodRunning)
	p.Spec.NodeName = "n"
	evictBecause(drains, time.Unix(1000, 0))(p)
	if passes := h.beforeWaking().Delete(event.DeleteEvent{Object: p}); !passes || len(h.evictions.of(client.ObjectKey{Namespace: given.Namespace, Name: "a"})) != 1 {
		t.Errorf("it wakes (%t), and is not known", passes)
	}
}

// What says why a pod goes is kept of it, and where it was.
func TestASlimPodTellsOfItsEviction(t *testing.T) {
	whole := pod("p", corev1.PodRunning)
	whole.Spec.NodeName = "n"
	evictBecause(drains, time.Unix(1000, 0))(whole)
	monitored := gpuRules
	monitored.Monitored = true
	slim := slimBy(monitored, whole).(*corev1.Pod)
	if diff := cmp.Diff(whole.Status.Conditions, slim.Status.Conditions); diff != "" || slim.Spec.NodeName != "n" {
		t.Errorf("on node %q (-whole +slim)\n%s", slim.Spec.NodeName, diff)
	}
	if blind := slimBy(gpuRules, whole).(*corev1.Pod); blind.Spec.NodeName != "" {
		t.Error("the node is kept although nobody asks for it")
	}
}

// Why pods are gone the cache may hear later than that their Job has failed.
func TestNothingIsPaidWhileTheCacheLags(t *testing.T) {
	running, leaving, failed := pod("p", corev1.PodRunning), pod("p", corev1.PodRunning), pod("p", corev1.PodFailed)
	going(leaving)
	pays := func(d *lifecycle.Decision) { d.Status.Phase, d.Status.Retries = v1beta2.AppWrapperResetting, 1 }
	for sentence, tc := range map[string]struct {
		cached, live []corev1.Pod
		decides      func(*lifecycle.Decision)
		want         bool
	}{
		"a retry without a pod that ran":        {[]corev1.Pod{*running}, nil, pays, true},
		"a failure without a pod that ran":      {[]corev1.Pod{*running}, nil, func(d *lifecycle.Decision) { d.Status.Phase = v1beta2.AppWrapperFailed }, true},
		"a retry with all pods":                 {[]corev1.Pod{*running}, []corev1.Pod{*failed}, pays, false},
		"a retry without a pod that was to go":  {[]corev1.Pod{*leaving}, nil, pays, false},
		"a retry without a pod that had failed": {[]corev1.Pod{*failed}, nil, pays, false},
		"a migration without a pod that ran":    {[]corev1.Pod{*running}, nil, func(d *lifecycle.Decision) { d.Status.Phase = v1beta2.AppWrapperResetting }, false},
		"a suspension without a pod that ran":   {[]corev1.Pod{*running}, nil, func(d *lifecycle.Decision) { d.Status.Phase = v1beta2.AppWrapperSuspending }, false},
		"no decision, but there is one less":    {[]corev1.Pod{*running}, nil, func(*lifecycle.Decision) {}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := &observation{cachedPods: tc.cached, pods: tc.live}
			o.snapshot.Status.Phase = v1beta2.AppWrapperRunning
			d := lifecycle.Decision{Status: o.snapshot.Status}
			tc.decides(&d)
			if got := o.mayBeExcused(d); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// The whole controller hears why a pod is gone.
func TestAnEvictionIsHeardInTheWholeController(t *testing.T) {
	c := newCluster(t, 1)
	c.submit(0, 1)
	c.start()
	c.await("it runs", func() bool { return c.count(v1beta2.AppWrapperRunning) == 1 })
	began := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339)
	key, aw := keyOf(c.api.All("pods")[0].GetName()), c.api.All("appwrappers")[0].GetName()
	err := c.api.Patch("pods", key, `{"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"`+drains+`","lastTransitionTime":"`+began+`"}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	c.api.Delete("pods", key)
	if err := c.api.Patch("jobs", keyOf(aw), `{"status":{"conditions":[{"type":"Failed","status":"True"}]}}`); err != nil {
		t.Fatal(err)
	}
	c.await("it is reset", func() bool { return c.count(v1beta2.AppWrapperResetting) == 1 })
	if text := string(c.api.Get("appwrappers", keyOf(aw)).Fields["status"]); !strings.Contains(text, `"migrations":1`) || !strings.Contains(text, "gpu-17 (PodEvicted "+drains+")") {
		t.Errorf("its status is %s", text)
	}
}

// A replica that waits to be the leader hears why a pod is gone, and knows it when it takes over.
func TestAStandbyKnowsOfEvictionsWhenItTakesOver(t *testing.T) {
	c := newCluster(t, 1)
	c.submit(0, 1)
	c.start()
	c.await("it runs", func() bool { return c.count(v1beta2.AppWrapperRunning) == 1 })
	c.stop()
	leads := c.wait()
	listed := func() int {
		pods := &corev1.PodList{}
		if err := c.cached.List(t.Context(), pods, client.InNamespace(given.Namespace)); err != nil {
			return -1
		}
		return len(pods.Items)
	}
	c.await("its cache", func() bool { return listed() == 1 })
	began := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339)
	key, aw := keyOf(c.api.All("pods")[0].GetName()), c.api.All("appwrappers")[0].GetName()
	err := c.api.Patch("pods", key, `{"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"`+drains+`","lastTransitionTime":"`+began+`"}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	c.api.Delete("pods", key)
	c.await("the pod to go", func() bool { return listed() == 0 })
	if err := c.api.Patch("jobs", keyOf(aw), `{"status":{"conditions":[{"type":"Failed","status":"True"}]}}`); err != nil {
		t.Fatal(err)
	}
	leads()
	c.await("it is reset", func() bool { return c.count(v1beta2.AppWrapperResetting) == 1 })
	if text := string(c.api.Get("appwrappers", keyOf(aw)).Fields["status"]); !strings.Contains(text, `"migrations":1`) {
		t.Errorf("its status is %s", text)
	}
}
