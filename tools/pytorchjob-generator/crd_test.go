// SPDX-License-Identifier: Apache-2.0

package generator_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// crds are the CRDs of the rendered kinds: the kind, the module, the file.
var crds = map[string][2]string{
	"AppWrapper": {"github.com/mlbatch/mlbatch", "charts/appwrapper/files/crds/workload.codeflare.dev_appwrappers.yaml"},
	"PyTorchJob": {"github.com/kubeflow/training-operator", "manifests/base/crds/kubeflow.org_pytorchjobs.yaml"},
	"JobSet":     {"sigs.k8s.io/jobset", "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"},
	"PodGroup":   {"sigs.k8s.io/scheduler-plugins", "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml"},
}

// definition is the schema with which an API server validates objects of a kind.
type definition struct {
	validator  validation.SchemaValidator
	structural *schema.Structural
}

var definitions = sync.OnceValues(func() (map[string]definition, error) {
	all := map[string]definition{}
	for kind, at := range crds {
		folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", at[0]).Output()
		if err != nil {
			return nil, fmt.Errorf("cannot find module %s: %w", at[0], err)
		}
		if all[kind], err = readDefinition(filepath.Join(strings.TrimSpace(string(folder)), at[1])); err != nil {
			return nil, err
		}
	}
	return all, nil
})

func readDefinition(file string) (definition, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return definition{}, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return definition{}, err
	}
	var internal apiextensions.JSONSchemaProps
	latest := crd.Spec.Versions[len(crd.Spec.Versions)-1].Schema.OpenAPIV3Schema
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(latest, &internal, nil); err != nil {
		return definition{}, err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return definition{}, err
	}
	structural, err := schema.NewStructural(&internal)
	return definition{validator, structural}, err
}

// checkShape fails the test if the API server would refuse the object or drop a field.
func checkShape(t failer, object *unstructured.Unstructured) {
	t.Helper()
	all, err := definitions()
	if err != nil {
		t.Fatalf("there are no definitions: %v", err)
	}
	d, known := all[object.GetKind()]
	if !known {
		t.Fatalf("nothing defines %s", object.GetKind())
	}
	problems := validation.ValidateCustomResource(nil, object.Object, d.validator)
	problems = append(problems, listtype.ValidateListSetsAndMaps(nil, d.structural, object.Object)...)
	if len(problems) > 0 {
		t.Fatalf("the API server refuses %s: %v", object.GetKind(), problems.ToAggregate())
	}
	options := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	if lost := pruning.PruneWithOptions(object.DeepCopy().Object, d.structural, true, options); len(lost) > 0 {
		t.Fatalf("%s has fields that nobody knows: %q", object.GetKind(), lost)
	}
}

// failer is a test or one round of a property test.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
}

var _ failer = (*testing.T)(nil)
