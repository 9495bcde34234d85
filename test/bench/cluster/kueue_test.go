// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

// topology lets Kueue choose the nodes of the Jobs in a queue, and choose others when a node fails.
func (f *fleet) topology() {
	f.Helper()
	const name = "nodes"
	sandbox.Create(f.T, f.admin, &kueue.Topology{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: corev1.LabelHostname}}},
	})
	sandbox.Create(f.T, f.admin, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ResourceFlavorSpec{
		NodeLabels: map[string]string{sandbox.Simulated: "true"}, TopologyName: ptr.To[kueue.TopologyReference](name),
	}})
	sandbox.Create(f.T, f.admin, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queue}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU}, Flavors: []kueue.FlavorQuotas{
			{Name: name, Resources: []kueue.ResourceQuota{{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("1M")}}},
		}}},
	}})
	for _, w := range contenders {
		if w.by == ofKueue {
			sandbox.Create(f.T, f.admin, &kueue.LocalQueue{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: queue}, Spec: kueue.LocalQueueSpec{ClusterQueue: queue},
			})
		}
	}
	failed := map[string]int32{} // only the watch uses it
	sandbox.Follow(f.T, f.admin, &batchv1.JobList{}, func(job *batchv1.Job, _ bool) {
		if job.Labels[workload.QueueNameLabel] != "" && job.Status.Failed > failed[job.Name] {
			failed[job.Name] = job.Status.Failed
			f.detected(ofKueue, job.Name)
		}
	})
	sandbox.Follow(f.T, f.admin, &kueue.WorkloadList{}, func(w *kueue.Workload, _ bool) {
		if owner := metav1.GetControllerOf(w); owner != nil && owner.Kind == "Job" && len(w.Status.UnhealthyNodes) > 0 {
			f.detected(ofKueue, owner.Name)
		}
	})
}

// queued is a Job in Kueue's queue, which makes pods anew that have failed.
func queued(namespace string, i int) client.Object {
	o := job(fmt.Sprintf("queued-%04d", i))
	o.Namespace, o.Labels = namespace, map[string]string{workload.QueueNameLabel: queue}
	o.Spec.BackoffLimit = ptr.To[int32](1000)
	return o
}
