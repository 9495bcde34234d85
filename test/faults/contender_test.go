// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/bench"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

// startLimit is for all of them at once.
const startLimit = 5 * time.Minute

// contender is a job of a rival, on nodes of its own, and what is seen of it.
type contender struct {
	*testing.T
	fault
	by   rival
	name string
	size int
	// lifeless is the node on which nothing starts, if the fault begins with one.
	lifeless string
	nodes    []string

	mu   sync.Mutex
	seen map[types.UID]*corev1.Pod
	old  map[types.UID]bool // those of the fault
	fall *bench.Fall        // nil before the fault
}

func newContender(t *testing.T, f fault, by rival) *contender {
	t.Helper()
	c := &contender{T: t, fault: f, by: by, name: newName(), size: int(max(f.pods, 1)), seen: map[types.UID]*corev1.Pod{}}
	t.Cleanup(func() {
		for _, name := range c.nodes {
			node, err := getNode(context.Background(), name)
			if err == nil {
				err = admin.Delete(context.Background(), node)
			}
			if client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})
	return c
}

// addNodes adds nodes that only this job may use. They are a zone, for which Kubernetes evicts pods of lost nodes
// without regard to other zones.
func (c *contender) addNodes(n int) {
	c.Helper()
	for range n {
		like, err := getNode(c.Context(), "gpu-0")
		name := fmt.Sprintf("%s-%d", c.name, len(c.nodes))
		if err == nil {
			c.owns(like)
			c.nodes = append(c.nodes, name)
			err = makeNode(c.Context(), like, name, map[string]string{simulation: "fake"})
		}
		if err != nil {
			c.Fatal(err)
		}
	}
	if err := sandbox.Within(c.Context(), startLimit, c.mayStart); err != nil {
		c.Fatalf("pods may not come to the nodes of %s: %v", c.name, err)
	}
}

func (c *contender) mayStart() error {
	nodes := &corev1.NodeList{}
	if err := admin.List(c.Context(), nodes, client.MatchingLabels{corev1.LabelTopologyZone: c.name}); err != nil {
		return err
	}
	for _, n := range nodes.Items {
		if len(n.Spec.Taints) > 0 {
			return fmt.Errorf("the taints of %s are %v", n.Name, n.Spec.Taints)
		}
	}
	return nil
}

func (c *contender) owns(n *corev1.Node) {
	n.Labels[corev1.LabelTopologyZone], n.Labels[ofRival] = c.name, c.by.namespace
}

// start creates the job, and waits until it runs, or until a pod is where it cannot start. There are just enough nodes
// for it. Then there are twice as many.
func (c *contender) start() {
	c.Helper()
	if c.before != nil {
		c.lifeless = c.before(c.T)
		if err := update(c.Context(), c.lifeless, c.owns); err != nil {
			c.Fatal(err)
		}
		c.addNodes(c.size - 1)
	} else {
		c.addNodes(c.size)
	}
	c.Cleanup(c.end)
	sandbox.Follow(c.T, admin, &corev1.PodList{}, c.hear, client.InNamespace(c.by.namespace), client.MatchingLabels{ofContender: c.name})
	o := c.by.run(c.spec(c.name, c.by.namespace))
	o.SetNamespace(c.by.namespace)
	o.SetName(c.name)
	sandbox.Create(c.T, admin, o)
	until(c.T, startLimit, c.name+" runs", func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		n := 0
		for _, p := range c.seen {
			if ready(p) || c.before != nil && p.Spec.NodeName != "" {
				n++
			}
		}
		if n != c.size {
			return fmt.Errorf("%d of %d pods do", n, c.size)
		}
		return nil
	})
	c.addNodes(c.size)
}

// ready: the pod runs as it should.
func ready(p *corev1.Pod) bool {
	return alive(p) && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// alive: the pod is on a node, and is to stay there.
func alive(p *corev1.Pod) bool {
	return p.Spec.NodeName != "" && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded
}

// hear hears of a pod. One that was there at the fault, and hangs, is still there. One that came later has to run.
func (c *contender) hear(pod *corev1.Pod, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[pod.UID] = pod; gone {
		delete(c.seen, pod.UID)
	}
	if c.fall != nil {
		c.fall.Hear(c.pod(pod, ready(pod) || c.old[pod.UID] && alive(pod)), gone, time.Now())
	}
}

func (c *contender) pod(p *corev1.Pod, runs bool) bench.Pod {
	return bench.Pod{Job: c.name, UID: string(p.UID), Node: p.Spec.NodeName, Runs: runs}
}

// hit injects the fault.
func (c *contender) hit() {
	c.Helper()
	c.by.follow(c.T, c.name, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fall != nil {
			c.fall.Detect(c.name, time.Now())
		}
	})
	pods := c.begin()
	c.inject(c.T, pods)
}

// begin begins the time, and returns the pods.
func (c *contender) begin() (pods []corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []bench.Pod
	var left []string
	c.old = map[types.UID]bool{}
	for uid, p := range c.seen {
		c.old[uid] = true
		all, pods, left = append(all, c.pod(p, true)), append(pods, *p.DeepCopy()), append(left, p.Spec.NodeName)
	}
	if c.before != nil {
		left = []string{c.lifeless}
	}
	c.fall = bench.NewFall(c.size, left, c.returns, all)
	c.fall.Hit(c.name, time.Now())
	return pods
}

// wait waits until all pods run again, or until the limit.
func (c *contender) wait(limit time.Duration) error {
	return sandbox.Within(c.Context(), limit, func() error {
		if c.fall.Late() > 0 {
			return errors.New("it does not run again")
		}
		return nil
	})
}

// end deletes the job. Pods on dead nodes would stay.
func (c *contender) end() {
	ctx := context.Background()
	o := c.by.run(c.spec(c.name, c.by.namespace))
	o.SetNamespace(c.by.namespace)
	o.SetName(c.name)
	mine := []client.DeleteAllOfOption{client.InNamespace(o.GetNamespace()), client.MatchingLabels{ofContender: c.name}, client.GracePeriodSeconds(0)}
	var left error
	err := patience.Poll(ctx, time.Second/2, func(ctx context.Context) (bool, error) {
		left = client.IgnoreNotFound(admin.Delete(ctx, o, client.PropagationPolicy("Background")))
		pods := &corev1.PodList{}
		if left == nil {
			left = admin.DeleteAllOf(ctx, &corev1.Pod{}, mine...)
		}
		if left == nil {
			left = admin.List(ctx, pods, client.InNamespace(o.GetNamespace()), client.MatchingLabels{ofContender: c.name})
		}
		if n := len(pods.Items); left == nil && n > 0 {
			left = fmt.Errorf("%d pods are left", n)
		}
		return left == nil, nil
	})
	if err != nil {
		c.Errorf("%s is not gone: %v", c.name, left)
	}
}
