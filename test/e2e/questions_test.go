// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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

// stillThere answers "" once an AppWrapper has been removed for good.
func (s *story) stillThere(ctx context.Context, aw *workload.AppWrapper) (string, error) {
	err := s.admin.Get(ctx, aw.Name, s.namespace, &workload.AppWrapper{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	return "it exists", err
}
