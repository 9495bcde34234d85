// SPDX-License-Identifier: Apache-2.0

package nodesizes

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/internal/nodewatch"
)

// settle is how long changes are collected. A device plugin that restarts takes all devices of its node away for some
// seconds, which is no news.
const settle = 5 * time.Second

// Setup adds the controller to mgr as soon as Kueue is installed. If nodes may not be read, it does nothing.
func Setup(mgr ctrl.Manager, nodes *nodewatch.Watch, monitorNodes bool) error {
	if !monitorNodes {
		return nil
	}
	return setup(mgr, nodes, settle)
}

func setup(mgr ctrl.Manager, nodes *nodewatch.Watch, settle time.Duration) error {
	return nodes.Add(nodewatch.Controller{Name: "nodesizes", Settle: settle, Reads: func(cached client.Reader) reconcile.Reconciler {
		return &reconciler{cached: cached, client: mgr.GetClient(), settle: settle}
	}})
}
