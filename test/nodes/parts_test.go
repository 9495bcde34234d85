// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package nodes_test

import (
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// whole returns an error if a part lacks a replica, or has two on one node, or one on the lost node.
func (s *site) whole(lost string) error {
	list := &appsv1.DeploymentList{}
	if err := s.admin.List(s.Context(), list, client.InNamespace(platform.Namespace)); err != nil {
		return err
	}
	var wrong []error
	for _, d := range list.Items {
		wrong = append(wrong, s.apart(d, lost))
	}
	return errors.Join(wrong...)
}

// podGroups is the only part with one replica.
const podGroups = "scheduler-plugins-controller"

func (s *site) apart(d appsv1.Deployment, lost string) error {
	if *d.Spec.Replicas < 2 && d.Name != podGroups {
		return fmt.Errorf("%s has no replica that stands by", d.Name)
	}
	pods := &corev1.PodList{}
	if err := s.admin.List(s.Context(), pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		return err
	}
	at := map[string]string{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil || pod.Spec.NodeName == lost {
			continue
		}
		if !isReady(pod) {
			return fmt.Errorf("pod %s on %s is not ready", pod.Name, pod.Spec.NodeName)
		}
		if other := at[pod.Spec.NodeName]; other != "" {
			return fmt.Errorf("pods %s and %s are both on %s", other, pod.Name, pod.Spec.NodeName)
		}
		at[pod.Spec.NodeName] = pod.Name
	}
	if want := int(*d.Spec.Replicas); len(at) != want {
		return fmt.Errorf("%s has pods %v, want %d", d.Name, at, want)
	}
	return nil
}

func isReady(pod corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// leaders returns the pod that leads, for each Lease of the platform.
func (s *site) leaders() map[string]string {
	s.Helper()
	leases := &coordinationv1.LeaseList{}
	s.Must(s.admin.List(s.Context(), leases, client.InNamespace(platform.Namespace)))
	all := map[string]string{}
	for _, lease := range leases.Items {
		if pod, _, led := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_"); led {
			all[lease.Name] = pod
		}
	}
	return all
}

// partsWithLeader are all but the controller of PodGroups.
const partsWithLeader = 8

// ledElsewhere returns an error unless each part is led by a pod that is not on the lost node.
func (s *site) ledElsewhere(lost string) error {
	led := 0
	for lease, leader := range s.leaders() {
		pod := &corev1.Pod{}
		if err := s.admin.Get(s.Context(), client.ObjectKey{Namespace: platform.Namespace, Name: leader}, pod); err != nil {
			return fmt.Errorf("the leader of %s: %w", lease, err)
		}
		if pod.Spec.NodeName == lost {
			return fmt.Errorf("%s, the leader of %s, was on the node", leader, lease)
		}
		led++
	}
	if led != partsWithLeader {
		return fmt.Errorf("%d parts have a leader, want %d: %v", led, partsWithLeader, s.leaders())
	}
	return nil
}
