// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// ways bring an AppWrapper into each phase in which it can be deleted, except Running, which
// another story covers.
var ways = map[workload.AppWrapperPhase]func(*story, context.Context) *workload.AppWrapper{
	workload.AppWrapperSuspended:  (*story).waits,
	workload.AppWrapperResuming:   (*story).isRefused,
	workload.AppWrapperResetting:  (*story).pausesBeforeARetry,
	workload.AppWrapperSuspending: (*story).makesRoom,
	workload.AppWrapperSucceeded:  (*story).hasSucceeded,
	workload.AppWrapperFailed:     (*story).hasFailed,
}

// Whatever the phase in which its owner deletes an AppWrapper, nothing is left behind.
func TestAnAppWrapperIsDeletedInAnyPhase(t *testing.T) {
	testenv.Test(t, features.New("phases").Assess("nothing is left", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-serving", "sven", needs.SimulatedNodes)
		t.Cleanup(s.letAllGo)
		for phase, reach := range ways {
			t.Run(string(phase), func(t *testing.T) {
				in := s.in(t)
				aw := reach(in, ctx)
				in.untilPhase(ctx, aw, phase)
				in.remove(ctx, aw)
				s.letAllGo()
				in.until(ctx, "it is gone", func(ctx context.Context) (string, error) { return in.stillThere(ctx, aw) })
				in.until(ctx, "nothing is left", in.left)
				in.untilReserved(ctx, gpu, "0")
			})
		}
		return ctx
	}).Feature())
}

// waits requests more than the quota.
func (s *story) waits(ctx context.Context) *workload.AppWrapper {
	aw := wrapped("waits", gpuJob("waits", "16"), nil)
	s.create(ctx, aw)
	return aw
}

// isRefused has quota, and a component that the API server refuses for now.
func (s *story) isRefused(ctx context.Context) *workload.AppWrapper {
	s.t.Helper()
	none := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-deployments", Namespace: s.namespace},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}},
	}
	if err := s.admin.Create(ctx, none); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := s.admin.Delete(context.Background(), none); err != nil {
			s.t.Error(err)
		}
	})
	s.until(ctx, "deployments are counted", func(ctx context.Context) (string, error) {
		if err := s.admin.Get(ctx, none.Name, s.namespace, none); err != nil || len(none.Status.Hard) > 0 {
			return "", err
		}
		return "they are not", nil
	})
	aw := wrapped("refused", services()["Deployment"], map[string]string{workload.AdmissionGracePeriodDurationAnnotation: "1h"})
	s.create(ctx, aw)
	return aw
}

// fails is a job whose only pod has failed.
func (s *story) fails(ctx context.Context, annotations map[string]string) *workload.AppWrapper {
	s.t.Helper()
	aw := wrapped("fails", gpuJob("fails", "1"), annotations)
	s.create(ctx, aw)
	if err := s.fail(ctx, s.onlyPod(ctx, "fails")); err != nil {
		s.t.Fatal(err)
	}
	return aw
}

func (s *story) pausesBeforeARetry(ctx context.Context) *workload.AppWrapper {
	return s.fails(ctx, map[string]string{workload.RetryPausePeriodDurationAnnotation: "1h"})
}

func (s *story) hasFailed(ctx context.Context) *workload.AppWrapper {
	return s.fails(ctx, map[string]string{
		workload.RetryLimitAnnotation:                   "0",
		workload.DeletionOnFailureGracePeriodAnnotation: "1h",
	})
}

func (s *story) hasSucceeded(ctx context.Context) *workload.AppWrapper {
	aw := wrapped("succeeds", gpuJob("succeeds", "1"), nil)
	s.create(ctx, aw)
	s.change(ctx, s.onlyPod(ctx, "succeeds"), succeeds)
	return aw
}

// makesRoom is preempted, and its pod takes a while to stop.
func (s *story) makesRoom(ctx context.Context) *workload.AppWrapper {
	s.t.Helper()
	aw := wrapped("lingers", gpuJob("lingers", "1"), nil)
	s.create(ctx, aw)
	s.change(ctx, s.onlyPod(ctx, "lingers"), hold)
	w, err := s.workloadOf(ctx, aw)
	if err != nil || w == nil {
		s.t.Fatalf("the Workload is %v (%v)", w, err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"active": false}}`))
	if err := s.admin.GetControllerRuntimeClient().Patch(ctx, w, patch); err != nil {
		s.t.Fatal(err)
	}
	return aw
}
