// SPDX-License-Identifier: Apache-2.0

package variation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const document = `
components:
  schemas:
    dev.Thing:
      x-kubernetes-group-version-kind: [{group: example.dev, version: v1, kind: Thing}]
      properties:
        spec: {allOf: [{$ref: "#/components/schemas/dev.ThingSpec"}]}
    dev.ThingSpec:
      type: object
      properties:
        name: {type: string}
        suspend: {type: boolean}
        mode: {type: string, enum: [A, B]}
        policy: {type: object, properties: {scale: {type: object, properties: {max: {type: integer}}}}}
        template:
          type: object
          properties:
            spec: {type: object, properties: {containers: {type: array}, hostNetwork: {type: boolean}}}
        groups: {type: array, items: {type: object, properties: {replicas: {type: integer}}}}
        roles: {type: object, additionalProperties: {type: object, properties: {replicas: {type: integer}}}}
`

func thing(t *testing.T) (Schemas, map[string]any, map[string]any) {
	t.Helper()
	all, spec := Schemas{}, map[string]any{}
	if err := yaml.Unmarshal([]byte(document), &all); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte("{groups: [{}, {replicas: 1}], roles: {Worker: {replicas: 1}}}"), &spec); err != nil {
		t.Fatal(err)
	}
	schema, err := all.Of("example.dev", "v1", "Thing")
	if err != nil {
		t.Fatal(err)
	}
	return all, schema, spec
}

func TestPlacesAreWhereACountCanBeDecided(t *testing.T) {
	all, schema, spec := thing(t)
	var found []string
	for _, p := range all.places(spec, schema, nil, 0) {
		found = append(found, p.String())
	}
	want := []string{"groups.0.replicas", "groups.1.replicas", "mode", "policy.scale.max", "roles.Worker.replicas", "suspend"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAVariationIsWhatItSays(t *testing.T) {
	changed := map[string]bool{}
	for seed := range uint64(200) {
		all, schema, spec := thing(t)
		for _, change := range all.Vary(spec, schema, rand.New(rand.NewPCG(seed, 0))) {
			path, _, _ := strings.Cut(change, "=")
			changed[path] = true
		}
		if fmt.Sprint(spec["groups"]) == "" || len(spec["groups"].([]any)) != 2 {
			t.Errorf("seed %d: the groups are %v", seed, spec["groups"])
		}
	}
	if len(changed) != 6 {
		t.Errorf("200 variations change only %v", changed)
	}
}

func TestSetCreatesWhatIsMissing(t *testing.T) {
	_, _, spec := thing(t)
	Set(spec, []string{"policy", "scale", "max"}, int64(3))
	Set(spec, []string{"groups", "0", "replicas"}, int64(2))
	Set(spec, []string{"groups", "2", "replicas"}, int64(7))
	policy, groups := spec["policy"], spec["groups"]
	if fmt.Sprint(policy) != "map[scale:map[max:3]]" || fmt.Sprint(groups) != "[map[replicas:2] map[replicas:1] map[replicas:7]]" {
		t.Errorf("policy is %v, groups are %v", policy, groups)
	}
}

func TestAtFindsWhatSetHasWritten(t *testing.T) {
	_, _, spec := thing(t)
	Set(spec, []string{"groups", "1", "size", "max"}, int64(3))
	for path, want := range map[string]any{
		"groups.1.size.max": int64(3), "groups.1.size.max.more": nil, "groups.9": nil, "groups.-1": nil, "groups.x": nil, "none.such": nil,
	} {
		if got := At(spec, strings.Split(path, ".")); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

func TestAKindWithoutASchemaIsNamed(t *testing.T) {
	if _, err := (Schemas{}).Of("example.dev", "v1", "Thing"); err == nil || !strings.Contains(err.Error(), "example.dev/v1 Thing") {
		t.Errorf("got %v", err)
	}
}
