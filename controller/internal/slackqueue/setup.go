// SPDX-License-Identifier: Apache-2.0

package slackqueue

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodewatch"
)

// Setup adds the controller to mgr as soon as Kueue is installed. Without slack queues it does nothing.
func Setup(mgr ctrl.Manager, nodes *nodewatch.Watch, s Settings) error {
	if len(s.Queues) == 0 {
		return nil
	}
	return setup(mgr, nodes, s, nodewatch.Settle)
}

func setup(mgr ctrl.Manager, nodes *nodewatch.Watch, s Settings, settle time.Duration) error {
	reported := &report{}
	if err := reported.register(ctrlmetrics.Registry); err != nil {
		return fmt.Errorf("cannot register the metrics of flavors: %w", err)
	}
	return nodes.Add(nodewatch.Controller{
		Name: "slackqueue", Watched: []client.Object{&kueue.ClusterQueue{}, &corev1.ConfigMap{}},
		Needed: []schema.GroupVersionResource{kueue.SchemeGroupVersion.WithResource("clusterqueues")}, Settle: settle,
		Reads: func(cached client.Reader) reconcile.Reconciler {
			return &reconciler{Settings: s, cached: cached, client: mgr.GetClient(), settle: settle, report: reported, now: time.Now}
		},
	})
}
