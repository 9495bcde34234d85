// SPDX-License-Identifier: Apache-2.0

package checkup_test

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/sameseed"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
)

func TestMain(m *testing.M) { os.Exit(sameseed.Run(m)) }

// Objects of different scenes, of which fields are missing, never make a finding without evidence,
// and none about what was not read.
func TestHalfOfTheObjectsNeverLie(t *testing.T) {
	var docs []map[string]any
	all := scenes(t)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		for _, doc := range bytes.Split(all[file], []byte("---\n")) {
			object := map[string]any{}
			if err := yaml.Unmarshal(doc, &object); err != nil {
				t.Fatal(err)
			}
			docs = append(docs, object)
		}
	}
	kinds := []checkup.Kind{
		checkup.Nodes, checkup.Pods, checkup.Namespaces, checkup.Deployments, checkup.Definitions, checkup.ConfigMaps,
		checkup.ClusterQueues, checkup.Cohorts, checkup.Flavors, checkup.LocalQueues, checkup.Workloads, checkup.AppWrappers,
	}
	rapid.Check(t, func(r *rapid.T) {
		o := none()
		for range rapid.IntRange(0, 12).Draw(r, "objects") {
			doc := rapid.SampledFrom(docs).Draw(r, "doc")
			kind := doc["kind"]
			object := (&unstructured.Unstructured{Object: doc}).DeepCopy().Object
			thin(r, object)
			object["kind"] = kind
			data, err := yaml.Marshal(object)
			if err != nil {
				r.Fatal(err)
			}
			if err := add(&o, data, yaml.Unmarshal); err != nil {
				r.Fatal(err)
			}
		}
		for _, k := range rapid.SliceOfDistinct(rapid.SampledFrom(kinds), rapid.ID).Draw(r, "unread") {
			o.Unread[k] = "you may not"
		}
		report := checkup.Find(o)
		evident(r, report)
		for _, entry := range checkup.Catalogue {
			unread := slices.ContainsFunc(entry.Needs, func(k checkup.Kind) bool { return o.Unread[k] != "" })
			if unread && len(codes(report.Findings, entry.Code)) > 0 {
				r.Errorf("%s is found without what it needs", entry.Code)
			}
		}
	})
}

// thin removes some fields.
func thin(r *rapid.T, object map[string]any) {
	for _, field := range slices.Sorted(maps.Keys(object)) {
		switch value := object[field].(type) {
		case map[string]any:
			thin(r, value)
		case []any:
			for _, item := range value {
				if inner, ok := item.(map[string]any); ok {
					thin(r, inner)
				}
			}
		}
		if rapid.IntRange(0, 9).Draw(r, field) == 0 {
			delete(object, field)
		}
	}
}
