// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// A node is drained. A bare pod has no controller but ours, so nothing else replaces it.
func TestABarePodThatIsEvictedIsMadeAnew(t *testing.T) {
	testenv.Test(t, features.New("drain").Assess("it is tried again", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-evicted", "eve", needs.Pods)
		template := job("bare", "200m", "linger", farewell()).Spec.Template
		template.Name = "bare"
		bare := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": template.ObjectMeta, "spec": template.Spec}
		aw := wrapped("bare", bare, map[string]string{workload.RetryPausePeriodDurationAnnotation: "1s"})
		s.create(ctx, aw)
		s.untilPhase(ctx, aw, workload.AppWrapperRunning)
		first := s.onlyPod(ctx, "bare")
		s.untilListening(ctx, "bare", 1)

		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: first.Name, Namespace: s.namespace}}
		if err := s.api.CoreV1().Pods(s.namespace).EvictV1(ctx, eviction); err != nil {
			t.Fatal(err)
		}
		s.until(ctx, "another pod runs", func(ctx context.Context) (string, error) {
			pods, err := s.running(ctx, "bare")
			if err != nil || len(pods) != 1 || pods[0].UID == first.UID {
				return "none does", err
			}
			return "", nil
		})
		s.untilPhase(ctx, aw, workload.AppWrapperRunning)
		if aw.Status.Retries != 0 || aw.Status.Migrations != 1 {
			t.Errorf("an eviction counted as %d retries and %d migrations, not as one migration", aw.Status.Retries, aw.Status.Migrations)
		}
		return ctx
	}).Feature())
}
