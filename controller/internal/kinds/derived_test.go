// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/golden"
)

// The file has, of each resource, the names that are made of its own, what suspends it, what else keeps it from making
// pods, and the volumes that its controller adds.
func TestKindsKnowWhatIsNamedAfterAResourceAndWhatSuspendsIt(t *testing.T) {
	golden.Pairs(t, "testdata/names", func(t *testing.T, in []byte) []byte {
		var resources map[string]map[string]any
		if err := yaml.UnmarshalStrict(in, &resources); err != nil {
			t.Fatal(err)
		}
		found := map[string]any{}
		for sentence, content := range resources {
			object := &unstructured.Unstructured{Object: content}
			names := map[string]string{}
			for _, d := range For(object.GroupVersionKind()).Derived(object) {
				names["NAME"+d.Suffix] = [...]string{LabelValue: "label", HostName: "host", ServiceName: "service"}[d.Rule] + ": " + d.Of
			}
			kind := For(object.GroupVersionKind())
			found[sentence] = map[string]any{"names": names, "suspended": kind.Suspended(object)}
			if faults := kind.Faults(object); len(faults) > 0 {
				found[sentence].(map[string]any)["faults"] = faults
			}
			if volumes := kind.AddedVolumes(object); len(volumes) > 0 {
				found[sentence].(map[string]any)["volumes"] = volumes
			}
		}
		out, err := yaml.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		return out
	})
}
