// SPDX-License-Identifier: Apache-2.0

package installer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/storage/driver"
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
	if err := u.check(ctx, api); err != nil {
		return nil, err
	}
	fmt.Fprintln(u.Progress, "[2/2] removing releases")
	releases := []Release{u.Platform}
	if u.Teams != nil {
		releases = []Release{*u.Teams, u.Platform}
	}
	var done []Outcome
	for _, r := range releases {
		outcome, err := u.remove(ctx, r)
		if err != nil {
			return done, err
		}
		done = append(done, outcome)
	}
	return done, nil
}

func (u Uninstaller) remove(ctx context.Context, r Release) (Outcome, error) {
	outcome := Outcome{Release: r.Name, Namespace: r.Namespace, Done: "absent"}
	helm, err := u.Cluster.helm(r.Namespace)
	if err != nil {
		return outcome, err
	}
	last, err := helm.Releases.Last(r.Name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return outcome, nil
	}
	if err != nil {
		return outcome, fmt.Errorf("cannot read the release %s: %w", r.Name, err)
	}
	removal := action.NewUninstall(helm)
	removal.Wait, removal.Timeout, removal.DeletionPropagation = true, u.Timeout, "foreground"
	if _, err := removal.Run(r.Name); err != nil {
		return outcome, fmt.Errorf("cannot uninstall the release %s to the end (run the command again to go on): %w", r.Name, err)
	}
	outcome.Version, outcome.Done = last.Chart.Metadata.Version, "uninstalled"
	return outcome, ctx.Err()
}

// check refuses to leave behind what nobody could remove.
func (u Uninstaller) check(ctx context.Context, api api) error {
	helm, err := u.Cluster.helm(u.Platform.Namespace)
	if err != nil {
		return err
	}
	last, err := helm.Releases.Last(u.Platform.Name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the release %s: %w", u.Platform.Name, err)
	}
	objects, err := decode(last.Manifest)
	if err != nil {
		return err
	}
	var all []stranded
	for kind := range defined(objects) {
		some, err := strandedOf(ctx, api, kind)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	sentence := strand(all)
	if sentence == "" {
		return nil
	}
	if u.Force {
		fmt.Fprintln(u.Progress, "warning:", sentence)
		return nil
	}
	return fmt.Errorf("%s: end that work first, with kubectl delete appwrappers --all --all-namespaces and the like of it, or leave it with --force", sentence)
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
		return nil, fmt.Errorf("cannot list the %s of the cluster: %w", mapping.Resource.Resource, err)
	}
	var found []stranded
	for _, o := range list.Items {
		if strands(kind, &o) {
			found = append(found, stranded{kind.Kind, client.ObjectKeyFromObject(&o).String()})
		}
	}
	return found, nil
}
