// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// Two teams of a cohort have 8 GPUs each. One borrows the other's GPUs while they are idle, and
// returns them when their owner wants them. The newest job is preempted first; the owner's job
// starts when its pods are gone. The preempted job is admitted again when the owner is done.
func TestWhatWasBorrowedIsGivenBack(t *testing.T) {
	testenv.Test(t, features.New("reclaim").Assess("the owner gets its quota back", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		borrower, lender := tell(t, cfg, "e2e-borrower", "bert", needs.SimulatedNodes), tell(t, cfg, "e2e-lender", "lena", needs.SimulatedNodes)
		t.Cleanup(borrower.letAllGo)
		own := wrapped("own", gpuJob("own", "8"), nil)
		extra := wrapped("extra", gpuJob("extra", "8"), nil)
		wanted := wrapped("wanted", gpuJob("wanted", "8"), nil)

		borrower.create(ctx, own)
		borrower.untilPhase(ctx, own, workload.AppWrapperRunning)
		kept := borrower.onlyPod(ctx, "own")
		borrower.untilLaterThan(ctx, own)
		borrower.create(ctx, extra)
		borrower.untilPhase(ctx, extra, workload.AppWrapperRunning)
		lent := borrower.onlyPod(ctx, "extra")
		borrower.change(ctx, lent, hold)
		borrower.untilReserved(ctx, gpu, "16")

		lender.create(ctx, wanted)
		borrower.untilWorkload(ctx, extra, kueue.WorkloadPreempted, "True", kueue.InCohortReclamationReason)
		borrower.untilWorkload(ctx, extra, kueue.WorkloadEvicted, "True", kueue.WorkloadEvictedByPreemption)
		borrower.untilPhase(ctx, extra, workload.AppWrapperSuspending)
		borrower.untilToldToEnd(ctx, lent)
		lender.untilWorkload(ctx, wanted, kueue.WorkloadQuotaReserved, "False", "Pending")
		lender.untilPhase(ctx, wanted, workload.AppWrapperSuspended)

		borrower.change(ctx, lent, letGo)
		lender.untilBoundAfter(ctx, "wanted", lent)
		lender.untilPhase(ctx, wanted, workload.AppWrapperRunning)
		borrower.untilPhase(ctx, extra, workload.AppWrapperSuspended)
		borrower.untilWorkload(ctx, extra, kueue.WorkloadQuotaReserved, "False", "Pending")
		borrower.untilReserved(ctx, gpu, "8")
		borrower.mustRunOn(ctx, own, kept)

		lender.change(ctx, lender.onlyPod(ctx, "wanted"), succeeds)
		lender.untilPhase(ctx, wanted, workload.AppWrapperSucceeded)
		lender.neverPreempted(ctx, wanted)
		borrower.untilPhase(ctx, extra, workload.AppWrapperRunning)
		borrower.untilWorkload(ctx, extra, kueue.WorkloadPreempted, "False", "QuotaReserved")
		borrower.change(ctx, borrower.onlyPod(ctx, "extra"), succeeds)
		borrower.untilPhase(ctx, extra, workload.AppWrapperSucceeded)
		if extra.Status.Retries != 0 {
			t.Errorf("a preemption counted as %d retries", extra.Status.Retries)
		}
		borrower.mustRunOn(ctx, own, kept)
		return ctx
	}).Feature())
}

// untilLaterThan waits until the next admission is in a later second. Kueue's times are whole
// seconds, and it may preempt either of two workloads that were admitted in the same one.
func (s *story) untilLaterThan(ctx context.Context, aw *workload.AppWrapper) {
	s.t.Helper()
	s.until(ctx, "the second in which "+aw.Name+" was admitted is over", func(ctx context.Context) (string, error) {
		w, err := s.workloadOf(ctx, aw)
		if err != nil || w == nil {
			return "there is no Workload", err
		}
		c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
		if c == nil || !time.Now().After(c.LastTransitionTime.Add(time.Second)) {
			return "it is not", nil
		}
		return "", nil
	})
}

// untilToldToEnd waits until a pod has a deletion timestamp.
func (s *story) untilToldToEnd(ctx context.Context, pod *corev1.Pod) {
	s.t.Helper()
	s.until(ctx, "pod "+pod.Name+" is told to end", func(ctx context.Context) (string, error) {
		err := s.admin.Get(ctx, pod.Name, s.namespace, pod)
		if pod.DeletionTimestamp == nil {
			return "it was not", err
		}
		return "", err
	})
}

// untilBoundAfter waits until an AppWrapper's pod is bound to a node. That must not happen
// while the other pod exists. The other pod is read second: if it still exists then, it existed
// before.
func (s *story) untilBoundAfter(ctx context.Context, appWrapper string, other *corev1.Pod) {
	s.t.Helper()
	s.until(ctx, "a pod of "+appWrapper+" is on a node", func(ctx context.Context) (string, error) {
		pods, err := s.pods(ctx, appWrapper)
		if err != nil || len(pods) == 0 || pods[0].Spec.NodeName == "" {
			return "it is not", err
		}
		now := &corev1.Pod{}
		err = s.admin.Get(ctx, other.Name, other.Namespace, now)
		if err == nil && now.UID == other.UID {
			return "", broken(fmt.Sprintf("pod %s is still there", other.Name))
		}
		return "", client.IgnoreNotFound(err)
	})
}

// mustRunOn fails unless an AppWrapper still runs in the same pod.
func (s *story) mustRunOn(ctx context.Context, aw *workload.AppWrapper, pod *corev1.Pod) {
	s.t.Helper()
	s.untilPhase(ctx, aw, workload.AppWrapperRunning)
	now := &corev1.Pod{}
	err := s.admin.Get(ctx, pod.Name, s.namespace, now)
	if apierrors.IsNotFound(err) || now.UID != pod.UID || now.DeletionTimestamp != nil {
		s.t.Errorf("pod %s of %s, which used its team's own quota, was stopped (%v)", pod.Name, aw.Name, err)
	}
}

// neverPreempted fails if an AppWrapper's Workload was ever preempted.
func (s *story) neverPreempted(ctx context.Context, aw *workload.AppWrapper) {
	s.t.Helper()
	w, err := s.workloadOf(ctx, aw)
	if err != nil || w == nil {
		s.t.Fatalf("%s has no Workload (%v)", aw.Name, err)
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPreempted); c != nil {
		s.t.Errorf("%s, which used its team's own quota, was preempted: %+v", aw.Name, c)
	}
}
