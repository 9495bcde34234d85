// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/wait"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// Component is the state of a part of the platform, or of one of its releases.
type Component struct {
	Name string `json:"name"`
	// State is installed, leaving (being removed), external (not installed by us), off, or absent.
	State string `json:"state"`
	// Wanted is the version that this command installs, Found the one on the cluster.
	Wanted string `json:"wanted"`
	Found  string `json:"found,omitempty"`
	Ready  bool   `json:"ready"`
	// Why is the reason why it is not ready.
	Why string `json:"why,omitempty"`
}

// Components returns the releases of the platform and of the teams, and then all parts.
func Components(ctx context.Context, cluster access.Cluster, platform, teams helmrelease.Release) ([]Component, error) {
	versions, err := setup.Load()
	if err != nil {
		return nil, err
	}
	api, err := cluster.Connect()
	if err != nil {
		return nil, err
	}
	first, err := platform.ReadHistory(cluster)
	if err != nil {
		return nil, err
	}
	if err := first.CheckNamespace("the platform", "--namespace"); err != nil {
		return nil, err
	}
	second, err := teams.ReadHistory(cluster)
	if err != nil {
		return nil, err
	}
	all := []Component{ofRelease(platform, first, versions), ofRelease(teams, second, versions)}
	deployments, err := api.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot see which operators the cluster has: %w", err)
	}
	ours, err := partsOf(ctx, api, platform, first)
	if err != nil {
		return nil, err
	}
	for _, p := range parts.All {
		all = append(all, ofPart(p, versions, ours[p.Name], deployments.Items))
	}
	return all, nil
}

// ofRelease returns the state of a release and, if it is incomplete, what to do next.
func ofRelease(r helmrelease.Release, m helmrelease.History, versions setup.Versions) Component {
	c := Component{Name: "release " + r.Name, State: "absent", Wanted: versions.Version}
	if m.Last == nil {
		if err := m.CheckNamespace("it", "--teams-namespace"); err != nil {
			c.Why = err.Error()
		}
		return c
	}
	c.State, c.Found = "installed", m.Last.Chart.Metadata.Version
	is := "it is " + m.Last.Info.Status.String() + ": "
	switch status := m.Last.Info.Status; {
	case status == release.StatusDeployed:
		c.Ready = true
	case status == release.StatusUninstalling, status == release.StatusUninstalled:
		c.State, c.Why = "leaving", is+"resume with 'mlbatch uninstall'"
	case status.IsPending():
		c.Why = is + "wait if another command is running, else " + strings.TrimSuffix(goOnWith(m), "'") + " --resume-interrupted'"
	default:
		c.Why = is + goOnWith(m)
	}
	return c
}

func goOnWith(m helmrelease.History) string {
	if m.Complete == nil {
		return "resume with 'mlbatch install'"
	}
	return "resume with 'mlbatch upgrade'"
}

// installed is the observed state of a part that is in the platform's release.
type installed struct {
	namespace   string
	deployments []string
	// waitsFor has a reason for each object that is not ready.
	waitsFor []string
}

// partsOf observes the parts that are enabled in the release.
func partsOf(ctx context.Context, api access.API, platform helmrelease.Release, m helmrelease.History) (map[string]*installed, error) {
	if !m.Present() {
		return nil, nil
	}
	objects, err := helmrelease.Decode(m.Last.Manifest)
	if err != nil {
		return nil, err
	}
	values, err := chartutil.CoalesceValues(m.Last.Chart, m.Last.Config)
	if err != nil {
		return nil, fmt.Errorf("cannot read the values of the release %s: %w", platform.Name, err)
	}
	found := map[string]*installed{}
	for _, p := range parts.All {
		if p.Enabled(values) {
			found[p.Name] = &installed{namespace: platform.Namespace}
		}
	}
	for _, o := range objects {
		p := found[o.Part]
		if p == nil {
			continue
		}
		if o.GetKind() == "Deployment" {
			o.SetNamespace(platform.NamespaceOf(api, o))
			p.deployments = append(p.deployments, o.GetName())
		}
		why, err := wait.Unready(ctx, api, []helmrelease.Object{o})
		if err != nil {
			return nil, err
		}
		p.waitsFor = append(p.waitsFor, why...)
	}
	return found, nil
}

// ofPart returns the state of a part: ours if it is installed, or else one that the cluster
// has from elsewhere.
func ofPart(p parts.Part, versions setup.Versions, ours *installed, deployments []appsv1.Deployment) Component {
	c := Component{Name: p.Name, State: "off", Wanted: p.Tag(versions)}
	if ours != nil {
		c.State, c.Ready, c.Why = "installed", len(ours.waitsFor) == 0, strings.Join(ours.waitsFor, "; ")
		c.Found = tagOf(deployments, func(d appsv1.Deployment) bool {
			return d.Namespace == ours.namespace && slices.Contains(ours.deployments, d.Name)
		})
		return c
	}
	at := slices.IndexFunc(deployments, func(d appsv1.Deployment) bool {
		part, _ := parts.Of(d.Name)
		return part.Name == p.Name
	})
	if at < 0 {
		return c
	}
	wanted, ready := wait.Pods(deployments[at])
	c.State, c.Ready, c.Found = "external", ready >= wanted, tagOf(deployments[at:at+1], func(appsv1.Deployment) bool { return true })
	if !c.Ready {
		c.Why = fmt.Sprintf("%s in namespace %s: %d of %d pods ready", deployments[at].Name, deployments[at].Namespace, ready, wanted)
	}
	return c
}

// tagOf returns the image tag of the first container of the first Deployment that fits.
func tagOf(deployments []appsv1.Deployment, fits func(appsv1.Deployment) bool) string {
	at := slices.IndexFunc(deployments, fits)
	if at < 0 || len(deployments[at].Spec.Template.Spec.Containers) == 0 {
		return ""
	}
	return parts.Tag(deployments[at].Spec.Template.Spec.Containers[0].Image)
}
