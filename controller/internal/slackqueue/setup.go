// SPDX-License-Identifier: Apache-2.0

package slackqueue

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodewatch"
	"github.com/mlbatch/mlbatch/controller/internal/slackquota"
)

// Setup adds the controller to mgr as soon as Kueue is installed. Without slack queues it does nothing.
func Setup(mgr ctrl.Manager, s Settings) error {
	if len(s.Queues) == 0 {
		return nil
	}
	return setup(mgr, s, nodewatch.Settle)
}

func setup(mgr ctrl.Manager, s Settings, settle time.Duration) error {
	return nodewatch.Then(mgr, "slackqueue", func() error { return begin(mgr, s, settle) }, kueue.SchemeGroupVersion.WithResource("clusterqueues"))
}

func begin(mgr ctrl.Manager, s Settings, settle time.Duration) error {
	seen, err := nodewatch.NewCache(mgr, s.Rules, map[client.Object]cache.ByObject{
		&kueue.ClusterQueue{}: {Transform: slimQueue},
		&corev1.ConfigMap{}:   {Namespaces: map[string]cache.Config{s.Namespace: {}}, Transform: slimConfigMap},
	})
	if err != nil {
		return fmt.Errorf("cannot make the cache of slack queues: %w", err)
	}
	r := &reconciler{Settings: s, cached: seen, client: mgr.GetClient(), settle: settle, report: &report{}, now: time.Now}
	if err := r.report.register(ctrlmetrics.Registry); err != nil {
		return fmt.Errorf("cannot register the metrics of flavors: %w", err)
	}
	return nodewatch.Start(mgr, "slackqueue", seen, settle, r, &kueue.ClusterQueue{}, &corev1.ConfigMap{})
}

func slimQueue(object any) (any, error) {
	if q, ok := object.(*kueue.ClusterQueue); ok {
		return slackquota.SlimQueue(q), nil
	}
	return object, nil
}

// slimConfigMap forgets what others store in the namespace.
func slimConfigMap(object any) (any, error) {
	if c, ok := object.(*corev1.ConfigMap); ok && c.Name != slackquota.DevicesName && c.Name != slackquota.DeclaredName {
		slim := &corev1.ConfigMap{}
		slim.Namespace, slim.Name, slim.ResourceVersion = c.Namespace, c.Name, c.ResourceVersion
		return slim, nil
	}
	return object, nil
}
