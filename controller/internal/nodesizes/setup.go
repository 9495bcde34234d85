// SPDX-License-Identifier: Apache-2.0

package nodesizes

import (
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/internal/nodewatch"
)

// settle is how long changes are collected. A device plugin that restarts takes all devices of its node away for some
// seconds, which is no news.
const settle = 5 * time.Second

// Setup adds the controller to mgr as soon as Kueue is installed. If nodes may not be read, it does nothing.
func Setup(mgr ctrl.Manager, monitorNodes bool) error {
	if !monitorNodes {
		return nil
	}
	return setup(mgr, settle)
}

func setup(mgr ctrl.Manager, settle time.Duration) error {
	return nodewatch.Then(mgr, "nodesizes", func() error { return begin(mgr, settle) })
}

func begin(mgr ctrl.Manager, settle time.Duration) error {
	seen, err := nodewatch.NewCache(mgr, nodehealth.Rules{}, map[client.Object]cache.ByObject{})
	if err != nil {
		return fmt.Errorf("cannot make the cache of node sizes: %w", err)
	}
	return nodewatch.Start(mgr, "nodesizes", seen, settle, &reconciler{cached: seen, client: mgr.GetClient(), settle: settle})
}
