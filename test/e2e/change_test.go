// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/quotareason"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
)

// An administrator changes a team's file several times while the team works. Running work
// continues; new limits apply to waiting work.
func TestATeamIsChangedWhileItWorks(t *testing.T) {
	testenv.Test(t, features.New("change").Assess("what runs goes on", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		requires(t, needs.SimulatedNodes)
		file := keep(t, cfg, "mlbatch-e2e-changes", "default")
		team := func(user, quota, more string) {
			file.apply(ctx, file.file(onSimulatedNodes+fmt.Sprintf(`
  - {name: e2e-neighbour, users: [nina], cohort: e2e-changes, quota: {e2e-simulated: {cpu: 100, memory: 1Ti, nvidia.com/gpu: 16}}}
  - {name: e2e-changing, users: [%s], quota: {e2e-simulated: {cpu: 100, memory: 1Ti, nvidia.com/gpu: %s}}%s}`, user, quota, more)))
		}
		team("chris", "8", "")
		s, neighbour := tell(t, cfg, "e2e-changing", "chris", needs.SimulatedNodes), tell(t, cfg, "e2e-neighbour", "nina", needs.SimulatedNodes)
		s.untilMember(ctx, true, "chris")
		first, second, third, fourth := wrapped("first", gpuJob("first", "8"), nil), wrapped("second", gpuJob("second", "4"), nil),
			wrapped("third", gpuJob("third", "4"), nil), wrapped("fourth", gpuJob("fourth", "1"), nil)
		s.runs(ctx, first)
		kept := s.onlyPod(ctx, "first")
		s.untilLaterThan(ctx, first)
		s.waitsBecause(ctx, second, "insufficient unused quota")
		s.whySays(ctx, second, "Quota")
		s.isNext(ctx, knowing(t, cfg, why.Mapper(), "chris"), second)
		s.untilReason(ctx, second, quotareason.WaitingForQuota)

		team("chris", "12", "")
		s.untilPhase(ctx, second, workload.AppWrapperRunning)
		grown := s.onlyPod(ctx, "second")
		team("chris", "2", "")
		s.waitsBecause(ctx, third, "> maximum capacity (2)")
		s.whySays(ctx, third, "NeverFits")
		s.mustRunOn(ctx, first, kept)
		s.mustRunOn(ctx, second, grown)
		s.neverEvicted(ctx, first, second)

		team("chris", "8", ", cohort: e2e-changes, weight: 2")
		s.untilPhase(ctx, third, workload.AppWrapperRunning)
		borrowed := s.onlyPod(ctx, "third")
		s.untilReserved(ctx, gpu, "16")

		// Everything changes at once. Running pods exceed the new limits, and their priority is
		// not allowed any more.
		team("dora", "{nominal: 8, borrowingLimit: 0, lendingLimit: 4}", `, cohort: e2e-changes, weight: 3,
      priorities: [default-priority], limits: [{type: Container, max: {cpu: 500m}, defaultRequest: {cpu: 100m}, default: {cpu: 500m}}]`)
		s.untilMember(ctx, false, "chris")
		stranger := fourth.DeepCopy()
		stranger.Namespace = s.namespace
		if err := s.user.Create(ctx, stranger); !apierrors.IsForbidden(err) {
			t.Errorf("a former member can still submit work (%v)", err)
		}
		s.user = as(t, cfg, "dora")
		s.untilMember(ctx, true, "dora")
		s.waitsBecause(ctx, fourth, "limitRange max")
		s.whySays(ctx, fourth, "AboveLimitRange")
		s.mustRunOn(ctx, first, kept)
		s.mustRunOn(ctx, second, grown)
		s.mustRunOn(ctx, third, borrowed)
		s.neverEvicted(ctx, first, second, third)

		// Kueue reconsiders work that a LimitRange blocked when the quota changes, too.
		team("dora", "{nominal: 8, borrowingLimit: 0, lendingLimit: 4}", ", cohort: e2e-changes, weight: 3")
		team("dora", "{nominal: 8, borrowingLimit: 0}", ", cohort: e2e-changes")
		s.waitsBecause(ctx, fourth, "insufficient unused quota")
		team("dora", "{nominal: 8, borrowingLimit: 9}", ", cohort: e2e-changes")
		s.untilPhase(ctx, fourth, workload.AppWrapperRunning)

		// The team loses borrowed quota when its owner wants it back.
		wanted := wrapped("wanted", gpuJobs("wanted", 2, "8"), nil)
		neighbour.untilMember(ctx, true, "nina")
		neighbour.create(ctx, wanted)
		neighbour.untilPhase(ctx, wanted, workload.AppWrapperRunning)
		s.untilReserved(ctx, gpu, "8")
		s.mustRunOn(ctx, first, kept)
		s.neverEvicted(ctx, first)
		return ctx
	}).Feature())
}

// runs creates an AppWrapper and waits until it runs.
func (s *story) runs(ctx context.Context, aw *workload.AppWrapper) {
	s.t.Helper()
	s.create(ctx, aw)
	s.untilPhase(ctx, aw, workload.AppWrapperRunning)
}

// whySays checks the first cause that 'mlbatch why' tells the user.
func (s *story) whySays(ctx context.Context, aw *workload.AppWrapper, code string) {
	s.t.Helper()
	answer, err := why.Explain(ctx, s.user, why.Target{Kind: "appwrapper", Namespace: s.namespace, Name: aw.Name}, time.Now())
	if err != nil || len(answer.Causes) == 0 || !strings.HasPrefix(string(answer.Causes[0].Code), code) {
		s.t.Errorf("why %s does not begin with %s: %v\n%s", aw.Name, code, err, explain.Text(answer, time.Now()))
	}
}

// isNext checks that the user learns the position in the queue.
func (s *story) isNext(ctx context.Context, reader client.Client, aw *workload.AppWrapper) {
	s.t.Helper()
	s.until(ctx, "why says that "+aw.Name+" is the next", func(ctx context.Context) (string, error) {
		answer, err := why.Explain(ctx, reader, why.Target{Kind: "appwrapper", Namespace: s.namespace, Name: aw.Name}, time.Now())
		if text := explain.Text(answer, time.Now()); !strings.Contains(text, explain.FirstInQueue) || len(answer.Unknown) > 0 {
			return text, err
		}
		return "", err
	})
}

// untilReason waits until the AppWrapper itself says why it waits, which takes ten seconds.
func (s *story) untilReason(ctx context.Context, aw *workload.AppWrapper, want quotareason.Reason) {
	s.t.Helper()
	s.until(ctx, aw.Name+" says why it waits", func(ctx context.Context) (string, error) {
		if err := s.user.Get(ctx, client.ObjectKeyFromObject(aw), aw); err != nil {
			return "", err
		}
		c := meta.FindStatusCondition(aw.Status.Conditions, string(workload.QuotaReserved))
		if c == nil || c.Reason != string(want) || c.Message != quotareason.Sentence(want) {
			return fmt.Sprintf("its condition is %+v", c), nil
		}
		return "", nil
	})
}

// waitsBecause creates an AppWrapper, if it does not exist, and waits until its user can read
// this reason for waiting.
func (s *story) waitsBecause(ctx context.Context, aw *workload.AppWrapper, words string) {
	s.t.Helper()
	if aw.UID == "" {
		s.create(ctx, aw)
	}
	s.until(ctx, fmt.Sprintf("%s waits because of: %s", aw.Name, words), func(ctx context.Context) (string, error) {
		list := &kueue.WorkloadList{}
		if err := s.user.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			return "", err
		}
		for _, w := range list.Items {
			if len(w.OwnerReferences) == 0 || w.OwnerReferences[0].UID != aw.UID {
				continue
			}
			c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
			if c != nil && c.Status == "True" {
				return "", broken("it has quota: " + c.Message)
			}
			if c == nil || !strings.Contains(c.Message, words) {
				return fmt.Sprintf("it has %+v", c), nil
			}
			return "", nil
		}
		return "there is no Workload", nil
	})
	s.untilPhase(ctx, aw, workload.AppWrapperSuspended)
}

// neverEvicted fails if Kueue ever evicted one of the AppWrappers.
func (s *story) neverEvicted(ctx context.Context, all ...*workload.AppWrapper) {
	s.t.Helper()
	for _, aw := range all {
		w, err := s.workloadOf(ctx, aw)
		if err != nil || w == nil {
			s.t.Errorf("%s has no Workload (%v)", aw.Name, err)
		} else if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted); c != nil {
			s.t.Errorf("%s was evicted: %+v", aw.Name, c)
		}
	}
}
