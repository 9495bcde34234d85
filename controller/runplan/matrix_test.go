// SPDX-License-Identifier: Apache-2.0

package runplan_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/test/golden"
)

// archetypes are the ways to run something, with options that a Run may replace.
var archetypes = []struct {
	name   string
	change func(*runplan.Input)
}{
	{"torch by PyTorchJob", func(in *runplan.Input) {}},
	{"torch by JobSet", func(in *runplan.Input) { in.Application.Spec.Torch = &v1alpha1.Torch{Backend: v1alpha1.JobSet} }},
	{"ray job", func(in *runplan.Input) { in.Application.Spec.API = v1alpha1.APIRay }},
	{"ray cluster", func(in *runplan.Input) { interactive(in) }},
	{"ray head only", func(in *runplan.Input) { interactive(in); in.Run.Spec.Workers = ptr.To[int32](0) }},
	{"shell", func(in *runplan.Input) { in.Application.Spec.API = v1alpha1.APIShell }},
	{"workqueue on pvc", func(in *runplan.Input) { tasksIn(in, "pvc") }},
	{"workqueue on s3", func(in *runplan.Input) { tasksIn(in, "s3") }},
	{"workflow", func(in *runplan.Input) {
		steps(in)
		reference := v1alpha1.ApplicationReference{Name: "step"}
		in.Application.Spec = v1alpha1.ApplicationSpec{API: v1alpha1.APIWorkflow, Workflow: &v1alpha1.Workflow{Steps: []v1alpha1.Step{
			{Name: "a", Application: reference}, {Name: "b", Application: reference, DependsOn: []string{"a"}},
		}}}
	}},
	{"sequence", func(in *runplan.Input) {
		steps(in)
		in.Application.Spec = v1alpha1.ApplicationSpec{API: v1alpha1.APISequence, Steps: []string{"step", "step"}}
	}},
}

// matrixSizes are those of the matrix: two of the default ones, and one of an administrator.
var matrixSizes = []string{"xs", "md", "own"}

// overrides are what a Run says beside its Application and its size.
var overrides = []struct {
	name   string
	change func(*runplan.Input)
}{
	{"nothing", func(*runplan.Input) {}},
	{"workers", func(in *runplan.Input) { in.Run.Spec.Workers = ptr.To[int32](3) }},
	{"resources", func(in *runplan.Input) {
		in.Run.Spec.Resources = v1alpha1.Resources{"cpu": *amount("3"), "example.com/nic": *amount("1")}
	}},
	{"both flags", func(in *runplan.Input) {
		in.Run.Spec.SupportsGPU = true
		in.Application.Spec.SupportsGPU = true
		for i := range in.Applications {
			in.Applications[i].Spec.SupportsGPU = true
		}
	}},
	{"empty options", func(in *runplan.Input) { in.Run.Spec.Options = ptr.To("") }},
	{"env", func(in *runplan.Input) {
		in.Run.Spec.Env = map[string]v1alpha1.Text{"A": "of the Run", "C": "$(x)"}
	}},
}

func interactive(in *runplan.Input) {
	in.Application.Spec.API, in.Application.Spec.Command, in.Application.Spec.Options = v1alpha1.APIRay, "", ""
}

func tasksIn(in *runplan.Input, dataSet string) {
	in.Application.Spec.API = v1alpha1.APIWorkQueue
	in.Run.Spec.Queue = &v1alpha1.RunQueue{DataSet: v1alpha1.DataSetReference{Name: dataSet}}
}

// steps makes the program of the Run one that the steps of a workflow run.
func steps(in *runplan.Input) {
	step := in.Application.DeepCopy()
	step.Name = "step"
	in.Applications = []v1alpha1.Application{*step}
}

// matrixInput is a Run of torch with something of everything that a Run may replace.
func matrixInput(size string) runplan.Input {
	in := given(func(app *v1alpha1.Application, run *v1alpha1.Run) {
		app.Spec.Options = "--lr 1"
		app.Spec.Env = map[string]v1alpha1.Text{"A": "of the Application", "B": "b"}
		run.Spec.Size = size
	})
	in.Sizes = append(in.Sizes, v1alpha1.RunSizeConfiguration{Spec: v1alpha1.RunSizeConfigurationSpec{Config: map[string]v1alpha1.Size{"own": {
		Workers: 2, CPU: *amount("6"), Memory: *amount("24Gi"), GPU: 2,
		Resources: v1alpha1.Resources{"example.com/nic": *amount("2")}, NodeSelector: map[string]string{"pool": "fast"},
	}}}})
	in.DataSets = []v1alpha1.DataSet{
		{ObjectMeta: metav1.ObjectMeta{Name: "pvc"}, Spec: v1alpha1.DataSetSpec{PVC: &v1alpha1.PVCSource{ClaimName: "tasks"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "s3"}, Spec: v1alpha1.DataSetSpec{S3: &v1alpha1.S3Source{Endpoint: "https://s3.example.com", Bucket: "tasks"}}},
	}
	return in
}

// Each way to run something, with each size and whatever a Run may say: the pods that come of it.
// What is created in full is in the other golden files.
func TestTheMatrix(t *testing.T) {
	var out bytes.Buffer
	for _, archetype := range archetypes {
		for _, size := range matrixSizes {
			for _, override := range overrides {
				in := matrixInput(size)
				archetype.change(&in)
				override.change(&in)
				fmt.Fprintf(&out, "%s, %s, %s\n", archetype.name, size, override.name)
				plans, problems := runplan.Plans(in)
				for _, p := range problems {
					fmt.Fprintf(&out, "  %s: %s\n", p.Reason, p.Message)
				}
				for _, planned := range plans {
					inShort(t, &out, planned)
				}
			}
		}
	}
	golden.Compare(t, filepath.Join("testdata", "matrix.txt"), out.Bytes())
}

// inShort prints what the matrix is about. It fails for an AppWrapper that is not admitted.
func inShort(t *testing.T, out io.Writer, planned *runplan.Planned) {
	t.Helper()
	var kinds []string
	for _, component := range planned.AppWrapper.Spec.Components {
		template, err := admissionrules.Template(&component)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, template.GetKind())
	}
	fmt.Fprintf(out, "  %s: %s\n", strings.Join(kinds, " "), planned.Size)
	for _, p := range decoded(t, planned.AppWrapper) {
		main := p.template.Spec.Containers[0]
		fmt.Fprintf(out, "    %d %s: %s", p.count, p.template.Labels[v1alpha1.RoleLabel], amounts(main.Resources.Limits))
		for _, name := range slices.Sorted(maps.Keys(p.template.Spec.NodeSelector)) {
			fmt.Fprintf(out, " on %s=%s", name, p.template.Spec.NodeSelector[name])
		}
		for _, variable := range main.Env {
			if len(variable.Name) == 1 {
				fmt.Fprintf(out, " %s=%q", variable.Name, variable.Value)
			}
		}
		fmt.Fprintln(out)
	}
	for _, word := range words(planned) {
		fmt.Fprintf(out, "    %s\n", word)
	}
}

// words has the lines of the AppWrapper in which the program stands.
func words(planned *runplan.Planned) []string {
	var found []string
	for _, component := range planned.AppWrapper.Spec.Components {
		raw := string(component.Template.Raw)
		for rest := raw; ; {
			at := strings.Index(rest, "train.py")
			if at < 0 {
				break
			}
			end := at + strings.IndexAny(rest[at:], `"\]`)
			found = append(found, strings.TrimSpace(rest[at:end]))
			rest = rest[end:]
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func amounts(of corev1.ResourceList) string {
	var all []string
	for name, quantity := range of {
		all = append(all, string(name)+" "+quantity.String())
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
