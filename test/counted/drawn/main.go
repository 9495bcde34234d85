// SPDX-License-Identifier: Apache-2.0

// Command drawn writes objects of all kinds that make pods of templates, with each number at its edges and with random
// values in their fields, and what admission says of each in an AppWrapper.
// tools/artifacts/components/kueue/operators compares it with the operators, whose libraries do not fit the
// controller's.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/counted/variation"
)

// kind is drawn from a manifest that runs, and from a CRD of a module or from the fields that matter here.
type kind struct{ manifest, module, crd, fields string }

const scaled = "{properties: {replicas: {type: integer}, minReadySeconds: {type: integer}, paused: {type: boolean}}}"

var kinds = []kind{
	{manifest: "job", fields: "{properties: {parallelism: {type: integer}, completions: {type: integer}, backoffLimit: {type: integer}, " +
		"backoffLimitPerIndex: {type: integer}, maxFailedIndexes: {type: integer}, completionMode: {enum: [Indexed, NonIndexed]}, suspend: {type: boolean}, " +
		"podReplacementPolicy: {enum: [TerminatingOrFailed, Failed]}}}"},
	{manifest: "deployment", fields: scaled},
	{manifest: "statefulset", fields: scaled},
	{manifest: "replicaset", fields: scaled},
	{manifest: "jobset", module: "sigs.k8s.io/jobset", crd: "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"},
	{manifest: "leaderworkerset", module: "sigs.k8s.io/lws", crd: "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml"},
	{manifest: "raycluster", module: "github.com/ray-project/kuberay/ray-operator", crd: "config/crd/bases/ray.io_rayclusters.yaml"},
	{manifest: "rayjob", module: "github.com/ray-project/kuberay/ray-operator", crd: "config/crd/bases/ray.io_rayjobs.yaml"},
	{manifest: "rayservice", module: "github.com/ray-project/kuberay/ray-operator", crd: "config/crd/bases/ray.io_rayservices.yaml"},
	ofKubeflow("pytorchjob"), ofKubeflow("tfjob"), ofKubeflow("xgboostjob"), ofKubeflow("paddlejob"), ofKubeflow("jaxjob"), ofKubeflow("mpijob"),
}

func ofKubeflow(name string) kind {
	return kind{manifest: name, module: "github.com/kubeflow/training-operator", crd: "manifests/base/crds/kubeflow.org_" + name + "s.yaml"}
}

// mark is the annotation of each pod template with the path to it.
const mark = "drawn.mlbatch.dev/at"

// drawn is an object, and what admission says of it.
type drawn struct {
	What   string         `json:"what"`
	Object map[string]any `json:"object"`
	// Refused is why; the rest is empty then.
	Refused string              `json:"refused,omitempty"`
	Stored  *v1beta2.AppWrapper `json:"stored,omitempty"`
	// Pods are how many there are of the template at each path.
	Pods map[string]int32 `json:"pods,omitempty"`
}

func main() {
	seed := flag.Uint64("seed", 1, "which fields get which values")
	specs := flag.Int("specs", 100, "how many random ones of each kind")
	flag.Parse()
	out := json.NewEncoder(os.Stdout)
	for i, k := range kinds {
		if err := k.draw(rand.New(rand.NewPCG(*seed, uint64(i))), *specs, out); err != nil {
			fmt.Fprintf(os.Stderr, "drawn: %s: %v\n", k.manifest, err)
			os.Exit(1)
		}
	}
}

func (k kind) draw(random *rand.Rand, specs int, out *json.Encoder) error {
	manifest, err := os.ReadFile(filepath.Join("test", "e2e", "testdata", "kinds", k.manifest+".yaml"))
	if err != nil {
		return err
	}
	text := []byte(os.Expand(string(manifest), func(string) string { return "drawn" }))
	schema, err := k.schema()
	if err != nil {
		return err
	}
	base := map[string]any{}
	if err := yaml.Unmarshal(text, &base); err != nil {
		return err
	}
	schemas, spec := variation.Schemas{}, variation.Object(base["spec"])
	for _, corner := range schemas.Corners(spec, schema) {
		object := runtime.DeepCopyJSON(base)
		corner.Set(variation.Object(object["spec"]))
		if err := write(object, []string{corner.String()}, out); err != nil {
			return err
		}
	}
	for range specs {
		object := runtime.DeepCopyJSON(base)
		changes := schemas.VaryToCorners(variation.Object(object["spec"]), schema, random)
		if err := write(object, changes, out); err != nil {
			return err
		}
	}
	return nil
}

func write(object map[string]any, changes []string, out *json.Encoder) error {
	markTemplates(object, nil)
	d := judge(object)
	d.What = fmt.Sprintf("%s with %s", object["kind"], strings.Join(changes, ", "))
	return out.Encode(d)
}

// schema is that of the spec.
func (k kind) schema() (map[string]any, error) {
	schema := map[string]any{}
	if k.module == "" {
		return schema, yaml.Unmarshal([]byte(k.fields), &schema)
	}
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", k.module).Output()
	if err != nil {
		return nil, fmt.Errorf("cannot find %s: %w", k.module, err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), k.crd))
	if err != nil {
		return nil, err
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Storage bool
				Schema  struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return nil, err
	}
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return variation.Object(variation.At(version.Schema.OpenAPIV3Schema, []string{"properties", "spec"})), nil
		}
	}
	return nil, fmt.Errorf("%s stores no version", k.crd)
}

// markTemplates writes into each pod template where it is. Operators give its annotations to the pods.
func markTemplates(value any, path []string) {
	switch v := value.(type) {
	case map[string]any:
		if variation.IsPodTemplate(v) {
			variation.Set(v, []string{"metadata", "annotations", mark}, strings.Join(path, "."))
			return
		}
		for name := range v {
			markTemplates(v[name], append(path[:len(path):len(path)], name))
		}
	case []any:
		for i := range v {
			markTemplates(v[i], append(path[:len(path):len(path)], strconv.Itoa(i)))
		}
	}
}

// judge does what the webhooks do with a new AppWrapper.
func judge(object map[string]any) drawn {
	text, err := json.Marshal(object)
	if err != nil {
		return drawn{Object: object, Refused: err.Error()}
	}
	aw := &v1beta2.AppWrapper{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta2.GroupVersion.String(), Kind: v1beta2.AppWrapperKind},
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "blue", Labels: map[string]string{v1beta2.QueueNameLabel: "q"}},
		Spec:       v1beta2.AppWrapperSpec{Components: []v1beta2.AppWrapperComponent{{Template: runtime.RawExtension{Raw: text}}}},
	}
	admissionrules.DeclarePodSets(aw)
	if err := admissionrules.AddExtras(aw, admissionrules.Surroundings{}); err != nil {
		return drawn{Object: object, Refused: err.Error()}
	}
	decoded := admissionrules.Decode(aw)
	if problems := decoded.ValidateCreate(admissionrules.DefaultLimits); len(problems) > 0 {
		return drawn{Object: object, Refused: problems.ToAggregate().Error()}
	}
	pods, err := decoded.Pods()
	if err != nil {
		return drawn{Object: object, Refused: err.Error()}
	}
	counted := map[string]int32{}
	for _, p := range pods {
		counted[p.Template.Annotations[mark]] += p.Count
	}
	return drawn{Object: object, Stored: aw, Pods: counted}
}
