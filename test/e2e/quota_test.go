// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// Two jobs that do not fit into the quota together run one after the other. The second starts
// when the pods of the first have ended, not when they are told to stop.
func TestAJobWaitsForQuotaAndStartsWhenAnotherIsDeleted(t *testing.T) {
	testenv.Test(t, features.New("queueing").Assess("the second job follows the first", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-waiting", "walter", needs.Pods)
		first := wrapped("first", job("first", "700m", "linger", farewell()), nil)
		second := wrapped("second", job("second", "700m", "sleep", "1h"), nil)

		s.create(ctx, first)
		s.untilPhase(ctx, first, workload.AppWrapperRunning)
		s.untilListening(ctx, "first", 1)
		s.untilReserved(ctx, corev1.ResourceCPU, "700m")
		s.create(ctx, second)
		s.untilWorkload(ctx, second, kueue.WorkloadQuotaReserved, "False", "Pending")
		s.untilPhase(ctx, second, workload.AppWrapperSuspended)

		s.remove(ctx, first)
		s.untilPodsEnd(ctx, "first", "700m")
		s.untilPhase(ctx, second, workload.AppWrapperRunning)
		s.untilRunning(ctx, "second", 1)
		return ctx
	}).Feature())
}

// Deleting an AppWrapper removes its pods and then releases the quota.
func TestDeletingAnAppWrapperRemovesItsPodsAndFreesQuota(t *testing.T) {
	testenv.Test(t, features.New("deletion").Assess("nothing is left", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-leaving", "laura", needs.Pods)
		aw := wrapped("leaver", job("leaver", "300m", "linger", farewell()), nil)
		s.create(ctx, aw)
		s.untilPhase(ctx, aw, workload.AppWrapperRunning)
		s.untilListening(ctx, "leaver", 1)
		s.untilReserved(ctx, corev1.ResourceCPU, "300m")

		s.remove(ctx, aw)
		s.untilPodsEnd(ctx, "leaver", "300m")
		s.until(ctx, "the AppWrapper is gone", func(ctx context.Context) (string, error) { return s.stillThere(ctx, aw) })
		if pods, err := s.pods(ctx, "leaver"); err != nil || len(pods) > 0 {
			t.Errorf("the AppWrapper is gone before %d of its pods (%v)", len(pods), err)
		}
		s.untilReserved(ctx, corev1.ResourceCPU, "0")
		return ctx
	}).Feature())
}
