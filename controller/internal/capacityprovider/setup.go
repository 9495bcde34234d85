// SPDX-License-Identifier: Apache-2.0

package capacityprovider

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/internal/nodewatch"
)

// Setup adds the controller to mgr as soon as Kueue has CapacityProviders. Without names it does nothing.
func Setup(mgr ctrl.Manager, nodes *nodewatch.Watch, s Settings) error {
	if len(s.Providers) == 0 {
		return nil
	}
	return setup(mgr, nodes, s, nodewatch.Settle)
}

func setup(mgr ctrl.Manager, nodes *nodewatch.Watch, s Settings, settle time.Duration) error {
	return nodes.Add(nodewatch.Controller{
		Name: "capacityprovider", Watched: []client.Object{newProvider()}, Needed: []schema.GroupVersionResource{version.WithResource("capacityproviders")}, Settle: settle,
		Reads: func(cached client.Reader) reconcile.Reconciler {
			return &reconciler{Settings: s, cached: cached, client: mgr.GetClient(), settle: settle}
		},
	})
}
