// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
)

// seen is the observed state of a release's objects.
type seen struct {
	// invalid is why the release cannot be rendered.
	invalid string
	// missing is set if some object does not exist.
	missing                         bool
	taken, unknown, leaving, stored []preflight.Object
	// absent are namespaces that the release needs and does not create; unlabelled are those of teams without
	// their label.
	absent, unlabelled []string
}

// observe reads each object of the release.
func (d *delivery) observe(ctx context.Context, api access.API) error {
	for _, o := range d.objects {
		if err := d.observeObject(ctx, api, o); err != nil {
			return fmt.Errorf("cannot read the %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// observeNamespace records whether the namespace is being deleted: nothing can be created in it then.
func (d *delivery) observeNamespace(ctx context.Context, api access.API) error {
	there, err := api.CoreV1().Namespaces().Get(ctx, d.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the namespace %s: %w", d.Namespace, err)
	}
	if there.DeletionTimestamp != nil {
		d.seen.leaving = append(d.seen.leaving, preflight.Object{Kind: "Namespace", Name: d.Namespace})
	}
	return nil
}

// observeOtherNamespaces looks at the namespaces of objects that the release does not create.
func (d *delivery) observeOtherNamespaces(ctx context.Context, api access.API) error {
	others := d.otherNamespaces()
	for _, name := range slices.Sorted(maps.Keys(others)) {
		there, err := api.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		switch ofATeam := others[name]; {
		case apierrors.IsNotFound(err):
			d.seen.absent = append(d.seen.absent, name)
		case apierrors.IsForbidden(err):
		case err != nil:
			return fmt.Errorf("cannot read the namespace %s: %w", name, err)
		case there.DeletionTimestamp != nil:
			d.seen.leaving = append(d.seen.leaving, preflight.Object{Kind: "Namespace", Name: name})
		case ofATeam && there.Labels[teamLabel] != "true":
			d.seen.unlabelled = append(d.seen.unlabelled, name)
		}
	}
	return nil
}

// otherNamespaces returns the namespaces of objects that the release does not create, and for each whether a queue
// is in it.
func (d *delivery) otherNamespaces() map[string]bool {
	found := map[string]bool{}
	for _, o := range d.objects {
		if namespace := o.GetNamespace(); namespace != "" && namespace != d.Namespace {
			found[namespace] = found[namespace] || o.GetKind() == "LocalQueue"
		}
	}
	for _, o := range d.objects {
		if o.GetKind() == "Namespace" {
			delete(found, o.GetName())
		}
	}
	return found
}

// teamLabel is on the namespaces of teams.
const teamLabel = "mlbatch-team-namespace"

func (d *delivery) observeObject(ctx context.Context, api access.API, o helmrelease.Object) error {
	o.SetNamespace(d.NamespaceOf(api, o))
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(o.GroupVersionKind())
	err := api.Get(ctx, client.ObjectKeyFromObject(o), there)
	known := preflight.Object{Kind: o.GetKind(), Name: o.GetName(), Part: o.Part, Fixed: fixed(there, o.Unstructured)}
	switch {
	case meta.IsNoMatchError(err):
		d.seen.unknown, d.seen.missing = append(d.seen.unknown, known), true
		return nil
	case apierrors.IsNotFound(err):
		d.seen.missing = true
		return nil
	case apierrors.IsForbidden(err), needsConversion(err): // missing rights are a finding of their own
		return nil
	case err != nil:
		return err
	}
	if known.Owner = helmrelease.OwnerOf(there); known.Owner != (preflight.Owner{Name: d.Name, Namespace: d.Namespace}) {
		d.seen.taken = append(d.seen.taken, known)
	}
	if there.GetDeletionTimestamp() != nil {
		d.seen.leaving = append(d.seen.leaving, known)
	}
	if known.Versions = forgotten(there, o.Unstructured); len(known.Versions) > 0 {
		d.seen.stored = append(d.seen.stored, known)
	}
	return nil
}

// needsConversion reports whether an object exists but cannot be read until the platform is
// installed again.
func needsConversion(err error) bool {
	return err != nil && strings.Contains(err.Error(), "conversion webhook for ")
}

// fixed reports whether a PriorityClass differs from the wanted one in immutable fields.
func fixed(there, wanted *unstructured.Unstructured) bool {
	if wanted.GetKind() != "PriorityClass" || there.GetName() == "" {
		return false
	}
	for _, field := range []string{"value", "preemptionPolicy"} {
		if want, says := wanted.Object[field]; says && fmt.Sprint(there.Object[field]) != fmt.Sprint(want) {
			return true
		}
	}
	return false
}

// forgotten returns the stored versions of a CRD that the wanted CRD lacks: the API server
// would reject the update.
func forgotten(there, wanted *unstructured.Unstructured) []string {
	if wanted.GetKind() != helmrelease.CustomResourceDefinition {
		return nil
	}
	stored, _, _ := unstructured.NestedStringSlice(there.Object, "status", "storedVersions")
	versions, _, _ := unstructured.NestedSlice(wanted.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok {
			stored = slices.DeleteFunc(stored, func(s string) bool { return s == version["name"] })
		}
	}
	return stored
}
