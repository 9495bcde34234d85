// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

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

// untilReserved waits until the team's ClusterQueue has given away exactly
// that much of a resource.
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

// reserved is how much of a resource a ClusterQueue has given away.
func (s *story) reserved(ctx context.Context, resource corev1.ResourceName) (string, error) {
	queue := &kueue.ClusterQueue{}
	if err := s.admin.Get(ctx, s.namespace+"-cluster-queue", "", queue); err != nil {
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

// stillThere answers "" once an AppWrapper has been removed for good.
func (s *story) stillThere(ctx context.Context, aw *workload.AppWrapper) (string, error) {
	err := s.admin.Get(ctx, aw.Name, s.namespace, &workload.AppWrapper{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	return "it exists", err
}
