// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
)

// DropConversions removes the conversion webhook from CRDs whose part was removed: without
// the operator, reading any version but the stored one would fail. The next installation of
// the part restores the webhook.
func (r Release) DropConversions(ctx context.Context, api access.API, wanted []Object, progress Progress) error {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: CustomResourceDefinition + "List"})
	if err := api.List(ctx, all); err != nil {
		return fmt.Errorf("cannot list the CRDs that the release %s leaves behind, run the command again to resume: %w", r.Name, err)
	}
	for _, d := range all.Items {
		stays := slices.ContainsFunc(wanted, func(o Object) bool { return o.GetKind() == CustomResourceDefinition && o.GetName() == d.Name })
		if stays || !r.Owns(&d) {
			continue
		}
		if err := r.dropConversion(ctx, api, d.Name, progress); err != nil {
			return fmt.Errorf("cannot remove the conversion webhook from %s, run the command again to resume: %w", d.Name, err)
		}
	}
	return nil
}

func (r Release) dropConversion(ctx context.Context, api access.API, name string, progress Progress) error {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: CustomResourceDefinition})
	if err := api.Get(ctx, client.ObjectKey{Name: name}, there); err != nil {
		return client.IgnoreNotFound(err)
	}
	if gone, err := convertedByNobody(ctx, api, there); err != nil || !gone {
		return err
	}
	if stored, _, _ := unstructured.NestedStringSlice(there.Object, "status", "storedVersions"); !slices.Equal(stored, []string{storageVersion(there)}) {
		fmt.Fprintf(progress, "warning: %s may have objects stored as %q, which cannot be read until its part is installed again\n", name, stored)
		return nil
	}
	if err := unstructured.SetNestedMap(there.Object, map[string]any{"strategy": "None"}, "spec", "conversion"); err != nil {
		return err
	}
	return api.Update(ctx, there)
}

// convertedByNobody reports whether the Service of a CRD's conversion webhook is missing. The
// Service exists if another operator has adopted the CRD.
func convertedByNobody(ctx context.Context, api access.API, definition *unstructured.Unstructured) (bool, error) {
	field := func(name string) string {
		value, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "webhook", "clientConfig", "service", name)
		return value
	}
	if field("name") == "" {
		return false, nil
	}
	_, err := api.CoreV1().Services(field("namespace")).Get(ctx, field("name"), metav1.GetOptions{})
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

func storageVersion(definition *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["storage"] == true {
			name, _ := version["name"].(string)
			return name
		}
	}
	return ""
}

// AddConversionRights adds the rights that DropConversions needs.
func AddConversionRights(rights *access.Rights, objects []Object) {
	if len(DefinedKinds(objects)) > 0 {
		rights.Add("apiextensions.k8s.io", "customresourcedefinitions", "", "get", "list", "update")
	}
}
