// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// removal uninstalls one release. It deletes Helm's record last, so that an interrupted
// removal can be resumed.
type removal struct {
	helmrelease.Release
	helmrelease.History
	// objects are all objects of the release, including retained ones.
	objects []helmrelease.Object
}

func newRemoval(r helmrelease.Release, c access.Cluster, api access.API) (*removal, error) {
	m := &removal{Release: r}
	var err error
	if m.History, err = r.ReadHistory(c); err != nil || m.Last == nil {
		return m, err
	}
	if err := r.CheckChart(r.Name, m.Last); err != nil { // our charts and releases have the same names
		return nil, err
	}
	if m.objects, err = helmrelease.Decode(m.Last.Manifest); err != nil {
		return nil, err
	}
	for _, o := range m.objects {
		o.SetNamespace(r.NamespaceOf(api, o))
	}
	return m, nil
}

// remove deletes the objects that are not retained, waits until they are gone, and then
// deletes Helm's record.
func (m *removal) remove(ctx context.Context, api access.API, timeout time.Duration, progress helmrelease.Progress) error {
	goes := m.leaving()
	if m.Present() {
		// Our controllers go first, with their pods: nothing is started for an author whose rights no webhook has checked.
		ours := slices.DeleteFunc(slices.Clone(goes), isNoControllerOfOurs)
		if err := removeObjects(ctx, api, m.Release, ours, timeout, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			return err
		}
		// Then webhooks, before their Services: they would block the whole cluster.
		if err := removeObjects(ctx, api, m.Release, slices.DeleteFunc(slices.Clone(goes), isNoWebhook), timeout); err != nil {
			return err
		}
		if err := m.begin(); err != nil {
			return err
		}
	}
	if err := removeObjects(ctx, api, m.Release, goes, timeout); err != nil {
		return fmt.Errorf("the release %s is not completely removed, run the command again to resume: %w", m.Name, err)
	}
	if err := m.DropConversions(ctx, api, nil, progress); err != nil {
		return err
	}
	if _, err := action.NewUninstall(m.Helm).Run(m.Name); err != nil { // only the record is left
		return fmt.Errorf("cannot remove Helm's record of the release %s, run the command again to resume: %w", m.Name, err)
	}
	return nil
}

// begin lets Helm delete the objects in its own order. Helm only logs why an object could not be deleted.
func (m *removal) begin() error {
	var reasons []string
	m.Helm.Log = func(format string, arguments ...any) {
		if strings.Contains(format, "Failed to delete") {
			reasons = append(reasons, fmt.Sprint(arguments...))
		}
	}
	u := action.NewUninstall(m.Helm)
	u.KeepHistory, u.DeletionPropagation = true, "foreground"
	if _, err := u.Run(m.Name); err != nil {
		return fmt.Errorf("cannot uninstall the release %s, run the command again to resume: %w %s", m.Name, err, strings.Join(reasons, "; "))
	}
	return nil
}

// leaving returns the objects without the annotation that tells Helm to keep them.
func (m *removal) leaving() []helmrelease.Object {
	return slices.DeleteFunc(slices.Clone(m.objects), func(o helmrelease.Object) bool {
		return o.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy
	})
}

func isNoControllerOfOurs(o helmrelease.Object) bool {
	part, is := parts.Of(o.GetName())
	return o.GetKind() != "Deployment" || !is || !part.Own
}

func isNoWebhook(o helmrelease.Object) bool {
	return !strings.HasSuffix(o.GetKind(), "WebhookConfiguration")
}

// rights returns the rights that uninstalling the release needs.
func (m *removal) rights(api access.API) access.Rights {
	var r access.Rights
	r.Add("", "secrets", m.Namespace, "update", "delete")
	helmrelease.AddConversionRights(&r, m.objects)
	for _, o := range m.leaving() {
		r.AddFor(api, o, "get", "delete")
	}
	return r
}

// mayGo checks that the user has the rights, and that no other command is installing the release,
// unless it is known to have been killed.
func (m *removal) mayGo(ctx context.Context, api access.API, killed bool) error {
	if m.Last == nil {
		return nil
	}
	missing, err := m.rights(api).Denied(ctx, api)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return errors.New(preflight.Denied(missing...))
	}
	return helmrelease.CheckIdle(m.Last, killed)
}
