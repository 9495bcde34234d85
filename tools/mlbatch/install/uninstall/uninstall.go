// SPDX-License-Identifier: Apache-2.0

// Package uninstall removes the platform and, optionally, the teams from a cluster. It fails if
// there are objects that only the platform can delete. It retains CRDs, queues and namespaces.
package uninstall

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// Uninstaller removes the platform.
type Uninstaller struct {
	Cluster access.Cluster
	// Platform is the release of the platform.
	Platform helmrelease.Release
	// Teams is the release of the teams, or nil to keep it.
	Teams *helmrelease.Release
	// Force uninstalls even if that leaves objects behind that only the platform can delete.
	Force bool
	// ResumeInterrupted removes a release even if another command may still be working on it.
	ResumeInterrupted bool

	Timeout  time.Duration
	Progress helmrelease.Progress
}

// Uninstall removes the releases, the teams first. It retains CRDs, queues and the namespaces
// of teams. It returns no error if there is no release.
func (u Uninstaller) Uninstall(ctx context.Context) ([]helmrelease.Outcome, error) {
	api, err := u.Cluster.Connect()
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(u.Progress, "[1/2] looking for objects that only the platform can delete")
	all, err := u.open(api)
	if err != nil {
		return nil, err
	}
	if err := u.check(ctx, api, all); err != nil {
		return nil, err
	}
	fmt.Fprintln(u.Progress, "[2/2] removing releases")
	var done []helmrelease.Outcome
	for _, r := range all {
		outcome := helmrelease.Outcome{Release: r.Name, Namespace: r.Namespace, Done: "absent"}
		if r.Last != nil {
			if err := r.remove(ctx, api, u.Timeout, u.Progress); err != nil {
				return done, err
			}
			outcome.Version, outcome.Done = r.Last.Chart.Metadata.Version, "uninstalled"
		}
		done = append(done, outcome)
	}
	return done, nil
}

// open reads the releases, the platform last.
func (u Uninstaller) open(api access.API) ([]*removal, error) {
	var all []*removal
	for _, wanted := range []struct {
		release    *helmrelease.Release
		what, flag string
	}{{u.Teams, "the release teams", "--teams-namespace"}, {&u.Platform, "the platform", "--namespace"}} {
		if wanted.release == nil {
			continue
		}
		m, err := newRemoval(*wanted.release, u.Cluster, api)
		if err == nil {
			err = m.CheckNamespace(wanted.what, wanted.flag)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// check returns an error if the uninstallation would fail halfway, or leave stuck objects behind.
func (u Uninstaller) check(ctx context.Context, api access.API, all []*removal) error {
	for _, r := range all {
		if err := r.mayGo(ctx, api, u.ResumeInterrupted); err != nil {
			return err
		}
	}
	platform := all[len(all)-1]
	if !platform.Present() { // its operators are already gone
		return nil
	}
	found, err := u.stuckWithout(ctx, api, platform)
	if err != nil {
		return err
	}
	would := describeStuck(found)
	if would == "" {
		return nil
	}
	if u.Force {
		fmt.Fprintln(u.Progress, "warning:", would)
		return nil
	}
	return fmt.Errorf("%s: %s", would, adviceFor(found))
}

// stuckWithout lists the objects that would be stuck without the platform. If Force is set, it
// skips kinds that cannot be listed, for example because Kueue is down.
func (u Uninstaller) stuckWithout(ctx context.Context, api access.API, platform *removal) ([]stuckObject, error) {
	var found []stuckObject
	for kind := range helmrelease.DefinedKinds(platform.objects) {
		some, err := stuckOf(ctx, api, kind)
		if err != nil && !u.Force {
			return nil, err
		}
		if err != nil {
			fmt.Fprintln(u.Progress, "warning:", err)
		}
		found = append(found, some...)
	}
	return found, nil
}

// stuckOf lists the objects of a kind that have an operator's finalizers.
func stuckOf(ctx context.Context, api access.API, kind schema.GroupKind) ([]stuckObject, error) {
	mapping, err := api.RESTMapper().RESTMapping(kind)
	if err != nil {
		return nil, nil //nolint:nilerr // a kind that is not served has no objects
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind)
	var found []stuckObject
	err = clusterstate.Each(ctx, api.Client, list, func(o *metav1.PartialObjectMetadata) {
		if getsStuck(kind, o) {
			found = append(found, stuckObject{kind.Kind, client.ObjectKeyFromObject(o).String(), o.GetDeletionTimestamp() != nil})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list the %s of the cluster (skip them with --force): %w", mapping.Resource.Resource, err)
	}
	return found, nil
}
