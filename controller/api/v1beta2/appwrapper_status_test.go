// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestPodSetsAreAListEvenWhereThereAreNone(t *testing.T) {
	status := AppWrapperStatus{ComponentStatus: []AppWrapperComponentStatus{{Kind: "Service", APIVersion: "v1"}}}
	want := map[string]any{"componentStatus": []any{map[string]any{
		"name": "", "kind": "Service", "apiVersion": "v1", "podSets": []any{},
	}}}

	got, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("as an unstructured object (-want +got):\n%s", diff)
	}

	text, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	var decoded map[string]any
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, decoded); diff != "" {
		t.Errorf("as JSON (-want +got):\n%s", diff)
	}
}
