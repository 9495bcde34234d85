// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/test/fakecluster"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

func TestWhatIsSaidOfAPart(t *testing.T) {
	kueue, _ := parts.Named("kueue")
	versions := setup.Versions{Platform: setup.Platform{"kueue": {Image: "registry.k8s.io/kueue/kueue:v0.19.2"}}}
	theirs := *kueueDeployment("registry.k8s.io/kueue/kueue:v0.16.1", preflight.Owner{})
	well := theirs
	well.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	ours := theirs
	ours.Namespace = helmrelease.DefaultNamespace
	is := func(waitsFor ...string) *installed {
		return &installed{namespace: helmrelease.DefaultNamespace, deployments: []string{ours.Name}, waitsFor: waitsFor}
	}
	for name, c := range map[string]struct {
		ours        *installed
		deployments []appsv1.Deployment
		want        Component
	}{
		"it is nowhere":           {nil, nil, Component{State: "off"}},
		"it is the cluster's own": {nil, []appsv1.Deployment{well}, Component{State: "external", Found: "v0.16.1", Ready: true}},
		"it is the cluster's own, and not ready": {nil, []appsv1.Deployment{theirs}, Component{
			State: "external", Found: "v0.16.1", Why: "kueue-controller-manager in namespace kueue-system: 0 of 1 pods ready",
		}},
		"it is ours":                {is(), []appsv1.Deployment{theirs, ours}, Component{State: "installed", Found: "v0.16.1", Ready: true}},
		"it is ours, and not ready": {is("a", "b"), []appsv1.Deployment{ours}, Component{State: "installed", Found: "v0.16.1", Why: "a; b"}},
		"it is ours, and gone":      {is("a"), nil, Component{State: "installed", Why: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Name, c.want.Wanted = "kueue", "v0.19.2"
			if diff := cmp.Diff(c.want, ofPart(kueue, versions, c.ours, c.deployments)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatIsSaidOfARelease(t *testing.T) {
	versions := setup.Versions{Version: "0.2.0"}
	is := func(status release.Status, complete bool) helmrelease.History {
		m := helmrelease.History{Last: fakecluster.Revision(2, status, nil)}
		if complete {
			m.Complete = fakecluster.Revision(1, release.StatusSuperseded, nil)
		}
		return m
	}
	for name, c := range map[string]struct {
		history helmrelease.History
		want    Component
	}{
		"there is none":              {helmrelease.History{}, Component{State: "absent"}},
		"it is in another namespace": {helmrelease.History{Elsewhere: "tenants"}, Component{State: "absent", Why: "it is in namespace tenants: use --teams-namespace tenants"}},
		"it is complete":             {is(release.StatusDeployed, false), Component{State: "installed", Found: "0.1.0", Ready: true}},
		"its installation has begun": {is(release.StatusPendingInstall, false), Component{
			State: "installed", Found: "0.1.0", Why: "it is pending-install: wait if another command is running, else resume with 'mlbatch install --resume-interrupted'",
		}},
		"its installation has failed": {is(release.StatusFailed, false), Component{
			State: "installed", Found: "0.1.0", Why: "it is failed: resume with 'mlbatch install'",
		}},
		"its upgrade has begun": {is(release.StatusPendingUpgrade, true), Component{
			State: "installed", Found: "0.1.0", Why: "it is pending-upgrade: wait if another command is running, else resume with 'mlbatch upgrade --resume-interrupted'",
		}},
		"somebody goes back to an earlier one": {is(release.StatusPendingRollback, true), Component{
			State: "installed", Found: "0.1.0", Why: "it is pending-rollback: wait if another command is running, else resume with 'mlbatch upgrade --resume-interrupted'",
		}},
		"its upgrade has failed": {is(release.StatusFailed, true), Component{
			State: "installed", Found: "0.1.0", Why: "it is failed: resume with 'mlbatch upgrade'",
		}},
		"its removal has begun": {is(release.StatusUninstalling, false), Component{
			State: "leaving", Found: "0.1.0", Why: "it is uninstalling: resume with 'mlbatch uninstall'",
		}},
		"only its record is left": {is(release.StatusUninstalled, false), Component{
			State: "leaving", Found: "0.1.0", Why: "it is uninstalled: resume with 'mlbatch uninstall'",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Name, c.want.Wanted = "release mlbatch", "0.2.0"
			for _, v := range []verb{install, upgrade} {
				s := state{deployed: c.history.Complete != nil}
				if c.history.Last != nil {
					s.status = c.history.Last.Info.Status
				}
				if _, err := decide(v, "mlbatch", s); strings.Contains(c.want.Why, "'mlbatch "+string(v)+"'") && err != nil {
					t.Errorf("that would say %v", err)
				}
			}
			if diff := cmp.Diff(c.want, ofRelease(helmrelease.Release{Name: "mlbatch"}, c.history, versions)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
