// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// longestNote is the most that events.k8s.io takes.
const longestNote = 1024

// announce tells users, dashboards and the log what a saved decision means. The
// wording of events is lifecycle's.
func (r *Reconciler) announce(ctx context.Context, o *observation, d lifecycle.Decision) {
	r.metrics.changed(o.aw, o.snapshot.Status, d)
	r.metrics.used(o, o.snapshot.Status.Usage, d.Status.Usage, r.devices)
	logDecision(ctx, o, d)
	if d.Event != nil {
		r.tell(o, d.Event)
	}
	if err := r.reportSuspects(ctx, o, d); err != nil {
		log.FromContext(ctx).Error(err, "cannot tell which nodes fail unrelated work")
	}
	if err := r.reportFailures(ctx, o, d); err != nil {
		log.FromContext(ctx).Error(err, "cannot tell on which nodes unrelated programs fail")
	}
}

func (r *Reconciler) tell(o *observation, e *lifecycle.Event) {
	r.recorder.Eventf(o.aw, nil, e.Type, e.Reason, e.Action, "%s", cut(e.Message, longestNote))
}

// The verbosity from which the log has a decision.
const (
	verbosityOfMoves   = 0 // another phase
	verbosityOfChanges = 1 // an effect, or another status
	verbosityOfLooks   = 4 // neither: all is as it was
)

func verbosity(o *observation, d lifecycle.Decision) int {
	switch {
	case d.Moved(o.snapshot):
		return verbosityOfMoves
	case d.Effect != lifecycle.Nothing || !equality.Semantic.DeepEqual(o.snapshot.Status, d.Status):
		return verbosityOfChanges
	}
	return verbosityOfLooks
}

// logDecision gives each decision one line.
func logDecision(ctx context.Context, o *observation, d lifecycle.Decision) {
	line := log.FromContext(ctx).V(verbosity(o, d))
	if !line.Enabled() {
		return
	}
	fields := []any{"phase", phaseName(d.Status.Phase)}
	if d.Moved(o.snapshot) {
		fields = append(fields, "from", phaseName(o.snapshot.Status.Phase), "retries", d.Status.Retries)
	}
	if d.Because != "" {
		fields = append(fields, "because", d.Because)
	}
	if d.Effect != lifecycle.Nothing {
		fields = append(fields, "effect", d.Effect, "targets", names(o, d))
	}
	if d.Requeue > 0 {
		fields = append(fields, "requeue", d.Requeue.String())
	}
	line.Info("decided", fields...)
}

// names are what a decision's targets are called, whatever the status says of them.
func names(o *observation, d lifecycle.Decision) []string {
	all := make([]string, len(d.Targets))
	for n, i := range d.Targets {
		c := o.snapshot.Components[i]
		all[n] = c.Kind + "/" + c.Name
	}
	return all
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
