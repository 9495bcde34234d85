// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// longestNote is the most that events.k8s.io takes.
const longestNote = 1024

// announce tells users, dashboards and the log what a saved decision means. The
// wording of events is lifecycle's.
func (r *Reconciler) announce(ctx context.Context, o *observation, d lifecycle.Decision) {
	if d.Moved(o.snapshot) {
		r.metrics.entered(o.aw.Namespace, d.Status.Phase)
		log.FromContext(ctx).Info("moved", "from", o.snapshot.Status.Phase, "to", d.Status.Phase, "because", d.Because, "retries", d.Status.Retries)
	}
	if d.Event == nil {
		return
	}
	if d.Event.Type == corev1.EventTypeWarning {
		r.metrics.failed(d.Event.Reason, d.Status.Phase)
	}
	r.recorder.Eventf(o.aw, nil, d.Event.Type, d.Event.Reason, d.Event.Action, "%s", cut(d.Event.Message, longestNote))
}

// cut shortens text to at most n bytes, between two characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	const ellipsis = "…"
	end := 0
	for at := range text {
		if at > n-len(ellipsis) {
			break
		}
		end = at
	}
	return text[:end] + ellipsis
}
