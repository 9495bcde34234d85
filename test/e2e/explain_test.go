// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/test/explain"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// explain prints what helps to understand a failed test.
func (s *story) explain() {
	ctx, cancel := context.WithTimeout(context.Background(), patience.For(patience.Short))
	defer cancel()
	cluster := explain.Cluster{
		Objects: s.admin.GetControllerRuntimeClient(), Logs: s.api, Print: s.t.Logf,
		Simulated: func(p corev1.Pod) bool { return slices.Contains(here.Simulated, p.Spec.NodeName) },
	}
	cluster.PodLogs(ctx, platform.Namespace) // first: the log of a pod is lost with the pod
	cluster.PodLogs(ctx, s.namespace)
	for _, kind := range kinds() {
		cluster.Kinds(ctx, s.namespace, kind)
	}
	cluster.Object(ctx, s.queue(), &kueue.ClusterQueue{})
	cluster.Events(ctx, s.namespace)
}
