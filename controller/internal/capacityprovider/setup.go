// SPDX-License-Identifier: Apache-2.0

package capacityprovider

import (
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/internal/nodewatch"
)

// Setup adds the controller to mgr as soon as Kueue has CapacityProviders. Without names it does nothing.
func Setup(mgr ctrl.Manager, s Settings) error {
	if len(s.Providers) == 0 {
		return nil
	}
	return setup(mgr, s, nodewatch.Settle)
}

func setup(mgr ctrl.Manager, s Settings, settle time.Duration) error {
	return nodewatch.Then(mgr, "capacityprovider", func() error { return begin(mgr, s, settle) }, version.WithResource("capacityproviders"))
}

func begin(mgr ctrl.Manager, s Settings, settle time.Duration) error {
	seen, err := nodewatch.NewCache(mgr, s.Rules, map[client.Object]cache.ByObject{})
	if err != nil {
		return fmt.Errorf("cannot make the cache of capacity providers: %w", err)
	}
	r := &reconciler{Settings: s, cached: seen, client: mgr.GetClient(), settle: settle}
	return nodewatch.Start(mgr, "capacityprovider", seen, settle, r, newProvider())
}
