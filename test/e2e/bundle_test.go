// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// Kueue finds the pods of a Job by itself, but does not know ReplicaSets and LeaderWorkerSets.
// It has to reserve quota for all of them before the first pod runs.
func TestABundleStartsWithQuotaForAllOfIt(t *testing.T) {
	testenv.Test(t, features.New("bundle").Assess("nothing runs on a share of the quota", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-serving", "sven", needs.SimulatedNodes, needs.LeaderWorkerSets)
		aw := wrapped("bundle", job("bundle", "100m", "sleep", "1h"), nil)
		aw.Spec.Components = append(aw.Spec.Components, wrapped("", services()["ReplicaSet"], nil).Spec.Components...)
		aw.Spec.Components = append(aw.Spec.Components, wrapped("", s.manifestOf("leaderworkerset", "group", ""), nil).Spec.Components...)
		s.create(ctx, aw)
		s.untilPhase(ctx, aw, workload.AppWrapperRunning)
		s.untilRunning(ctx, "bundle", 7)

		w, err := s.workloadOf(ctx, aw)
		if err != nil || w == nil {
			t.Fatalf("the Workload is %v (%v)", w, err)
		}
		if diff := cmp.Diff([]int32{1, 2, 2, 2}, s.podsWithQuota(ctx, aw)); diff != "" {
			t.Errorf("pods that have quota (-want +got):\n%s", diff)
		}
		reserved := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
		if reserved == nil || meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted) != nil {
			t.Fatalf("it has no quota, or was evicted: %+v", w.Status.Conditions)
		}
		pods, err := s.pods(ctx, "bundle")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pods {
			if p.CreationTimestamp.Before(&reserved.LastTransitionTime) {
				t.Errorf("pod %s is older than its quota", p.Name)
			}
		}
		return ctx
	}).Feature())
}
