// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

const (
	settled = `
  - {name: e2e-settled, users: [selma], quota: {e2e-simulated: {cpu: 100, memory: 1Ti, nvidia.com/gpu: 8}}}`
	tooGreedy = `
  - {name: e2e-newcomer, users: [nora], quota: {e2e-simulated: {cpu: 100, memory: 1Ti, nvidia.com/gpu: 41}}}`
	newcomer = `
  - {name: e2e-newcomer, users: [nora], quota: {e2e-simulated: {cpu: 100, memory: 1Ti, nvidia.com/gpu: 8}}}`
	beside = `
  - {name: e2e-beside, users: [ben], quota: {e2e-simulated: {cpu: 100, memory: 1Ti, nvidia.com/gpu: 8}}}`
)

// One team is added to the file, another with a separate release. The existing teams' running
// and waiting work is not affected.
func TestATeamIsOnboardedWhileOthersWork(t *testing.T) {
	testenv.Test(t, features.New("onboard").Assess("nobody is disturbed", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		requires(t, needs.SimulatedNodes)
		file, another := keep(t, cfg, "mlbatch-e2e-newcomers", "default"), keep(t, cfg, "mlbatch-e2e-beside", "default")
		file.apply(ctx, file.file(onSimulatedNodes+settled))
		s := tell(t, cfg, "e2e-settled", "selma", needs.SimulatedNodes)
		s.untilMember(ctx, true, "selma")
		works, waits := wrapped("works", gpuJob("works", "8"), nil), wrapped("waits", gpuJob("waits", "8"), nil)
		s.create(ctx, works)
		s.untilPhase(ctx, works, workload.AppWrapperRunning)
		pod := s.onlyPod(ctx, "works")
		s.waitsBecause(ctx, waits, "insufficient unused quota")
		before := s.standing(ctx)

		file.refuses(ctx, `flavor "e2e-simulated" has 48 of nvidia.com/gpu, but the quota adds up to more: e2e-settled has 8, e2e-newcomer has 41`,
			file.file(onSimulatedNodes+settled+tooGreedy))
		s.mustStandAs(ctx, before, "a file that was refused")
		if err := s.admin.Get(ctx, "e2e-newcomer", "", &corev1.Namespace{}); !apierrors.IsNotFound(err) {
			t.Errorf("a refused file has created a namespace (%v)", err)
		}

		file.apply(ctx, file.file(onSimulatedNodes+settled+newcomer))
		another.apply(ctx, another.file(onSimulatedNodes+beside))
		for namespace, user := range map[string]string{"e2e-newcomer": "nora", "e2e-beside": "ben"} {
			tell(t, cfg, namespace, user, needs.SimulatedNodes).worksAtOnce(ctx, user)
		}
		s.mustStandAs(ctx, before, "onboarding others")
		s.mustRunOn(ctx, works, pod)

		s.change(ctx, pod, succeeds)
		s.untilPhase(ctx, works, workload.AppWrapperSucceeded)
		s.untilPhase(ctx, waits, workload.AppWrapperRunning)
		return ctx
	}).Feature())
}

// worksAtOnce has a member of a new team run as much as its quota allows.
func (s *story) worksAtOnce(ctx context.Context, user string) {
	s.t.Helper()
	s.untilMember(ctx, true, user)
	first := wrapped("first", gpuJob("first", "8"), nil)
	s.create(ctx, first)
	s.untilPhase(ctx, first, workload.AppWrapperRunning)
	s.untilReserved(ctx, gpu, "8")
	s.change(ctx, s.onlyPod(ctx, "first"), succeeds)
	s.untilPhase(ctx, first, workload.AppWrapperSucceeded)
}

// untilMember waits until the API server's authorizer allows or denies the user to submit work.
func (s *story) untilMember(ctx context.Context, want bool, user string, groups ...string) {
	s.t.Helper()
	s.until(ctx, "the rights of "+user+" are known", func(ctx context.Context) (string, error) {
		who := asked{user, s.namespace, append(groups, "system:authenticated")}
		if allowed(ctx, s.t, s.api, who, "create", workload.GroupVersion.Group, "appwrappers") == want {
			return "", nil
		}
		return map[bool]string{true: "there are none", false: "they are still there"}[want], nil
	})
}
