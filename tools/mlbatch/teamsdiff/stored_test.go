// SPDX-License-Identifier: Apache-2.0

package teamsdiff_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/tools/mlbatch/teamsdiff"
)

// What the API server adds to queues is no difference: it has the defaults of the pinned Kueue.
func TestDefaultsOfTheAPIServerAreNoDifference(t *testing.T) {
	schemas := kueueSchemas(t)
	examples, err := filepath.Glob("../../../setup/teams/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatal("there are no examples: ", err)
	}
	for _, example := range examples {
		text, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		manifests := render(t, text)
		var stored []string
		added := 0
		for _, document := range strings.Split(strings.Join(manifests, "\n---\n"), "\n---\n") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			before, _ := yaml.Marshal(object)
			if kind, _ := object["kind"].(string); schemas[kind] != nil {
				defaulting.Default(object, schemas[kind])
			}
			after, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if string(before) != string(after) {
				added++
			}
			stored = append(stored, string(after))
		}
		if r := teamsdiff.Compare(objects(t, stored), objects(t, manifests)); r.Found() || added < 2 {
			t.Errorf("%s: got %+v after %d objects got defaults", example, r, added)
		}
	}
}

// kueueSchemas are the schemas of the pinned Kueue, by kind.
func kueueSchemas(t *testing.T) map[string]*schema.Structural {
	t.Helper()
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue").Output()
	if err != nil {
		t.Fatal("cannot find Kueue: ", err)
	}
	all := map[string]*schema.Structural{}
	for _, resource := range []string{"clusterqueues", "localqueues", "cohorts", "resourceflavors"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "config/components/crd/bases/kueue.x-k8s.io_"+resource+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		for _, version := range crd.Spec.Versions {
			if version.Name != "v1beta2" {
				continue
			}
			var internal apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				t.Fatal(err)
			}
			if all[crd.Spec.Names.Kind], err = schema.NewStructural(&internal); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}
