// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/test/golden"
)

// collections are the samples that modules ship which this repository pins, and our own. pinnedBy is the folder whose
// go.mod does.
var collections = []struct{ name, pinnedBy, module, folder string }{
	{"kuberay", "../..", "github.com/ray-project/kuberay/ray-operator", "config/samples"},
	{"training-operator", "../..", "github.com/kubeflow/training-operator", "examples"},
	{"jobset", "../..", "sigs.k8s.io/jobset", "config/samples"},
	{"lws", "../..", "sigs.k8s.io/lws", "config/samples"},
	{"lws-docs", "../..", "sigs.k8s.io/lws", "docs/examples"},
	{"kueue", "../..", "sigs.k8s.io/kueue", "cmd/kueueviz/examples"},
	{"mpi-operator", "../../tools/artifacts/components/kueue", "github.com/kubeflow/mpi-operator", "examples"},
	{"kubernetes-docs", "../../tools/artifacts/components/kubernetes", "k8s.io/kubernetes", "test/fixtures/doc-yaml"},
	{"kubernetes-tests", "../../tools/artifacts/components/kubernetes", "k8s.io/kubernetes", "test/e2e/testing-manifests"},
	{"kubectl-tests", "../../tools/artifacts/components/kubernetes", "k8s.io/kubernetes", "hack/testdata"},
	{"samples", "", "", "../../samples"},
	{"e2e", "", "", "../../test/e2e/testdata"},
	{"generator", "", "", "../../tools/pytorchjob-generator/testdata"},
	{"pack", "", "", "../../tools/mlbatch/testdata/pack"},
}

// What others publish to be copied is refused only where it could not work: the golden file is the reviewed list.
func TestSamplesThatWorkAreNotRefused(t *testing.T) {
	for _, c := range collections {
		t.Run(c.name, func(t *testing.T) {
			root := filepath.Join(moduleFolder(t, c.pinnedBy, c.module), c.folder)
			objects, refused := 0, ""
			for _, file := range manifestsBelow(t, root) {
				for _, object := range objectsIn(t, filepath.Join(root, file)) {
					objects++
					for _, problem := range refusalsOf(t, object) {
						refused += fmt.Sprintf("%s %s %s:\n  %v\n", file, object.GetKind(), object.GetName(), problem)
					}
				}
			}
			golden.Compare(t, filepath.Join("testdata", "samples", c.name+".txt"), fmt.Appendf(nil, "%d objects of known kinds. These are refused:\n\n%s", objects, refused))
		})
	}
}

func moduleFolder(t *testing.T, pinnedBy, module string) string {
	t.Helper()
	if module == "" {
		return ""
	}
	out, err := exec.CommandContext(t.Context(), "go", "-C", pinnedBy, "mod", "download", "-json", module).Output() //nolint:gosec // The test says which.
	var source struct{ Dir string }
	if err := errors.Join(err, json.Unmarshal(out, &source)); err != nil {
		t.Fatalf("cannot download %s: %v", module, err)
	}
	return source.Dir
}

func manifestsBelow(t *testing.T, root string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(root, path); filepath.Ext(path) == ".yaml" || filepath.Ext(path) == ".yml" || filepath.Ext(path) == ".json" {
			files = append(files, name)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no manifests: %v", err)
	}
	return files
}

// variables are those of our own manifests.
var variables = strings.NewReplacer("$NAME", "name", "$IMAGE", "image", "$RAY", "ray")

// objectsIn has the objects of kinds that can be wrapped, AppWrappers unwrapped. Templates of Helm and the like are no
// YAML.
func objectsIn(t *testing.T, file string) (objects []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(variables.Replace(string(text)))
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) || err != nil {
			return objects
		}
		if object.GetKind() == v1beta2.AppWrapperKind {
			var aw v1beta2.AppWrapper
			if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &aw) == nil {
				objects = append(objects, Decode(&aw).Templates...)
			}
		} else if kinds.Knows(object.GroupVersionKind().GroupKind()) {
			objects = append(objects, object)
		}
	}
}

// refusalsOf wraps one object. One that makes no pods is beside a Job.
func refusalsOf(t *testing.T, object *unstructured.Unstructured) field.ErrorList {
	t.Helper()
	object.SetNamespace("")
	raw, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	aw := appWrapper(t, component(job))
	aw.Spec.Components = append(aw.Spec.Components, v1beta2.AppWrapperComponent{Template: runtime.RawExtension{Raw: raw}})
	if err := AddExtras(aw, Surroundings{}); err != nil {
		t.Fatal(err)
	}
	return append(ValidateCreate(aw, Limits{Components: 64, PodSets: 64}), Decode(aw).ValidateCounted(Surroundings{})...)
}
