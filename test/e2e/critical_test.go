// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// GKE refuses critical pods in a namespace without a quota for them. That of the platform counts its pods.
func TestThePlatformHasAQuotaForItsCriticalPods(t *testing.T) {
	testenv.Test(t, features.New("critical").Assess("it counts them", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-critical", "crit", needs.Machine)
		quota := &corev1.ResourceQuota{}
		if err := s.admin.Get(ctx, "mlbatch-critical-pods", "mlbatch-system", quota); err != nil {
			t.Fatal(err)
		}
		if used := quota.Status.Used[corev1.ResourcePods]; used.Value() < 5 {
			t.Errorf("%s pods of the platform are critical", used.String())
		}
		return ctx
	}).Feature())
}
