// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/kube"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
)

// removal is a release on its way out. Helm's record goes last, so that a removal that
// was killed, or has waited in vain, can be gone on with.
type removal struct {
	Release
	memory
	// objects are all of it, those that stay among them.
	objects []object
}

func (r Release) toRemove(c Cluster, api api) (*removal, error) {
	m := &removal{Release: r}
	var err error
	if m.memory, err = r.recall(c); err != nil || m.last == nil {
		return m, err
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

// remove ends when there is nothing left that has to go.
func (m *removal) remove(ctx context.Context, api api, timeout time.Duration, progress Progress) error {
	goes := m.leaving()
	if m.present() {
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
	if err := m.dropConversions(ctx, api, nil, progress); err != nil {
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

// mayGo asks for the rights before anything is removed, and whether somebody is just installing it.
func (m *removal) mayGo(ctx context.Context, api api) error {
	if m.last == nil {
		return nil
	}
	missing, err := m.rights(api).denied(ctx, api)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return errors.New(preflight.Denied(missing...))
	}
	return seeNobodyAtWork(ctx, m.helm.Releases, m.last)
}
