// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/recording"
	"github.com/mlbatch/mlbatch/test/sameseed"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

func TestMain(m *testing.M) { os.Exit(sameseed.Run(m)) }

// A scene of which fields are missing, among objects of other scenes, never makes a cause without evidence.
func TestHalfOfTheObjectsNeverLie(t *testing.T) {
	files, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var docs []map[string]any
	var scenes [][]map[string]any
	for _, file := range files {
		in, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var scene []map[string]any
		for _, doc := range bytes.Split(in, []byte("---\n")) {
			object := map[string]any{}
			if err := yaml.Unmarshal(doc, &object); err != nil {
				t.Fatal(err)
			}
			scene = append(scene, object)
		}
		docs, scenes = append(docs, scene...), append(scenes, scene)
	}
	rapid.Check(t, func(r *rapid.T) {
		o := explain.Objects{Now: now}
		drawn := slices.Clone(rapid.SampledFrom(scenes).Draw(r, "scene"))
		for range rapid.IntRange(0, 3).Draw(r, "objects") {
			drawn = append(drawn, rapid.SampledFrom(docs).Draw(r, "doc"))
		}
		for _, doc := range drawn {
			kind := doc["kind"]
			object := (&unstructured.Unstructured{Object: doc}).DeepCopy().Object
			thin(r, object)
			object["kind"] = kind
			data, err := yaml.Marshal(object)
			if err != nil {
				r.Fatal(err)
			}
			if err := recording.Add(&o, data, yaml.Unmarshal); err != nil {
				r.Fatal(err)
			}
		}
		e := explain.Explain(o)
		evident(r, o, e)
		_ = explain.Text(e, now)
	})
}

// thin removes one field in eight, at any depth, and one item of a list in eight.
func thin(r *rapid.T, object map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := object[key]
		if rapid.IntRange(0, 7).Draw(r, key) == 0 {
			delete(object, key)
			continue
		}
		switch v := value.(type) {
		case map[string]any:
			thin(r, v)
		case []any:
			for _, item := range v {
				if m, is := item.(map[string]any); is {
					thin(r, m)
				}
			}
		}
	}
}
