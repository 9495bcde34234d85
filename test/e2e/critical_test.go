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

// The class of the platform is the highest that is not of the system, which GKE refuses outside kube-system.
func TestThePlatformIsMoreImportantThanTheTeams(t *testing.T) {
	testenv.Test(t, features.New("critical").Assess("all its pods have its class", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		requires(t, needs.Machine)
		pods := &corev1.PodList{}
		if err := cfg.Client().Resources("mlbatch-system").List(ctx, pods); err != nil || len(pods.Items) < 5 {
			t.Fatalf("the platform has %d pods (%v)", len(pods.Items), err)
		}
		for _, pod := range pods.Items {
			if pod.Spec.Priority == nil || *pod.Spec.Priority != 1_000_000_000 {
				t.Errorf("%s has the class %q", pod.Name, pod.Spec.PriorityClassName)
			}
		}
		return ctx
	}).Feature())
}
