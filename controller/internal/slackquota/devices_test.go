// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A GPU that falls off the bus is in the capacity of its node until the plugin or the node starts
// anew. It is deducted once all that time, and as long as the node exists.
func TestAMissingDeviceIsDeductedOnce(t *testing.T) {
	a := nodeOf("a", 4)
	c := newCluster(t, "8", a, nodeOf("b", 4))
	shows := func(capacity, allocatable int64) func() {
		return func() { a.Status.Capacity[gpu], a.Status.Allocatable[gpu] = count(capacity), count(allocatable) }
	}
	for _, step := range []struct {
		what   string
		change func()
		lends  string
	}{
		{"all devices are healthy", func() {}, ""},
		{"one is not", shows(4, 3), "7"},
		{"the plugin starts anew without it", shows(3, 3), "7"},
		{"the node boots", shows(0, 0), "4"},
		{"and has three", shows(3, 3), "7"},
		{"then Autopilot finds it", func() { a.Labels[healthLabel] = "EVICT" }, "4"},
		{"and the node is cordoned", func() { a.Spec.Unschedulable = true }, "4"},
		{"the device is replaced", func() { shows(4, 4)(); delete(a.Labels, healthLabel); a.Spec.Unschedulable = false }, ""},
		{"the node gets one more", shows(5, 5), ""},
		{"which breaks", shows(4, 4), "7"},
		{"the node is replaced", func() { a.UID = "another" }, ""},
		{"the new one boots", shows(0, 0), "4"},
		{"the node is removed", func() { delete(c.nodes, "a") }, ""},
		{"and is back, smaller", func() { c.nodes["a"] = a; shows(2, 2)() }, ""},
	} {
		t.Log(step.what)
		step.change()
		c.settle()
		c.lends("all", gpu, step.lends)
	}
}

func TestAnAdministratorMakesANodeForgotten(t *testing.T) {
	a := nodeOf("a", 4)
	c := newCluster(t, "8", a)
	c.settle()
	a.Status.Capacity[gpu], a.Status.Allocatable[gpu] = count(2), count(2)
	c.settle()
	c.lends("all", gpu, "6")
	delete(c.stored, "a")
	c.settle()
	c.lends("all", gpu, "")
}

func TestOnlyDevicesAreStored(t *testing.T) {
	a, b := nodeOf("a", 4), nodeOf("b", 0)
	a.Status.Capacity["vpc.amazonaws.com/efa"] = count(0)
	c := newCluster(t, "8", a, b)
	c.stored = map[string]string{"a": "{", "gone": "{}"}
	c.settle()
	if got, want := c.stored["a"], `{"node":"of-a","devices":{"nvidia.com/gpu":"4"}}`; got != want || len(c.stored) != 1 {
		t.Errorf("stored is %v, want only %s", c.stored, want)
	}
}

// A ConfigMap holds 1 MiB.
func TestFourThousandNodesFitIntoAConfigMap(t *testing.T) {
	a := nodeOf(strings.Repeat("a", 63), 8)
	a.UID = "00000000-0000-4000-8000-000000000000"
	a.Status.Capacity["rdma/roce_gdr"] = count(8)
	for name, text := range (Devices{}).Learn([]corev1.Node{*a}).Changes(nil) {
		if size := len(name) + len(text.(string)); size*4000 > 1<<20 {
			t.Errorf("a node takes %d bytes", size)
		}
	}
}
