// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// told is a supply in words.
func (s Supply) told() string {
	words := []string{s.Usable.String() + " of " + s.Total.String()}
	for _, cause := range Causes() {
		if lost, known := s.Unusable[cause]; known {
			words = append(words, lost.String()+" "+string(cause))
		}
	}
	return strings.Join(words, ", ")
}

// What is wrong with a GPU is wrong with its parts.
func TestPartsOfBadDevicesAreUnusable(t *testing.T) {
	n := nodeOf("n", 4)
	n.Labels[healthLabel] = "EVICT"
	for _, name := range []corev1.ResourceName{"nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared"} {
		n.Status.Capacity[name], n.Status.Allocatable[name] = count(7), count(7)
		if got := Stocks(rules, n, nil)[name]; got.Cause != nodehealth.NodeLabel || !got.Usable.IsZero() {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// A node has 4 GPUs, and another one, which is healthy, 8.
func TestWhatIsUsableAndWhyNotMore(t *testing.T) {
	evict := func(n *corev1.Node) { n.Labels[healthLabel] = "EVICT" }
	cordon := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	for what, row := range map[string]struct {
		change []func(*corev1.Node)
		want   string
	}{
		"a healthy node":               {nil, "12 of 12"},
		"others are preferred":         {[]func(*corev1.Node){func(n *corev1.Node) { n.Labels[healthLabel] = "WARN" }}, "12 of 12"},
		"pods have to leave":           {[]func(*corev1.Node){evict}, "8 of 12, 4 NodeLabel"},
		"a condition":                  {[]func(*corev1.Node){func(n *corev1.Node) { n.Status.Conditions = conditions("GpuUnhealthy", "True") }}, "8 of 12, 4 NodeCondition"},
		"cordoned":                     {[]func(*corev1.Node){cordon}, "8 of 12, 4 NodeCordoned"},
		"cordoned to be repaired":      {[]func(*corev1.Node){evict, cordon}, "8 of 12, 4 NodeLabel"},
		"not ready, and cordoned":      {[]func(*corev1.Node){cordon, taint(corev1.TaintNodeNotReady, "NoSchedule")}, "8 of 12, 4 NodeNotReady"},
		"the disk is full":             {[]func(*corev1.Node){taint(corev1.TaintNodeDiskPressure, "NoSchedule")}, "8 of 12, 4 NodeTaint"},
		"a GPU is broken":              {[]func(*corev1.Node){allocatable(3)}, "11 of 12, 1 DevicesMissing"},
		"broken, and pods leave":       {[]func(*corev1.Node){allocatable(3), evict}, "8 of 12, 4 NodeLabel"},
		"dedicated to work":            {[]func(*corev1.Node){taint("nvidia.com/gpu", "NoSchedule"), evict}, "8 of 12, 4 NodeLabel"},
		"a node of the control plane":  {[]func(*corev1.Node){taint("node-role.kubernetes.io/control-plane", "NoSchedule"), evict}, "8 of 8"},
		"it is being removed":          {[]func(*corev1.Node){func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }}, "8 of 8"},
		"a node of another flavor":     {[]func(*corev1.Node){func(n *corev1.Node) { n.Labels["model"] = "other" }}, "8 of 8"},
		"CPU is less than the machine": {[]func(*corev1.Node){func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = count(1) }}, "12 of 12"},
	} {
		t.Run(what, func(t *testing.T) {
			n := nodeOf("n", 4)
			n.Labels["model"] = "a"
			other := nodeOf("other", 8)
			other.Labels["model"] = "a"
			for _, change := range row.change {
				change(n)
			}
			r := rules
			r.Conditions = []nodehealth.ConditionRule{{Type: "GpuUnhealthy", Status: "True", Reaction: leave(gpu)}}
			all := Count(r, []kueue.ResourceFlavor{flavorOf("a", map[string]string{"model": "a"})}, []corev1.Node{*n, *other}, nil)
			if got := all["a"][gpu].told(); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

// The parts are the whole, and what is missing of a loan is what is not usable.
func TestWhatIsUsableAndWhatIsNotIsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := randomCluster(t)
		for _, s := range rapid.SliceOf(states).Draw(t, "states") {
			s.apply(c)
			c.settle()
		}
		nodes, devices := c.all(), Parse(c.stored)
		missing := Find(c.rules, c.flavors, nodes, devices)
		for flavor, byResource := range Count(c.rules, c.flavors, nodes, devices) {
			for name, s := range byResource {
				var lost, lacks resource.Quantity
				for cause, q := range s.Unusable {
					if lost.Add(q); q.Sign() <= 0 || !slices.Contains(Causes(), cause) {
						t.Errorf("%s of %s are lost to %q", &q, name, cause)
					}
				}
				if name != corev1.ResourcePods {
					lacks = missing[flavor][name]
				}
				rest := s.Total.DeepCopy()
				rest.Sub(s.Usable)
				if rest.Cmp(lost) != 0 || name != corev1.ResourcePods && lost.Cmp(lacks) != 0 {
					t.Error(fmt.Sprintf("%s of %s in %s: %s, and %s are missing", name, flavor, s.told(), &lost, &lacks))
				}
			}
		}
	})
}
