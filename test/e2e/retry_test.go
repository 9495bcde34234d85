// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// A job that always fails is retried up to its limit. Then it is Failed and holds no quota.
func TestAFailingJobIsRetriedUpToItsLimit(t *testing.T) {
	testenv.Test(t, features.New("retry").Assess("the limit is reached", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-failing", "frank", needs.Pods)
		aw := wrapped("failer", job("failer", "100m", "exit", "3"), map[string]string{
			workload.RetryLimitAnnotation:               "2",
			workload.RetryPausePeriodDurationAnnotation: "1s",
			// The Job reports the failure. The grace period for failed pods is longer than any
			// test.
			workload.FailureGracePeriodDurationAnnotation: "1h",
		})
		s.create(ctx, aw)
		s.untilPhase(ctx, aw, workload.AppWrapperFailed)
		if aw.Status.Retries != 2 {
			t.Errorf("resettingCount is %d, not the limit of 2", aw.Status.Retries)
		}
		if c := meta.FindStatusCondition(aw.Status.Conditions, string(workload.Unhealthy)); c == nil || c.Reason != "FailedComponent" {
			t.Errorf("Unhealthy must have the reason FailedComponent: %+v", c)
		}
		s.until(ctx, "three Jobs were made", func(ctx context.Context) (string, error) { return s.attempts(ctx, aw, 3) })
		s.untilReserved(ctx, corev1.ResourceCPU, "0")
		return ctx
	}).Feature())
}

// attempts returns "" if exactly that many Jobs created a pod for an AppWrapper. Events include
// Jobs that have been deleted.
func (s *story) attempts(ctx context.Context, aw *workload.AppWrapper, want int) (string, error) {
	events := &corev1.EventList{}
	if err := s.admin.List(ctx, events); err != nil {
		return "", err
	}
	jobs := map[types.UID]bool{}
	for _, e := range events.Items {
		if e.InvolvedObject.Kind == "Job" && e.Reason == "SuccessfulCreate" && !e.CreationTimestamp.Before(&aw.CreationTimestamp) {
			jobs[e.InvolvedObject.UID] = true
		}
	}
	if len(jobs) != want {
		return fmt.Sprintf("there were %d", len(jobs)), nil
	}
	return "", nil
}
