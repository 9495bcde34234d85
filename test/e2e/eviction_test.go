// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// An administrator takes a job off the cluster and lets it come back. Kueue
// asks for the quota; it is given back when the pods are gone, and a second
// admission starts the job anew without counting as a retry.
func TestAnEvictedJobGivesItsQuotaBackAndStartsAgain(t *testing.T) {
	testenv.Test(t, features.New("eviction").Assess("suspended, then running", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "evicted", "eve")
		aw := wrapped("evictee", job("evictee", "200m", "sleep", "1h"), nil)
		s.create(ctx, aw)
		s.untilPhase(ctx, aw, workload.AppWrapperRunning)
		s.untilRunning(ctx, "evictee", 1)

		s.activate(ctx, aw, false)
		s.untilPhase(ctx, aw, workload.AppWrapperSuspended)
		if pods, err := s.pods(ctx, "evictee"); err != nil || len(pods) > 0 {
			t.Errorf("suspended with %d pods (%v)", len(pods), err)
		}
		s.untilReserved(ctx, corev1.ResourceCPU, "0")

		s.activate(ctx, aw, true)
		s.untilPhase(ctx, aw, workload.AppWrapperRunning)
		s.untilRunning(ctx, "evictee", 1)
		if aw.Status.Retries != 0 {
			t.Errorf("an eviction counted as %d retries", aw.Status.Retries)
		}
		return ctx
	}).Feature())
}

// activate says whether Kueue may admit an object's Workload; if not, an
// admitted one is evicted.
func (s *story) activate(ctx context.Context, owner client.Object, active bool) {
	s.t.Helper()
	s.until(ctx, "the Workload is changed", func(ctx context.Context) (string, error) {
		w, err := s.workloadOf(ctx, owner)
		if err != nil || w == nil {
			return "there is no Workload", err
		}
		w.Spec.Active = &active
		if err := s.admin.Update(ctx, w); err != nil {
			return err.Error(), nil // changed by Kueue at the same time: look again
		}
		return "", nil
	})
}
