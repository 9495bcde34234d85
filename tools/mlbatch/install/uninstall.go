// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Uninstaller takes the platform away again.
type Uninstaller struct {
	Cluster Cluster
	// Platform is the name of its release.
	Platform Release
	// Teams is the release of those who share the cluster, if it has to go, too.
	Teams *Release
	// Force leaves behind what only the platform could remove.
	Force    bool
	Timeout  time.Duration
	Progress Progress
}

// Uninstall removes the releases, the teams' first. CustomResourceDefinitions, queues and
// the namespaces of teams stay. That there is no release is no error.
func (u Uninstaller) Uninstall(ctx context.Context) ([]Outcome, error) {
	api, err := u.Cluster.connect()
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(u.Progress, "[1/2] looking for what needs the platform to go")
	all, err := u.open(api)
	if err != nil {
		return nil, err
	}
	if err := u.check(ctx, api, all); err != nil {
		return nil, err
	}
	fmt.Fprintln(u.Progress, "[2/2] removing releases")
	var done []Outcome
	for _, r := range all {
		outcome := Outcome{Release: r.Name, Namespace: r.Namespace, Done: "absent"}
		if r.last != nil {
			if err := r.remove(ctx, api, u.Timeout, u.Progress); err != nil {
				return done, err
			}
			outcome.Version, outcome.Done = r.last.Chart.Metadata.Version, "uninstalled"
		}
		done = append(done, outcome)
	}
	return done, nil
}

// open knows that the platform goes last.
func (u Uninstaller) open(api api) ([]*removal, error) {
	var all []*removal
	for _, wanted := range []struct {
		release    *Release
		what, flag string
	}{{u.Teams, "the release teams", "--teams-namespace"}, {&u.Platform, "the platform", "--namespace"}} {
		if wanted.release == nil {
			continue
		}
		m, err := wanted.release.toRemove(u.Cluster, api)
		if err == nil {
			err = m.refuseElsewhere(wanted.what, wanted.flag)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// check refuses what would end in the middle, or leave behind what nobody could remove.
func (u Uninstaller) check(ctx context.Context, api api, all []*removal) error {
	for _, r := range all {
		if err := r.mayGo(ctx, api); err != nil {
			return err
		}
	}
	platform := all[len(all)-1]
	if !platform.present() { // its operators are gone already
		return nil
	}
	found, err := u.strandedBy(ctx, api, platform)
	if err != nil {
		return err
	}
	would := strand(found)
	if would == "" {
		return nil
	}
	if u.Force {
		fmt.Fprintln(u.Progress, "warning:", would)
		return nil
	}
	return fmt.Errorf("%s: %s", would, endIt(found))
}

// strandedBy does with --force without what cannot be seen, as where Kueue is dead.
func (u Uninstaller) strandedBy(ctx context.Context, api api, platform *removal) ([]stranded, error) {
	var found []stranded
	for kind := range defined(platform.objects) {
		some, err := strandedOf(ctx, api, kind)
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

// strandedOf lists the objects of a kind of which an operator keeps hold.
func strandedOf(ctx context.Context, api api, kind schema.GroupKind) ([]stranded, error) {
	mapping, err := api.RESTMapper().RESTMapping(kind)
	if err != nil {
		return nil, nil //nolint:nilerr // a kind that is not served has no objects
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := api.List(ctx, list); err != nil {
		return nil, fmt.Errorf("cannot list the %s of the cluster (do without it with --force): %w", mapping.Resource.Resource, err)
	}
	var found []stranded
	for _, o := range list.Items {
		if strands(kind, &o) {
			found = append(found, stranded{kind.Kind, client.ObjectKeyFromObject(&o).String(), o.GetDeletionTimestamp() != nil})
		}
	}
	return found, nil
}
