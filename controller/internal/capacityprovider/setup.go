// SPDX-License-Identifier: Apache-2.0

package capacityprovider

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodewatch"
	"github.com/mlbatch/mlbatch/controller/internal/watchable"
)

// Setup adds the controller to mgr as soon as Kueue has CapacityProviders. Without names it does nothing.
func Setup(mgr ctrl.Manager, s Settings) error {
	if len(s.Providers) == 0 {
		return nil
	}
	return setup(mgr, s, nodewatch.Settle)
}

func setup(mgr ctrl.Manager, s Settings, settle time.Duration) error {
	needs := func(resource schema.GroupVersionResource) watchable.Needed {
		return watchable.Needed{GroupVersionResource: resource, Verbs: []string{"list", "watch"}}
	}
	return watchable.Then(mgr, "capacityprovider", func() error { return begin(mgr, s, settle) },
		needs(version.WithResource("capacityproviders")), needs(kueue.SchemeGroupVersion.WithResource("resourceflavors")),
		needs(corev1.SchemeGroupVersion.WithResource("nodes")))
}

func begin(mgr ctrl.Manager, s Settings, settle time.Duration) error {
	seen, err := nodewatch.NewCache(mgr, s.Rules, map[client.Object]cache.ByObject{})
	if err != nil {
		return fmt.Errorf("cannot make the cache of capacity providers: %w", err)
	}
	r := &reconciler{Settings: s, cached: seen, client: mgr.GetClient(), settle: settle}
	return nodewatch.Start(mgr, "capacityprovider", seen, settle, r, newProvider(), &kueue.ResourceFlavor{}, &corev1.Node{})
}
