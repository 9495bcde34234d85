// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// The story is that of AppWrapper 0.30, which releases since 1.1 do not know.
func TestTheLimitFollowsTheNodes(t *testing.T) {
	a, b := nodeOf("a", 4), nodeOf("b", 4)
	c := newCluster(t, "6", a, b, nodeOf("c", 0))
	for _, step := range []struct {
		what   string
		change func()
		lends  string
	}{
		{"all nodes are healthy", func() {}, ""},
		{"one is bad", func() { a.Labels[healthLabel] = "EVICT" }, "2"},
		{"both are bad", func() { b.Labels[healthLabel] = "EVICT" }, "0"},
		{"one is restored", func() { delete(a.Labels, healthLabel) }, "2"},
		{"all are restored", func() { delete(b.Labels, healthLabel) }, ""},
		{"one is cordoned", func() { a.Spec.Unschedulable = true }, "2"},
		{"there is more quota", func() { c.quota("all", gpu).NominalQuota = count(8) }, "4"},
		{"a healthy node is deleted", func() { delete(c.nodes, "c") }, "4"},
		{"the cordoned node is deleted", func() { delete(c.nodes, "a") }, ""},
	} {
		t.Log(step.what)
		step.change()
		c.settle()
		c.lends("all", gpu, step.lends)
	}
	c.mustHaveNoNote()
}

func TestAHealthyQueueIsNotWritten(t *testing.T) {
	c := newCluster(t, "6", nodeOf("a", 4), nodeOf("b", 4))
	c.limit("all", gpu, "3")
	if c.reconcile() {
		t.Error("it was written")
	}
}

func TestEveryFlavorAndResourceGroupHasItsLimits(t *testing.T) {
	a, b := nodeOf("a", 4), nodeOf("b", 8)
	a.Labels["model"], b.Labels["model"] = "a100", "h100"
	a.Spec.Unschedulable, b.Labels[healthLabel] = true, "ERR"
	c := newCluster(t, "6", a, b, nodeOf("c", 0))
	c.flavors = []kueue.ResourceFlavor{flavorOf("a100", map[string]string{"model": "a100"}), flavorOf("h100", map[string]string{"model": "h100"})}
	machine := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: count(500)}
	c.queue = slackQueue(group("a100", machine), group("h100", machine))
	for i, devices := range []int64{6, 20} {
		flavor := c.queue.Spec.ResourceGroups[i].Flavors[0].Name
		c.queue.Spec.ResourceGroups = append(c.queue.Spec.ResourceGroups, group(flavor, corev1.ResourceList{gpu: count(devices)}))
	}
	c.settle()
	c.lends("a100", corev1.ResourceCPU, "4")
	c.lends("a100", corev1.ResourceMemory, "64Gi")
	c.lends("a100", corev1.ResourcePods, "") // the pods of a node are not what a team shares
	c.lends("a100", gpu, "2")
	c.lends("h100", corev1.ResourceCPU, "") // only its GPUs are bad
	c.lends("h100", corev1.ResourceMemory, "")
	c.lends("h100", gpu, "12")
}

func TestAnAdministratorsOwnLimitIsKept(t *testing.T) {
	a := nodeOf("a", 4)
	c := newCluster(t, "8", a, nodeOf("b", 4))
	for _, step := range []struct {
		what   string
		change func()
		lends  string
	}{
		{"an own limit", func() { c.limit("all", gpu, "5") }, "5"},
		{"the nodes give less", func() { a.Spec.Unschedulable = true }, "4"},
		{"they are back", func() { a.Spec.Unschedulable = false }, "5"},
		{"the own limit is lower", func() { c.limit("all", gpu, "3") }, "3"},
		{"the nodes give more than that", func() { a.Spec.Unschedulable = true }, "3"},
		{"the own limit is removed", func() { c.limit("all", gpu, "") }, "4"},
		{"Helm applies the queue again, without a limit", func() { c.limit("all", gpu, "") }, "4"},
		{"Helm applies it with a limit", func() { c.limit("all", gpu, "7") }, "4"},
		{"the nodes are back", func() { a.Spec.Unschedulable = false }, "7"},
	} {
		t.Log(step.what)
		step.change()
		c.settle()
		c.lends("all", gpu, step.lends)
	}
	c.mustHaveNoNote()
}

// Kueue refuses a limit above the nominal quota.
func TestALimitIsNeverAboveTheNominalQuota(t *testing.T) {
	a := nodeOf("a", 4)
	a.Spec.Unschedulable = true
	c := newCluster(t, "8", a)
	c.limit("all", gpu, "7")
	c.settle()
	c.quota("all", gpu).NominalQuota = count(5)
	c.settle()
	c.lends("all", gpu, "1")
	a.Spec.Unschedulable = false
	c.settle()
	c.lends("all", gpu, "5")
}

// Kueue refuses limits without a cohort.
func TestAQueueWithoutACohortGetsNoLimits(t *testing.T) {
	a := nodeOf("a", 4)
	a.Spec.Unschedulable = true
	c := newCluster(t, "6", a)
	c.queue.Spec.CohortName = ""
	if c.settle(); c.reconcile() {
		t.Error("it was written")
	}
	c.lends("all", gpu, "")
}

func TestWhatUpstreamHasLoweredReturns(t *testing.T) {
	a := nodeOf("a", 4)
	for _, row := range []struct {
		what, manager string
		cordoned      bool
		now, later    string
	}{
		{"while the node is bad", "manager", true, "2", ""},
		{"after the node is back", "manager", false, "", ""},
		{"but an own limit stays", "helm", true, "2", "2"},
	} {
		t.Run(row.what, func(t *testing.T) {
			a.Spec.Unschedulable = row.cordoned
			c := newCluster(t, "6", a)
			c.limit("all", gpu, "2")
			c.touch(row.manager)
			c.settle()
			c.lends("all", gpu, row.now)
			a.Spec.Unschedulable = false
			c.settle()
			c.lends("all", gpu, row.later)
		})
	}
}

func TestANoteThatCannotBeReadIsReplaced(t *testing.T) {
	a := nodeOf("a", 4)
	a.Spec.Unschedulable = true
	c := newCluster(t, "6", a)
	c.queue.Annotations = map[string]string{v1beta2.LoweredLendingLimitsAnnotation: "{", "other": "stays"}
	c.settle()
	c.lends("all", gpu, "2")
	a.Spec.Unschedulable = false
	c.settle()
	c.lends("all", gpu, "")
	c.mustHaveNoNote()
	if c.queue.Annotations["other"] != "stays" {
		t.Errorf("annotations are %v", c.queue.Annotations)
	}
}

func TestAChangeIsLoggedWithBothLimits(t *testing.T) {
	two := count(2)
	change := Change{FlavorName: "h100", ResourceName: gpu, After: &two}
	if got, want := change.String(), "nvidia.com/gpu of h100: 2 instead of none"; got != want {
		t.Errorf("got %q", got)
	}
	change.Before, change.After = &two, nil
	if got, want := change.String(), "nvidia.com/gpu of h100: none instead of 2"; got != want {
		t.Errorf("got %q", got)
	}
}
