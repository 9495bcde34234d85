// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// preparedBy is until when the init containers of pods may run, which is progress: often they copy data. Each has the
// init grace from its own start, and what follows it has the warmup grace. It is zero if something else is waited for,
// too: then they may wait for that themselves, as KubeRay's and the training operator's do.
func (v *view) preparedBy(s podSets) time.Time {
	if _, c := s.total(); c.crashing > 0 || !s.complete() && !s.oneByOneOnly() {
		return time.Time{}
	}
	var until []time.Time
	for _, p := range v.Pods {
		if p.Phase == corev1.PodPending && !p.Foreign && !v.belongsToFinished(p) {
			until = append(until, v.prepares(p))
		}
	}
	if len(until) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(until, time.Time.Compare)
}

// prepares is until when a pod may prepare; zero if it does not.
func (v *view) prepares(p Pod) time.Time {
	switch {
	case p.Terminating:
		return time.Time{}
	case !p.InitSince.IsZero():
		return earlier(p.InitSince, v.now).Add(v.Policy.InitGrace)
	case !p.InitEnded.IsZero():
		return earlier(p.InitEnded, v.now).Add(v.Policy.WarmupGrace)
	}
	return time.Time{}
}

// hasPrepared: the pod is still pending after its time to prepare.
func (p Pod) hasPrepared(now time.Time, grace time.Duration) bool {
	return p.Phase == corev1.PodPending && !p.InitSince.IsZero() && !now.Before(p.InitSince.Add(grace))
}
