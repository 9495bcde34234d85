// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Templates are read again only if what they say may be something else.
func TestTemplatesAreReadOnceForEachGeneration(t *testing.T) {
	const before, now = `{"example.com/gpu":16}`, `{"example.com/gpu":2}`
	for name, tc := range map[string]struct {
		born, change func(*v1beta2.AppWrapper)
		want         string
	}{
		"nothing has changed":          {want: before},
		"the phase has":                {change: func(aw *v1beta2.AppWrapper) { aw.Status.Phase = v1beta2.AppWrapperSucceeded }, want: before},
		"the spec has":                 {change: func(aw *v1beta2.AppWrapper) { aw.Generation++ }, want: now},
		"it is another of its name":    {change: func(aw *v1beta2.AppWrapper) { aw.UID = "other" }, want: now},
		"nobody counts generations":    {born: func(aw *v1beta2.AppWrapper) { aw.Generation = 0 }, want: now},
		"it has no UID":                {born: func(aw *v1beta2.AppWrapper) { aw.UID = "" }, want: now},
		"somebody writes what is kept": {change: func(aw *v1beta2.AppWrapper) { aw.Annotations = map[string]string{declaredDevicesAnnotation: "?"} }, want: before},
		"other pods are recorded":      {change: func(aw *v1beta2.AppWrapper) { *aw.Status.ComponentStatus[0].PodSets[0].Replicas = 4 }, want: `{"example.com/gpu":4}`},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInterner()
			slim := func(alter ...func(*v1beta2.AppWrapper)) *v1beta2.AppWrapper {
				aw := gpuJob()
				aw.UID, aw.Generation = "u", 3
				for _, alter := range alter {
					if alter != nil {
						alter(aw)
					}
				}
				if _, err := in.slimAppWrapper(aw); err != nil {
					t.Fatal(err)
				}
				return aw
			}
			first := slim(tc.born)
			second := slim(tc.born, tc.change, func(aw *v1beta2.AppWrapper) {
				raw := &aw.Spec.Components[0].Template.Raw
				*raw = bytes.Replace(*raw, []byte(`"example.com/gpu":"8"`), []byte(`"example.com/gpu":"1"`), 1)
			})
			if got := second.Annotations[declaredDevicesAnnotation]; got != tc.want {
				t.Errorf("%s are declared, want %s", got, tc.want)
			}
			if diff := cmp.Diff(first.Spec, second.Spec); diff != "" {
				t.Errorf("(-first +second)\n%s", diff)
			}
			if first.Annotations[declaredDevicesAnnotation] != before {
				t.Errorf("the first has become %v", first.Annotations)
			}
		})
	}
}
