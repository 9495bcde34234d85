// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAClusterIsRemovedWithItsRayJobInAQueue(t *testing.T) {
	rayJobs := For(schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayJob"})
	for name, row := range map[string]struct {
		spec map[string]any
		want any
	}{
		"a cluster of its own":                   {map[string]any{"rayClusterSpec": map[string]any{}}, true},
		"although its author says no":            {map[string]any{"shutdownAfterJobFinishes": false}, true},
		"a cluster of others is not its own":     {map[string]any{"clusterSelector": map[string]any{"ray.io/cluster": "shared"}}, nil},
		"a strategy of deletion excludes it":     {map[string]any{"deletionStrategy": map[string]any{"deletionRules": []any{}}}, nil},
		"an empty selector selects no cluster":   {map[string]any{"clusterSelector": map[string]any{}}, true},
		"a malformed selector is left to others": {map[string]any{"clusterSelector": "shared"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			rayJobs.PrepareForQueue(map[string]any{"spec": row.spec})
			if got := row.spec["shutdownAfterJobFinishes"]; got != row.want {
				t.Errorf("shutdownAfterJobFinishes is %v, not %v", got, row.want)
			}
		})
	}
	rayJobs.PrepareForQueue(map[string]any{}) // one without a spec is refused elsewhere
	For(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}).PrepareForQueue(map[string]any{"spec": map[string]any{}})
}
