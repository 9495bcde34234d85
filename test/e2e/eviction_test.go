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

// An administrator drains a team's queue and opens it again. Kueue evicts the job; its quota is
// released when the pods are gone. The second admission starts the job again, which does not
// count as a retry.
func TestAnEvictedJobGivesItsQuotaBackAndStartsAgain(t *testing.T) {
	testenv.Test(t, features.New("eviction").Assess("suspended, then running", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-evicted", "eve", needs.Pods)
		aw := wrapped("evictee", job("evictee", "200m", "linger", farewell()), nil)
		s.create(ctx, aw)
		s.untilPhase(ctx, aw, workload.AppWrapperRunning)
		s.untilListening(ctx, "evictee", 1)
		s.untilReserved(ctx, corev1.ResourceCPU, "200m")

		s.stop(ctx, kueue.HoldAndDrain)
		s.untilPodsEnd(ctx, "evictee", "200m")
		s.untilPhase(ctx, aw, workload.AppWrapperSuspended)
		if pods, err := s.pods(ctx, "evictee"); err != nil || len(pods) > 0 {
			t.Errorf("suspended with %d pods (%v)", len(pods), err)
		}
		s.untilReserved(ctx, corev1.ResourceCPU, "0")

		s.stop(ctx, kueue.None)
		s.untilPhase(ctx, aw, workload.AppWrapperRunning)
		s.untilRunning(ctx, "evictee", 1)
		if aw.Status.Retries != 0 {
			t.Errorf("an eviction counted as %d retries", aw.Status.Retries)
		}
		return ctx
	}).Feature())
}

// stop sets the stop policy of the team's queue.
func (s *story) stop(ctx context.Context, policy kueue.StopPolicy) {
	s.t.Helper()
	s.until(ctx, "the queue is changed", func(ctx context.Context) (string, error) {
		queue := &kueue.ClusterQueue{}
		if err := s.admin.Get(ctx, s.queue(), "", queue); err != nil {
			return "", err
		}
		queue.Spec.StopPolicy = &policy
		return "", s.admin.Update(ctx, queue) // retried after a conflict with Kueue
	})
}
