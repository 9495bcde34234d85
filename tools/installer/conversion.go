// SPDX-License-Identifier: Apache-2.0

package installer

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dropConversions has kinds that stay do without the release's conversion webhook, which
// is gone: with it each read in another version than the stored one would fail. The next
// installation puts it back.
func (m *removal) dropConversions(ctx context.Context, api api, progress Progress) error {
	for _, o := range m.objects {
		if o.GetKind() != customResourceDefinition || !convertsByWebhook(o.Unstructured) {
			continue
		}
		if err := m.dropConversion(ctx, api, o, progress); err != nil {
			return fmt.Errorf("cannot take the conversion webhook from %s, run the command again to go on: %w", o.GetName(), err)
		}
	}
	return nil
}

func (m *removal) dropConversion(ctx context.Context, api api, o object, progress Progress) error {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(o.GroupVersionKind())
	if err := api.Get(ctx, client.ObjectKeyFromObject(o), there); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !m.owns(there) || !convertsByWebhook(there) {
		return nil
	}
	if stored, _, _ := unstructured.NestedStringSlice(there.Object, "status", "storedVersions"); !slices.Equal(stored, []string{storageVersion(there)}) {
		fmt.Fprintf(progress, "warning: %s may have objects stored as %q, which nobody can read until the platform is back\n", o.GetName(), stored)
		return nil
	}
	if err := unstructured.SetNestedMap(there.Object, map[string]any{"strategy": "None"}, "spec", "conversion"); err != nil {
		return err
	}
	return api.Update(ctx, there)
}

func convertsByWebhook(definition *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "strategy")
	return strategy == "Webhook"
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
