// SPDX-License-Identifier: Apache-2.0

package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// removal is a release on its way out. Helm's record goes last, so that a removal that
// was killed, or has waited in vain, can be gone on with.
type removal struct {
	Release
	helm *action.Configuration
	// last is the newest revision; nil if there is none.
	last *release.Release
	// objects are all of it, those that stay among them.
	objects []object
}

func (r Release) toRemove(c Cluster, api api) (*removal, error) {
	helm, err := c.helm(r.Namespace)
	if err != nil {
		return nil, err
	}
	m := &removal{Release: r, helm: helm}
	m.last, err = helm.Releases.Last(r.Name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		m.last = nil
		return m, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the release %s in namespace %s: %w", r.Name, r.Namespace, err)
	}
	if err := r.refuseAnother(r.Name, m.last); err != nil { // our charts and releases have the same names
		return nil, err
	}
	if m.objects, err = decode(m.last.Manifest); err != nil {
		return nil, err
	}
	for _, o := range m.objects {
		o.SetNamespace(r.namespaceOf(api, o))
	}
	return m, nil
}

// begun is whether everything was told to go already.
func (m *removal) begun() bool { return m.last.Info.Status == release.StatusUninstalled }

// remove ends when there is nothing left that has to go.
func (m *removal) remove(ctx context.Context, api api, timeout time.Duration, progress Progress) error {
	goes := m.leaving()
	if !m.begun() {
		// Webhooks that nobody answers would keep the whole cluster from working.
		if err := m.removeObjects(ctx, api, slices.DeleteFunc(slices.Clone(goes), isNoWebhook), timeout); err != nil {
			return err
		}
		if err := m.begin(); err != nil {
			return err
		}
	}
	if err := m.removeObjects(ctx, api, goes, timeout); err != nil {
		return fmt.Errorf("the release %s is not gone to the end, run the command again to go on: %w", m.Name, err)
	}
	if err := m.dropConversions(ctx, api, progress); err != nil {
		return err
	}
	if _, err := action.NewUninstall(m.helm).Run(m.Name); err != nil { // no more than the record is left
		return fmt.Errorf("cannot remove Helm's record of the release %s, run the command again to go on: %w", m.Name, err)
	}
	return nil
}

// begin has Helm tell all objects to go, in its order. Why it could not Helm only logs.
func (m *removal) begin() error {
	var reasons []string
	m.helm.Log = func(format string, arguments ...any) {
		if strings.Contains(format, "Failed to delete") {
			reasons = append(reasons, fmt.Sprint(arguments...))
		}
	}
	u := action.NewUninstall(m.helm)
	u.KeepHistory, u.DeletionPropagation = true, "foreground"
	if _, err := u.Run(m.Name); err != nil {
		return fmt.Errorf("cannot uninstall the release %s, run the command again to go on: %w %s", m.Name, err, strings.Join(reasons, "; "))
	}
	return nil
}

// leaving are the objects that Helm is not told to keep.
func (m *removal) leaving() []object {
	return slices.DeleteFunc(slices.Clone(m.objects), func(o object) bool {
		return o.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy
	})
}

func isNoWebhook(o object) bool { return !strings.HasSuffix(o.GetKind(), "WebhookConfiguration") }

// mayGo asks for the rights before anything is removed.
func (m *removal) mayGo(ctx context.Context, api api) error {
	if m.last == nil {
		return nil
	}
	everything := authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}
	if may, err := allowed(ctx, api, everything); err != nil || may {
		return err
	}
	needs := []authorizationv1.ResourceAttributes{
		{Verb: "update", Resource: "secrets", Namespace: m.Namespace}, {Verb: "delete", Resource: "secrets", Namespace: m.Namespace},
	}
	for _, o := range m.leaving() {
		gvk := o.GroupVersionKind()
		if mapping, err := api.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			needs = append(needs, authorizationv1.ResourceAttributes{Verb: "delete", Group: gvk.Group, Resource: mapping.Resource.Resource, Namespace: o.GetNamespace()})
		}
	}
	missing, err := refused(ctx, api, needs)
	if err != nil || len(missing) == 0 {
		return err
	}
	return fmt.Errorf("you may not %s here: uninstall with the rights of the cluster's administrator (--kubeconfig, --context)", strings.Join(missing, ", "))
}

// refused are those rights of the given ones that the user has not, in words.
func refused(ctx context.Context, api api, needs []authorizationv1.ResourceAttributes) ([]string, error) {
	var missing []string
	asked := map[authorizationv1.ResourceAttributes]bool{}
	for _, a := range needs {
		if asked[a] {
			continue
		}
		asked[a] = true
		may, err := allowed(ctx, api, a)
		if err != nil {
			return nil, err
		}
		if right := a.Verb + " " + a.Resource; !may && !slices.Contains(missing, right) {
			missing = append(missing, right)
		}
	}
	return missing, nil
}
