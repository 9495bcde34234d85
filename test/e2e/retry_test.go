// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// A job that fails each time is started again as often as its owner allows,
// then it is Failed and holds no quota.
func TestAFailingJobIsRetriedUpToItsLimit(t *testing.T) {
	testenv.Test(t, features.New("retry").Assess("the limit is reached", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "failing", "frank")
		aw := wrapped("failer", job("failer", "100m", "exit", "3"), map[string]string{
			workload.RetryLimitAnnotation:               "2",
			workload.RetryPausePeriodDurationAnnotation: "1s",
		})
		s.create(ctx, aw)
		s.untilPhase(ctx, aw, workload.AppWrapperFailed)
		if aw.Status.Retries != 2 {
			t.Errorf("resettingCount is %d, not the limit of 2", aw.Status.Retries)
		}
		s.untilReserved(ctx, corev1.ResourceCPU, "0")
		return ctx
	}).Feature())
}
