// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// podCounts counts the pods of unfinished components. Those of a finished component no
// longer matter, whether they run, have failed or are gone.
type podCounts struct {
	expected, pending, running, succeeded, failed int
	accepted                                      int // all but those that their nodes rejected
	unplaced                                      int // those of the pending ones that have no node
}

func (v *view) countPods() podCounts {
	var c podCounts
	for i, s := range v.status.ComponentStatus {
		if v.finished(i) {
			continue
		}
		kind := kinds.For(schema.FromAPIVersionAndKind(s.APIVersion, s.Kind))
		for _, p := range s.PodSets {
			if kind.Awaits(p) {
				c.expected += int(p.Count())
			}
		}
	}
	for _, p := range v.Pods {
		if p.Component == UnknownComponent || !v.finished(p.Component) {
			c.count(p)
		}
	}
	return c
}

// count adds a pod. A running pod that is being deleted counts as lost. Phase Unknown
// counts neither way.
func (c *podCounts) count(p Pod) {
	if !p.wasRejected() {
		c.accepted++
	}
	switch p.Phase {
	case corev1.PodPending:
		c.pending++
		if p.Node == "" && p.Started.IsZero() {
			c.unplaced++
		}
	case corev1.PodRunning:
		if !p.Terminating {
			c.running++
		}
	case corev1.PodSucceeded:
		c.succeeded++
	case corev1.PodFailed:
		c.failed++
	}
}

func (c podCounts) ready() bool {
	return c.running+c.succeeded >= c.expected
}

// complete: as many pods as expected exist and have not failed. So each failed pod was
// replaced, though its replacement may not run yet.
func (c podCounts) complete() bool {
	return c.pending+c.running+c.succeeded >= c.expected
}

func (c podCounts) String() string {
	return fmt.Sprintf("%d pods expected; %d pods pending; %d pods running; %d pods succeeded; %d pods failed",
		c.expected, c.pending, c.running, c.succeeded, c.failed)
}

// finished tells whether component i has reported success in this attempt, even if it
// was removed since. An index out of range is not finished.
func (v *view) finished(i int) bool {
	return 0 <= i && i < len(v.Components) && v.componentIs(i, v1beta2.ComponentSucceeded, metav1.ConditionTrue)
}

// alive tells whether any pod may still be using quota.
func (v *view) alive() bool {
	for _, p := range v.Pods {
		if p.alive() {
			return true
		}
	}
	return false
}

func (p Pod) alive() bool {
	return p.Phase != corev1.PodSucceeded && p.Phase != corev1.PodFailed
}

// endedTerminally tells whether a failed pod has an exit code that forbids a retry.
func (v *view) endedTerminally() bool {
	for _, p := range v.Pods {
		if p.Phase == corev1.PodFailed && v.Policy.terminal(p.ExitCodes) {
			return true
		}
	}
	return false
}
