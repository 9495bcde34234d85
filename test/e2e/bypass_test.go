// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// A user who may update an AppWrapper must not be able to start it: only Kueue does.
func TestAMemberCannotStartWhatWaits(t *testing.T) {
	testenv.Test(t, features.New("bypass").Assess("it goes on waiting", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-applied", "amy", needs.Pods)
		aw := wrapped("greedy", job("greedy", "100", "exit", "0"), nil)
		s.create(ctx, aw)
		s.untilWorkload(ctx, aw, kueue.WorkloadQuotaReserved, "False", "Pending")
		const ours = "only Kueue may start queued work"
		for _, try := range []struct{ patch, answer string }{
			{`{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":null}}}`, ours}, // out of the queue, and then
			{`{"spec":{"suspend":false}}`, ours},
			{`{"metadata":{"labels":null},"spec":{"suspend":false}}`, "denied the request"}, // Kueue denies it, too
		} {
			err := s.user.Patch(ctx, aw.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(try.patch)))
			if err == nil || !strings.Contains(err.Error(), try.answer) {
				t.Errorf("the answer to %s is: %v", try.patch, err)
			}
		}
		if err := s.admin.Get(ctx, aw.Name, s.namespace, aw); err != nil || !aw.Spec.Suspend {
			t.Errorf("it was started (%v)", err)
		}
		return ctx
	}).Feature())
}
