// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// removeTimeout limits the wait until namespaces and queues are empty.
const removeTimeout = 3 * time.Minute

// Remove uninstalls the release with all its objects, including retained ones. It keeps objects
// with the same names that have another owner. It returns no error if there is no release.
func Remove(ctx context.Context, r helmrelease.Release, kubeconfig string) error {
	config, err := access.Cluster{Kubeconfig: kubeconfig}.Helm(r.Namespace)
	if err != nil {
		return err
	}
	revisions, err := config.Releases.History(r.Name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the release %s: %w", r.Name, err)
	}
	rest, err := config.RESTClientGetter.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	api, err := client.New(rest, client.Options{})
	if err != nil {
		return fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	// Helm's record is deleted last, because it lists the objects that are still to be deleted.
	objects, err := helmrelease.Decode(manifests(revisions))
	if err != nil {
		return fmt.Errorf("cannot read what the release %s has made: %w", r.Name, err)
	}
	if err := removeObjects(ctx, api, r, objects, removeTimeout); err != nil {
		return err
	}
	if _, err := action.NewUninstall(config).Run(r.Name); err != nil {
		return fmt.Errorf("cannot uninstall the release %s: %w", r.Name, err)
	}
	return nil
}

// manifests joins the manifests of all revisions: Helm may retain objects that a later revision
// no longer has, and the release still owns them.
func manifests(revisions []*release.Release) string {
	var all []string
	for _, revision := range revisions {
		all = append(all, revision.Manifest)
	}
	return strings.Join(all, "\n---\n")
}

// removeObjects deletes the objects that the release owns, and waits until they are gone.
func removeObjects(ctx context.Context, api client.Client, r helmrelease.Release, objects []helmrelease.Object, timeout time.Duration, how ...client.DeleteOption) error {
	var left error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		left = nil
		for _, object := range objects {
			left = errors.Join(left, removeObject(ctx, api, r, object.Unstructured, how...))
		}
		return left == nil, nil
	})
	if err != nil {
		return fmt.Errorf("cannot remove what the release %s has made: %w", r.Name, errors.Join(left, ctx.Err()))
	}
	return nil
}

// removeObject returns nil once no object of this name is owned by the release.
func removeObject(ctx context.Context, api client.Client, r helmrelease.Release, object *unstructured.Unstructured, how ...client.DeleteOption) error {
	there := object.DeepCopy()
	err := api.Get(ctx, client.ObjectKeyFromObject(object), there)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && !r.Owns(there) {
		return nil
	}
	if err == nil && there.GetDeletionTimestamp() == nil {
		err = client.IgnoreNotFound(api.Delete(ctx, there, how...))
	}
	if err != nil {
		return err
	}
	if held := there.GetFinalizers(); len(held) > 0 {
		return fmt.Errorf("%s %s is still there, held by %s", there.GetKind(), there.GetName(), strings.Join(held, ", "))
	}
	return fmt.Errorf("%s %s is still there", there.GetKind(), there.GetName())
}
