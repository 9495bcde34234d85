// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// Eviction is a pod that had to leave its node, and not by a decision of ours.
type Eviction struct {
	// Component is that of the pod.
	Component int
	// Node of the pod.
	Node string
	// Because is why Kubernetes evicts it.
	Because nodehealth.Cause
	// At is since when, by the clock of Kubernetes.
	At time.Time
}

// evictedFrom are the nodes from which pods of unfinished components were evicted in this attempt, so
// lately that it may have made the attempt fail. Whoever may write the status of pods can forge that,
// for as many resets as the limit of migrations allows.
func (v *view) evictedFrom() map[string][]nodehealth.Cause {
	began, failed := v.transitionTime(v1beta2.ResourcesDeployed), v.now
	if v.hasReason(v1beta2.PodsReady, v1beta2.ReasonInsufficientPodsReady) {
		failed = v.transitionTime(v1beta2.PodsReady)
	}
	nodes := map[string][]nodehealth.Cause{}
	for _, e := range v.Evictions {
		thisAttempt := e.At.After(began) && !e.At.After(v.now.Add(maxSkew))
		if thisAttempt && nodehealth.Attributes(e.At, failed) && !v.finished(e.Component) {
			nodes[e.Node] = append(nodes[e.Node], e.Because)
		}
	}
	return nodes
}
