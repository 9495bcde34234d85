// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// valuesSchema has the fields of a JSON schema that this test reads.
type valuesSchema struct {
	Properties           map[string]valuesSchema `json:"properties"`
	AdditionalProperties json.RawMessage         `json:"additionalProperties"`
	Items                *valuesSchema           `json:"items"`
}

// The chart's value config is the configuration file, so the chart's schema must have exactly
// the keys of a file.
func TestTheSchemaOfTheChartHasTheKeysOfAFile(t *testing.T) {
	data, err := os.ReadFile("../../../charts/appwrapper/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var root valuesSchema
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	got, want := keysOf(t, root.Properties["config"], ""), keys(reflect.TypeFor[Config](), "")
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values.schema.json of charts/appwrapper (-file +schema)\n%s", diff)
	}
}

// keysOf does for a schema what keys does for a type.
func keysOf(t *testing.T, s valuesSchema, path string) []string {
	t.Helper()
	var all []string
	for name, property := range s.Properties {
		at := name
		if path != "" {
			at = path + "." + name
		}
		all = append(append(all, at), keysOf(t, property, at)...)
	}
	if s.Items != nil {
		all = append(all, keysOf(t, *s.Items, path+"[]")...)
	}
	if text := string(s.AdditionalProperties); text != "" && text != "false" {
		var any valuesSchema
		if err := json.Unmarshal(s.AdditionalProperties, &any); err != nil {
			t.Fatal(err)
		}
		all = append(all, keysOf(t, any, path+".*")...)
	}
	if len(s.Properties) > 0 && string(s.AdditionalProperties) != "false" {
		t.Errorf("%s allows unknown keys", path)
	}
	return all
}
