// SPDX-License-Identifier: Apache-2.0

package installer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/installer/obstacles"
	"github.com/mlbatch/mlbatch/tools/installer/parts"
)

func TestWhatIsSaidOfAPart(t *testing.T) {
	kueue, _ := parts.Named("kueue")
	versions := setup.Versions{}
	versions.Platform.Kueue.Image = "registry.k8s.io/kueue/kueue:v0.19.2"
	theirs := *kueueDeployment("registry.k8s.io/kueue/kueue:v0.16.1", obstacles.Owner{})
	well := theirs
	well.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	ours := theirs
	ours.Namespace = Namespace
	is := func(waitsFor ...string) *installed {
		return &installed{namespace: Namespace, deployments: []string{ours.Name}, waitsFor: waitsFor}
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
	for name, c := range map[string]struct {
		record *release.Release
		want   Component
	}{
		"there is none":  {nil, Component{State: "absent"}},
		"it is complete": {revision(1, release.StatusDeployed, nil), Component{State: "installed", Found: "0.1.0", Ready: true}},
		"it was killed": {revision(1, release.StatusPendingInstall, nil), Component{
			State: "installed", Found: "0.1.0", Why: "it is pending-install: run 'mlbatch install' or 'mlbatch upgrade' again",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Name, c.want.Wanted = "release mlbatch", "0.2.0"
			if diff := cmp.Diff(c.want, ofRelease(Release{Name: "mlbatch"}, c.record, versions)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
