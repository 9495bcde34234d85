// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// Add keeps of an AppWrapper what is counted. A cluster may have tens of thousands, of up to a megabyte.
func (o *Objects) Add(aw *v1beta2.AppWrapper) {
	if o.requested == nil {
		o.requested = map[types.UID]units{}
	}
	o.requested[aw.UID] = unitsOf(aw)
	slim := *aw
	slim.ManagedFields, slim.Annotations = nil, nil
	slim.Spec, slim.Status.ComponentStatus, slim.Status.LastAttempts = v1beta2.AppWrapperSpec{}, nil, nil
	o.AppWrappers = append(o.AppWrappers, slim)
}

// AddWorkload does so for a Workload, whose pods are reduced to what they request.
func (o *Objects) AddWorkload(w *kueue.Workload) {
	slim := *w
	slim.ManagedFields, slim.Annotations = nil, nil
	slim.Spec.PodSets = slices.Clone(slim.Spec.PodSets)
	for i := range slim.Spec.PodSets {
		template := &slim.Spec.PodSets[i].Template
		pod := corev1.Pod{Spec: defaulted(template.Spec)}
		*template = corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: quota.Requests(&pod)}},
		}}}
	}
	o.Workloads = append(o.Workloads, slim)
}

// unitsOf are what all pods of an AppWrapper request.
func (o Objects) unitsOf(aw *v1beta2.AppWrapper) units {
	if kept, slim := o.requested[aw.UID]; slim {
		return kept
	}
	return unitsOf(aw)
}
