// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mlbatch/mlbatch/controller/internal/runlife"
)

// announce tells users, dashboards and the log what a saved decision means. The wording of events
// is runlife's. The snapshot has the status from before.
func (r *Reconciler) announce(ctx context.Context, before runlife.Snapshot, d runlife.Decision) {
	r.metrics.changed(before.Run, d.Status)
	logDecision(ctx, before, d)
	for _, e := range d.Events {
		r.recorder.Eventf(before.Run, nil, e.Type, e.Reason, e.Action, "%s", e.Message)
	}
}

// The verbosity from which the log has a decision.
const (
	verbosityOfMoves   = 0 // another phase
	verbosityOfChanges = 1 // an effect, or another status
	verbosityOfLooks   = 4 // neither
)

func logDecision(ctx context.Context, before runlife.Snapshot, d runlife.Decision) {
	verbosity := verbosityOfLooks
	switch {
	case d.Status.Phase != before.Run.Status.Phase:
		verbosity = verbosityOfMoves
	case d.Effect != runlife.Nothing || !equality.Semantic.DeepEqual(before.Run.Status, d.Status):
		verbosity = verbosityOfChanges
	}
	log.FromContext(ctx).V(verbosity).Info("decided", "from", before.Run.Status.Phase, "phase", d.Status.Phase, "because", d.Status.Message,
		"effect", d.Effect, "requeue", d.Requeue.String())
}
