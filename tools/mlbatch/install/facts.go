// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/release"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// facts collects what preflight needs to know about the cluster and the releases. The first
// release is the platform's.
func (i Installer) facts(ctx context.Context, api access.API, all []*delivery) (preflight.Facts, error) {
	versions, err := setup.Load()
	if err != nil {
		return preflight.Facts{}, err
	}
	server, err := api.Discovery().ServerVersion()
	if err != nil {
		return preflight.Facts{}, fmt.Errorf("cannot reach the cluster: %w", err)
	}
	f := preflight.Facts{
		Supported: versions.Supported, Kubernetes: server.GitVersion, TakeOwnership: i.TakeOwnership,
		OpenShift: serves(api, "config.openshift.io", "ClusterVersion"),
		PodGroups: serves(api, "scheduling.x-k8s.io", "PodGroup"),
		Values:    all[0].all,
	}
	for _, d := range all {
		f.Releases = append(f.Releases, d.facts(all[0].objects))
	}
	f.Releases[0].Elsewhere = all[0].Elsewhere // a cluster may have several releases of teams
	if f.Denied, err = rightsToInstall(api, all).Denied(ctx, api); err != nil || len(f.Denied) > 0 {
		return f, err
	}
	deployments, err := api.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return f, fmt.Errorf("cannot see which operators the cluster has: %w", err)
	}
	ours := preflight.Owner{Name: all[0].Name, Namespace: all[0].Namespace}
	f.Operators = others(deployments.Items, ours)
	if f.Kueue, err = observeKueue(ctx, api, deployments.Items, ours); err != nil {
		return f, err
	}
	return f, surroundings(ctx, api, all, &f)
}

// facts returns what preflight needs to know about a release. Kinds whose CRDs the platform
// installs do not count as unknown.
func (d *delivery) facts(platform []helmrelease.Object) preflight.Release {
	coming := helmrelease.DefinedKinds(platform)
	r := preflight.Release{
		Name: d.Name, Namespace: d.Namespace, Wanted: d.chart.Version, Invalid: d.seen.invalid,
		Taken: d.seen.taken, Leaving: d.seen.leaving, Stored: d.seen.stored,
		Absent: d.seen.absent, Unlabelled: d.seen.unlabelled, Foreign: foreign(d.chart.Name, d.values),
	}
	for _, known := range []*release.Release{d.Complete, d.Last} { // the last run may have been killed
		if known != nil {
			r.Installed = higher(r.Installed, known.Chart.Metadata.Version)
		}
	}
	for _, o := range d.seen.unknown {
		if !slices.ContainsFunc(d.objects, func(wanted helmrelease.Object) bool {
			return wanted.GetKind() == o.Kind && wanted.GetName() == o.Name && coming[wanted.GroupVersionKind().GroupKind()]
		}) {
			r.Unknown = append(r.Unknown, o)
		}
	}
	return r
}

// higher returns the higher of two versions, and the second if the first is empty.
func higher(a, b string) string {
	x, err1 := version.ParseSemantic(a)
	y, err2 := version.ParseSemantic(b)
	if err1 == nil && err2 == nil && y.LessThan(x) {
		return a
	}
	return b
}

// serves reports whether the cluster serves a kind.
func serves(api access.API, group, kind string, versions ...string) bool {
	_, err := api.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind}, versions...)
	return err == nil
}

// others returns the running operators that the given release does not own. An operator of a
// release with the same name in another namespace counts even if it is scaled to zero.
func others(deployments []appsv1.Deployment, ours preflight.Owner) []preflight.Operator {
	var found []preflight.Operator
	for _, d := range deployments {
		part, known := parts.Of(d.Name)
		owner, asleep := helmrelease.OwnerOf(&d), d.Spec.Replicas != nil && *d.Spec.Replicas == 0
		if owner == ours || asleep && owner.Name != ours.Name {
			continue
		}
		if known || d.Name == preflight.CodeFlareOperator || slices.Contains(parts.OtherGangSchedulers, d.Name) {
			account := cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")
			found = append(found, preflight.Operator{Part: part.Name, Namespace: d.Namespace, Name: d.Name, Account: account, Owner: owner})
		}
	}
	return found
}

// observeKueue reads a Kueue that our release did not install. CRDs that our release left
// behind do not count as one.
func observeKueue(ctx context.Context, api access.API, deployments []appsv1.Deployment, ours preflight.Owner) (preflight.Kueue, error) {
	k := preflight.Kueue{Served: serves(api, "kueue.x-k8s.io", "ClusterQueue"), Current: serves(api, "kueue.x-k8s.io", "ClusterQueue", "v1beta2")}
	at := slices.IndexFunc(deployments, func(d appsv1.Deployment) bool {
		part, _ := parts.Of(d.Name)
		return part.Name == "kueue" && helmrelease.OwnerOf(&d) != ours
	})
	if at < 0 {
		owner, err := ownerOfKueuesKinds(ctx, api)
		k.Served = k.Served && owner != ours
		return k, err
	}
	return readKueue(ctx, api, k, deployments[at])
}

func ownerOfKueuesKinds(ctx context.Context, api access.API) (preflight.Owner, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: helmrelease.CustomResourceDefinition})
	if err := api.Get(ctx, client.ObjectKey{Name: "clusterqueues.kueue.x-k8s.io"}, crd); client.IgnoreNotFound(err) != nil {
		return preflight.Owner{}, fmt.Errorf("cannot see whose Kueue the cluster has: %w", err)
	}
	return helmrelease.OwnerOf(crd), nil
}

// readKueue reads the version and the configuration of a running Kueue.
func readKueue(ctx context.Context, api access.API, k preflight.Kueue, d appsv1.Deployment) (preflight.Kueue, error) {
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		config, err := api.CoreV1().ConfigMaps(d.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return k, fmt.Errorf("cannot read the configuration of the cluster's Kueue: %w", err)
		}
		understand(&k, config)
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		look(&k, c)
	}
	return k, nil
}

// look reads Kueue's version, and the feature gate that its command line may set.
func look(k *preflight.Kueue, c corev1.Container) {
	if tag := parts.Tag(c.Image); k.Version == "" {
		if _, err := version.ParseSemantic(tag); err == nil { // not a branch or a commit
			k.Version = tag
		}
	}
	for _, arg := range slices.Concat(c.Command, c.Args) {
		k.Evicts = k.Evicts && !strings.Contains(arg, neverEvicts+"=true")
	}
}

// neverEvicts is a feature gate of Kueue.
const neverEvicts = "DisableWaitForPodsReady"

// understand reads the fields of Kueue's configuration that workloads depend on.
func understand(k *preflight.Kueue, config *corev1.ConfigMap) {
	var c struct {
		ManageJobsWithoutQueueName bool            `json:"manageJobsWithoutQueueName"`
		FeatureGates               map[string]bool `json:"featureGates"`
		WaitForPodsReady           *struct {
			Enable *bool `json:"enable"`
		} `json:"waitForPodsReady"`
		Integrations struct {
			Frameworks []string `json:"frameworks"`
		} `json:"integrations"`
	}
	text, found := config.Data["controller_manager_config.yaml"]
	if !found || yaml.Unmarshal([]byte(text), &c) != nil {
		return
	}
	k.Configured, k.ManagesAll = true, c.ManageJobsWithoutQueueName
	k.Frameworks = c.Integrations.Frameworks
	k.Evicts = c.WaitForPodsReady != nil && (c.WaitForPodsReady.Enable == nil || *c.WaitForPodsReady.Enable) && !c.FeatureGates[neverEvicts]
}
