// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/test/sandbox"
)

// replacement is Kueue's node replacement, as it is by default: Kueue assigns the pods of a Job to nodes, and to
// others in place of those that fail. The Job makes pods again.
var replacement = rival{
	name: "Job with Kueue", namespace: "rival-kueue",
	prepare: func(t *testing.T) {
		named := metav1.ObjectMeta{Name: "rival-kueue"}
		quota := func(name corev1.ResourceName, nominal string) kueue.ResourceQuota {
			return kueue.ResourceQuota{Name: name, NominalQuota: resource.MustParse(nominal)}
		}
		for _, o := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: named.Name, Labels: sandbox.Team}},
			&kueue.Topology{ObjectMeta: named, Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: corev1.LabelHostname}}}},
			&kueue.ResourceFlavor{ObjectMeta: named, Spec: kueue.ResourceFlavorSpec{
				NodeLabels: map[string]string{ofRival: named.Name}, TopologyName: ptr.To(kueue.TopologyReference(named.Name)),
			}},
			&kueue.ClusterQueue{ObjectMeta: named, Spec: kueue.ClusterQueueSpec{
				NamespaceSelector: &metav1.LabelSelector{},
				ResourceGroups: []kueue.ResourceGroup{{
					CoveredResources: []corev1.ResourceName{gpu, corev1.ResourceCPU, corev1.ResourceMemory},
					Flavors: []kueue.FlavorQuotas{{Name: kueue.ResourceFlavorReference(named.Name), Resources: []kueue.ResourceQuota{
						quota(gpu, "1k"), quota(corev1.ResourceCPU, "1k"), quota(corev1.ResourceMemory, "10Ti"),
					}}},
				}},
			}},
			&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: named.Name, Name: named.Name}, Spec: kueue.LocalQueueSpec{
				ClusterQueue: kueue.ClusterQueueReference(named.Name),
			}},
		} {
			sandbox.Create(t, admin, o)
		}
	},
	run: func(spec batchv1.JobSpec) client.Object {
		spec.BackoffLimit = nil // the default is 6
		spec.Template.Annotations = map[string]string{kueue.PodSetUnconstrainedTopologyAnnotation: "true"}
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"kueue.x-k8s.io/queue-name": "rival-kueue"}}, Spec: spec}
	},
	follow: func(t *testing.T, name string, wrong func()) {
		in := client.InNamespace("rival-kueue")
		sandbox.Follow(t, admin, &batchv1.JobList{}, func(j *batchv1.Job, _ bool) {
			if j.Status.Failed > 0 || ptr.Deref(j.Status.Terminating, 0) > 0 {
				wrong()
			}
		}, in, client.MatchingFields{"metadata.name": name})
		sandbox.Follow(t, admin, &kueue.WorkloadList{}, func(w *kueue.Workload, _ bool) {
			owner := metav1.GetControllerOf(w)
			if owner != nil && owner.Name == name && (len(w.Status.UnhealthyNodes) > 0 || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadEvicted)) {
				wrong()
			}
		}, in)
	},
}
