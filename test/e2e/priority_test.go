// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// A team's urgent job preempts one with a lower priority, which runs again afterwards.
func TestAnUrgentJobTakesTheQuotaOfAnother(t *testing.T) {
	testenv.Test(t, features.New("priority").Assess("the other waits and runs again", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-serving", "sven", needs.SimulatedNodes)
		patient := wrapped("patient", withPriority(gpuJob("patient", "8"), "low-priority"), nil)
		urgent := wrapped("urgent", withPriority(gpuJob("urgent", "8"), "high-priority"), nil)

		s.create(ctx, patient)
		s.untilPhase(ctx, patient, workload.AppWrapperRunning)
		ousted := s.onlyPod(ctx, "patient")
		s.create(ctx, urgent)
		s.untilWorkload(ctx, patient, kueue.WorkloadPreempted, "True", kueue.InClusterQueueReason)
		s.untilBoundAfter(ctx, "urgent", ousted)
		s.untilPhase(ctx, urgent, workload.AppWrapperRunning)
		s.untilPhase(ctx, patient, workload.AppWrapperSuspended)
		s.untilReserved(ctx, gpu, "8")

		s.change(ctx, s.onlyPod(ctx, "urgent"), succeeds)
		s.untilPhase(ctx, urgent, workload.AppWrapperSucceeded)
		s.untilPhase(ctx, patient, workload.AppWrapperRunning)
		s.change(ctx, s.onlyPod(ctx, "patient"), succeeds)
		s.untilPhase(ctx, patient, workload.AppWrapperSucceeded)
		if patient.Status.Retries != 0 {
			t.Errorf("a preemption counted as %d retries", patient.Status.Retries)
		}
		s.remove(ctx, patient)
		s.remove(ctx, urgent)
		return ctx
	}).Assess("work without a class ranks as default-priority", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-serving", "sven", needs.SimulatedNodes)
		low := wrapped("low", withPriority(gpuJob("low", "8"), "low-priority"), nil)
		plain := wrapped("plain", gpuJob("plain", "8"), nil)
		middle := wrapped("middle", withPriority(gpuJob("middle", "8"), "default-priority"), nil)

		s.runs(ctx, low)
		s.create(ctx, plain)
		s.untilWorkload(ctx, low, kueue.WorkloadPreempted, "True", kueue.InClusterQueueReason)
		s.untilPhase(ctx, plain, workload.AppWrapperRunning)
		s.remove(ctx, low)
		s.waitsBecause(ctx, middle, "insufficient unused quota")
		s.change(ctx, s.onlyPod(ctx, "plain"), succeeds)
		s.untilPhase(ctx, middle, workload.AppWrapperRunning)
		s.waitsBecause(ctx, wrapped("plain-too", gpuJob("plain-too", "8"), nil), "insufficient unused quota")
		return ctx
	}).Feature())
}

func withPriority(job *batchv1.Job, class string) *batchv1.Job {
	job.Spec.Template.Spec.PriorityClassName = class
	return job
}
