// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// untilPhase waits until an AppWrapper is in a phase.
func (s *story) untilPhase(ctx context.Context, aw *workload.AppWrapper, phase workload.AppWrapperPhase) {
	s.t.Helper()
	s.until(ctx, fmt.Sprintf("AppWrapper %s becomes %s", aw.Name, phase), func(ctx context.Context) (string, error) {
		if err := s.admin.Get(ctx, aw.Name, s.namespace, aw); err != nil || aw.Status.Phase == phase {
			return "", err
		}
		is := fmt.Sprintf("it is %s, and %+v", aw.Status.Phase, meta.FindStatusCondition(aw.Status.Conditions, string(workload.Unhealthy)))
		if leadsElsewhere(aw.Status.Phase, phase) {
			return "", broken(is)
		}
		return is, nil
	})
}

// leadsElsewhere reports whether waiting for another phase is pointless. Unless the story waits
// for Failed, it gives up when a retry begins, while the pods that explain it still exist.
func leadsElsewhere(phase, wanted workload.AppWrapperPhase) bool {
	switch phase {
	case workload.AppWrapperFailed, workload.AppWrapperSucceeded:
		return true
	case workload.AppWrapperResetting:
		return wanted != workload.AppWrapperFailed
	}
	return false
}

// stillThere returns "" once an AppWrapper has been removed.
func (s *story) stillThere(ctx context.Context, aw *workload.AppWrapper) (string, error) {
	err := s.admin.Get(ctx, aw.Name, s.namespace, &workload.AppWrapper{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	return "it exists", err
}

// pods lists the pods of an AppWrapper.
func (s *story) pods(ctx context.Context, appWrapper string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := s.admin.List(ctx, list, resources.WithLabelSelector(workload.AppWrapperLabel+"="+appWrapper))
	return list.Items, err
}

// untilRunning waits until exactly that many pods of an AppWrapper run.
func (s *story) untilRunning(ctx context.Context, appWrapper string, want int) {
	s.t.Helper()
	s.until(ctx, fmt.Sprintf("%d pods of %s run", want, appWrapper), func(ctx context.Context) (string, error) {
		pods, err := s.pods(ctx, appWrapper)
		running := 0
		for _, p := range pods {
			if p.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running == want {
			return "", err
		}
		return fmt.Sprintf("%d of %d", running, want), err
	})
}

// running lists the running pods of an AppWrapper, without terminating ones.
func (s *story) running(ctx context.Context, appWrapper string) ([]corev1.Pod, error) {
	pods, err := s.pods(ctx, appWrapper)
	return slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil
	}), err
}

// workloadOf returns Kueue's Workload of an object, or nil if there is none yet.
func (s *story) workloadOf(ctx context.Context, owner client.Object) (*kueue.Workload, error) {
	list := &kueue.WorkloadList{}
	if err := s.admin.List(ctx, list); err != nil {
		return nil, err
	}
	for i, w := range list.Items {
		if len(w.OwnerReferences) > 0 && w.OwnerReferences[0].UID == owner.GetUID() {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// untilWorkload waits until a condition of an object's Workload has this status and reason.
func (s *story) untilWorkload(ctx context.Context, owner client.Object, condition, status, reason string) {
	s.t.Helper()
	what := fmt.Sprintf("the Workload of %s has %s=%s (%s)", owner.GetName(), condition, status, reason)
	s.until(ctx, what, func(ctx context.Context) (string, error) {
		w, err := s.workloadOf(ctx, owner)
		if err != nil || w == nil {
			return "there is no Workload", err
		}
		c := meta.FindStatusCondition(w.Status.Conditions, condition)
		if c == nil || string(c.Status) != status || c.Reason != reason {
			return fmt.Sprintf("it has %+v", c), nil
		}
		return "", nil
	})
}

// queue returns the name of the team's ClusterQueue.
func (s *story) queue() string { return cmp.Or(s.clusterQueue, s.namespace+"-cluster-queue") }

// reserved returns how much of a resource the team's ClusterQueue has reserved.
func (s *story) reserved(ctx context.Context, resource corev1.ResourceName) (string, error) {
	queue := &kueue.ClusterQueue{}
	if err := s.admin.Get(ctx, s.queue(), "", queue); err != nil {
		return "", err
	}
	for _, flavor := range queue.Status.FlavorsReservation {
		for _, r := range flavor.Resources {
			if r.Name == resource && !r.Total.IsZero() {
				return r.Total.String(), nil
			}
		}
	}
	return "0", nil
}

// untilReserved waits until the team's ClusterQueue has reserved exactly that much of a
// resource.
func (s *story) untilReserved(ctx context.Context, resource corev1.ResourceName, want string) {
	s.t.Helper()
	s.until(ctx, fmt.Sprintf("the queue has given away %s of %s", want, resource), func(ctx context.Context) (string, error) {
		got, err := s.reserved(ctx, resource)
		if got == want {
			return "", err
		}
		return "it has given away " + got, err
	})
}
