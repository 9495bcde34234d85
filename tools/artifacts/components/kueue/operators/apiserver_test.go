// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// definition is a CRD as an API server uses it.
type definition struct {
	structure *structural.Structural
	validator crdvalidation.SchemaValidator
}

// modules have the CRDs.
var modules = map[string]string{
	"sigs.k8s.io/jobset":                          "config/components/crd/bases/*.yaml",
	"sigs.k8s.io/lws":                             "config/crd/bases/leaderworkerset*.yaml",
	"github.com/ray-project/kuberay/ray-operator": "config/crd/bases/*.yaml",
	"github.com/kubeflow/training-operator":       "manifests/base/crds/kubeflow*.yaml",
}

// definitions are those of the operators.
func definitions(t *testing.T) map[schema.GroupVersionKind]definition {
	t.Helper()
	all := map[schema.GroupVersionKind]definition{}
	for module, pattern := range modules {
		folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			t.Fatalf("cannot find %s: %v", module, err)
		}
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(folder)), pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no CRDs: %v", module, err)
		}
		for _, file := range files {
			define(t, file, all)
		}
	}
	return all
}

func define(t *testing.T, file string, all map[schema.GroupVersionKind]definition) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, crd)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range crd.Spec.Versions {
		internal := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, internal, nil); err != nil {
			t.Fatal(err)
		}
		structure, err := structural.NewStructural(internal)
		if err != nil {
			t.Fatal(err)
		}
		validator, _, err := crdvalidation.NewSchemaValidator(internal)
		if err != nil {
			t.Fatal(err)
		}
		all[schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}] = definition{structure, validator}
	}
}

// apiServer does what an API server does with new objects.
type apiServer struct {
	definitions map[schema.GroupVersionKind]definition
	webhooks    *http.ServeMux
}

// create fills in defaults, and refuses what is not valid.
func (a apiServer) create(object map[string]any) (*unstructured.Unstructured, error) {
	sent := &unstructured.Unstructured{Object: object}
	sent.SetNamespace("blue")
	sent.SetUID("the-object")
	defined, found := a.definitions[sent.GroupVersionKind()]
	if !found {
		return builtIn(sent)
	}
	defaulting.Default(sent.Object, defined.structure)
	defaulting.PruneNonNullableNullsWithoutDefaults(sent.Object, defined.structure)
	pruning.Prune(sent.Object, defined.structure, true)
	if err := a.call("mutate", sent); err != nil {
		return nil, err
	}
	if problems := crdvalidation.ValidateCustomResource(nil, sent.Object, defined.validator); len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	if problems := listtype.ValidateListSetsAndMaps(nil, defined.structure, sent.Object); len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	return sent, a.call("validate", sent)
}

// call calls the operator's webhook, if it has one.
func (a apiServer) call(verb string, object *unstructured.Unstructured) error {
	gvk := object.GroupVersionKind()
	path := "/" + verb + "-" + strings.ReplaceAll(gvk.Group, ".", "-") + "-" + gvk.Version + "-" + strings.ToLower(gvk.Kind)
	raw, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	review, err := json.Marshal(admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID: "u", Operation: admissionv1.Create, Namespace: "blue", Object: runtime.RawExtension{Raw: raw},
	}})
	if err != nil {
		return err
	}
	request := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(review))
	request.Header.Set("Content-Type", "application/json")
	if _, pattern := a.webhooks.Handler(request); pattern == "" {
		return nil
	}
	answer, answered := httptest.NewRecorder(), admissionv1.AdmissionReview{}
	a.webhooks.ServeHTTP(answer, request)
	if err := json.Unmarshal(answer.Body.Bytes(), &answered); err != nil {
		return fmt.Errorf("%s says %q: %w", path, answer.Body.String(), err)
	}
	if !answered.Response.Allowed {
		return errors.New(answered.Response.Result.Message)
	}
	if len(answered.Response.Patch) == 0 {
		return nil
	}
	patch, err := jsonpatch.DecodePatch(answered.Response.Patch)
	if err == nil {
		raw, err = patch.Apply(raw)
	}
	if err != nil {
		return err
	}
	return object.UnmarshalJSON(raw)
}

// builtIn is an object of a kind that the API server itself knows.
func builtIn(sent *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	raw, err := sent.MarshalJSON()
	if err != nil {
		return nil, err
	}
	typed, err := legacyscheme.Scheme.New(sent.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, typed); err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(typed)
	internal, err := legacyscheme.Scheme.ConvertToVersion(typed, runtime.InternalGroupVersioner)
	if err != nil {
		return nil, err
	}
	if problems := validate(internal); len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	stored, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	return &unstructured.Unstructured{Object: stored}, err
}

func validate(internal runtime.Object) field.ErrorList {
	switch o := internal.(type) {
	case *batch.Job:
		return withoutSelector(batchvalidation.ValidateJob(o, batchvalidation.JobValidationOptions{}))
	case *apps.Deployment:
		return appsvalidation.ValidateDeployment(o, corevalidation.PodValidationOptions{})
	case *apps.StatefulSet:
		return appsvalidation.ValidateStatefulSet(o, corevalidation.PodValidationOptions{})
	case *apps.ReplicaSet:
		return appsvalidation.ValidateReplicaSet(o, corevalidation.PodValidationOptions{})
	}
	return field.ErrorList{field.InternalError(nil, fmt.Errorf("%T has no validation here", internal))}
}

// withoutSelector: the API server writes the selector of a Job and its labels before it validates.
func withoutSelector(problems field.ErrorList) field.ErrorList {
	var left field.ErrorList
	for _, p := range problems {
		if p.Field != "spec.selector" && !strings.HasPrefix(p.Field, "spec.template.metadata.labels") {
			left = append(left, p)
		}
	}
	return left
}
