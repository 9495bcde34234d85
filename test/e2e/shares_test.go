// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// Three teams have 20 GPUs each, and one of them is idle. A second team uses the idle GPUs
// until the third, which has twice the weight, wants some as well. The third gets them as long
// as its share is smaller: it borrows 12 (12/2), the second 8. Neither loses any of its own
// GPUs.
func TestWhatIsFreeIsSharedByWeight(t *testing.T) {
	testenv.Test(t, features.New("weight").Assess("12 for the one, 8 for the other", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		file, three := example(t, cfg, "three-teams.yaml")
		file.apply(ctx, three)
		vision, language := tell(t, cfg, "vision", "bob", needs.SimulatedNodes), tell(t, cfg, "language", "lee", needs.SimulatedNodes)
		language.user = as(t, cfg, "lee", "language-edit-group")
		language.untilMember(ctx, true, "lee", "language-edit-group")
		vision.untilMember(ctx, true, "bob")
		own := func(s *story) *workload.AppWrapper {
			aw := wrapped("own", gpuJobs("own", 5, "4"), nil)
			s.runs(ctx, aw)
			return aw
		}
		more := func(i int) *workload.AppWrapper {
			return wrapped(fmt.Sprintf("more-%d", i), gpuJobs(fmt.Sprintf("more-%d", i), 1, "4"), nil)
		}

		mine := own(vision)
		vision.untilLaterThan(ctx, mine)
		for i := range 5 {
			vision.create(ctx, more(i))
		}
		vision.untilReserved(ctx, gpu, "40")
		theirs := own(language)
		vision.untilReserved(ctx, gpu, "40")
		for i := range 3 {
			language.runs(ctx, more(i))
		}
		fourth := more(3)
		language.create(ctx, fourth)
		language.untilWorkload(ctx, fourth, kueue.WorkloadQuotaReserved, "False", "Pending")
		language.untilReserved(ctx, gpu, "32")
		vision.untilReserved(ctx, gpu, "28")
		vision.neverEvicted(ctx, mine)
		language.neverEvicted(ctx, theirs)
		return ctx
	}).Feature())
}
