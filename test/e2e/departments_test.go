// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// Two departments of one organization lend each other part of their quota and keep the rest.
func TestDepartmentsLendEachOtherWhatTheyDoNotKeep(t *testing.T) {
	testenv.Test(t, features.New("departments").Assess("limits are held at each level", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		file, departments := example(t, cfg, "hierarchical.yaml")
		file.apply(ctx, departments)
		vision, assistant := tell(t, cfg, "vision", "alice", needs.SimulatedNodes), tell(t, cfg, "assistant", "carol", needs.SimulatedNodes)
		vision.untilMember(ctx, true, "alice")
		assistant.untilMember(ctx, true, "carol")
		takes := func(s *story, name string, pods int32) *workload.AppWrapper {
			aw := wrapped(name, gpuJobs(name, pods, "8"), nil)
			s.create(ctx, aw)
			return aw
		}

		// Its own 16, 16 of speech and 8 of research, and 8 of the 16 of assistant.
		mine := takes(vision, "mine", 2)
		vision.untilPhase(ctx, mine, workload.AppWrapperRunning)
		ours := takes(vision, "ours", 3)
		vision.untilPhase(ctx, ours, workload.AppWrapperRunning)
		vision.untilLaterThan(ctx, ours)
		theirs := takes(vision, "theirs", 1)
		vision.untilPhase(ctx, theirs, workload.AppWrapperRunning)
		vision.untilReserved(ctx, gpu, "48")
		toomuch := wrapped("toomuch", gpuJobs("toomuch", 1, "8"), nil)
		vision.waitsBecause(ctx, toomuch, "insufficient unused quota")

		// What it does not lend is available at once. What it has lent, it reclaims.
		kept := takes(assistant, "kept", 1)
		assistant.untilPhase(ctx, kept, workload.AppWrapperRunning)
		vision.neverEvicted(ctx, mine, ours, theirs)
		back := takes(assistant, "back", 1)
		vision.untilWorkload(ctx, theirs, kueue.WorkloadPreempted, "True", kueue.InCohortReclamationReason)
		assistant.untilPhase(ctx, back, workload.AppWrapperRunning)
		vision.neverEvicted(ctx, mine, ours)

		// Research lends 32 of its 40.
		for _, aw := range []*workload.AppWrapper{toomuch, theirs, ours, mine} {
			vision.remove(ctx, aw)
		}
		most := takes(assistant, "most", 4)
		assistant.untilPhase(ctx, most, workload.AppWrapperRunning)
		assistant.untilReserved(ctx, gpu, "48")
		assistant.waitsBecause(ctx, wrapped("toomuch", gpuJobs("toomuch", 1, "8"), nil), "insufficient unused quota")
		return ctx
	}).Feature())
}
