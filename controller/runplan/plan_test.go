// SPDX-License-Identifier: Apache-2.0

package runplan_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/json"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/controller/runschema"
	"github.com/mlbatch/mlbatch/test/golden"
)

// The webhook of Runs asks about these, and the controller of Runs may wrap no others.
func isWrapped(t *testing.T, aw *v1beta2.AppWrapper) {
	t.Helper()
	for _, c := range aw.Spec.Components {
		var component metav1.TypeMeta
		if err := json.UnmarshalCaseSensitivePreserveInts(c.Template.Raw, &component); err != nil {
			t.Fatal(err)
		}
		resource, _ := meta.UnsafeGuessKindToResource(component.GroupVersionKind())
		if !slices.Contains(runplan.Wrapped, resource) {
			t.Errorf("runplan.Wrapped lacks %s", resource)
		}
	}
}

// Each pair has manifests, and what is created for each of their Runs.
func TestPlans(t *testing.T) {
	schema := compiled(t)
	golden.Pairs(t, "testdata", func(t *testing.T, in []byte) []byte {
		var out bytes.Buffer
		for i, input := range inputs(t, schema, in) {
			if i > 0 {
				fmt.Fprintln(&out, "---")
			}
			all, problems := runplan.Plans(input)
			for _, p := range problems {
				fmt.Fprintf(&out, "# %s: %s: %s\n", input.Run.Name, p.Reason, p.Message)
			}
			printed(t, &out, input.Run.Name, all)
		}
		return out.Bytes()
	})
}

func printed(t *testing.T, out io.Writer, run string, all []*runplan.Planned) {
	t.Helper()
	for i, planned := range all {
		if i > 0 {
			fmt.Fprintln(out, "---")
		}
		text, err := yaml.Marshal(planned.AppWrapper)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(out, "# %s: %s\n%s", run, planned.Size, text)
		decoded(t, planned.AppWrapper)
		isWrapped(t, planned.AppWrapper)
	}
}

func compiled(t *testing.T) runschema.Schema {
	t.Helper()
	schema, err := runschema.New()
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// inputs are the Runs of some manifests, each with all that is there for it.
func inputs(t *testing.T, schema runschema.Schema, manifests []byte) []runplan.Input {
	t.Helper()
	found := runplan.Input{Settings: settings()}
	var apps []v1alpha1.Application
	var runs []*v1alpha1.Run
	for _, text := range strings.Split(string(manifests), "\n---\n") {
		if name, is := strings.CutPrefix(text, "# Datashim has "); is {
			found.Datashim = append(found.Datashim, name)
			continue
		}
		object := stored(t, schema, text)
		switch object.GetKind() {
		case v1alpha1.ApplicationKind:
			apps = append(apps, *convert(t, object, &v1alpha1.Application{}))
		case v1alpha1.DataSetKind:
			found.DataSets = append(found.DataSets, *convert(t, object, &v1alpha1.DataSet{}))
		case v1alpha1.RunSizeConfigurationKind:
			found.Sizes = append(found.Sizes, *convert(t, object, &v1alpha1.RunSizeConfiguration{}))
		case v1alpha1.RunKind:
			runs = append(runs, convert(t, object, &v1alpha1.Run{}))
		}
	}
	if len(found.Sizes) == 0 {
		found.Sizes = []v1alpha1.RunSizeConfiguration{runplan.DefaultSizes()}
	}
	var all []runplan.Input
	for _, run := range runs {
		one := found
		one.Run = run
		for _, app := range apps {
			if app.Namespace != runplan.ApplicationNamespace(run) {
				continue
			}
			one.Applications = append(one.Applications, app)
			if app.Name == run.Spec.Application.Name {
				one.Application = &app
			}
		}
		all = append(all, one)
	}
	return all
}

// stored is a manifest as the API server stores it.
func stored(t *testing.T, schema runschema.Schema, manifest string) *unstructured.Unstructured {
	t.Helper()
	text, err := yaml.YAMLToJSONStrict([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	created, err := schema.Create(object)
	if err != nil {
		t.Fatalf("%s %s is refused: %v", object.GetKind(), object.GetName(), err)
	}
	return created
}

func convert[T any](t failer, object *unstructured.Unstructured, into T) T {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
		t.Fatalf("%v", err)
	}
	return into
}

// decoded checks an AppWrapper as the webhook and the operators do, and returns the pods of each
// pod set, with their number.
func decoded(t failer, aw *v1beta2.AppWrapper) []pods {
	t.Helper()
	if problems := admissionrules.ValidateCreate(aw, admissionrules.DefaultLimits); len(problems) > 0 {
		t.Fatalf("admission refuses it: %v", problems.ToAggregate())
	}
	if warnings := admissionrules.WarningsOnCreate(aw); len(warnings) > 0 {
		t.Errorf("admission warns of it: %q", warnings)
	}
	var all []pods
	for _, component := range aw.Spec.Components {
		template, err := admissionrules.Template(&component)
		if err != nil {
			t.Fatalf("%v", err)
		}
		strictly(t, template.GetKind(), component.Template.Raw)
		podSets, err := admissionrules.PodSets(nil, template)
		if err != nil {
			t.Fatalf("%v", err)
		}
		for _, podSet := range podSets {
			pod, err := admissionrules.PodTemplate(template, podSet.Path)
			if err != nil {
				t.Fatalf("%v", err)
			}
			all = append(all, pods{podSet.Count(), pod})
		}
	}
	return all
}

// pods are a number of pods of one template.
type pods struct {
	count    int32
	template corev1.PodTemplateSpec
}

// strictly decodes an object into the type that its operator publishes.
func strictly(t failer, kind string, raw []byte) {
	t.Helper()
	types := map[string]any{"RayJob": &rayv1.RayJob{}, "RayCluster": &rayv1.RayCluster{}, "ConfigMap": &corev1.ConfigMap{}, "Service": &corev1.Service{}, "PyTorchJob": &kubeflow.PyTorchJob{}, "JobSet": &jobset.JobSet{}, "Job": &batchv1.Job{}, "PodGroup": &podgroup.PodGroup{}}
	strict, err := json.UnmarshalStrict(raw, types[kind])
	if err := errors.Join(append(strict, err)...); err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
}

// failer is a test or one round of a property test.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// settings are the default ones of a platform that can fetch code and data.
func settings() runplan.Settings {
	s := runplan.DefaultSettings()
	s.AgentImage = "agent:1"
	return s
}

// given are a Run and an Application of torch, which a test changes.
func given(change func(*v1alpha1.Application, *v1alpha1.Run)) runplan.Input {
	app := &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "digits"},
		Spec:       v1alpha1.ApplicationSpec{API: v1alpha1.APITorch, Image: "digits:1", Command: "train.py"},
	}
	run := &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "digits-1"},
		Spec:       v1alpha1.RunSpec{Application: v1alpha1.ApplicationReference{Name: "digits"}},
	}
	change(app, run)
	return runplan.Input{Run: run, Application: app, Sizes: []v1alpha1.RunSizeConfiguration{runplan.DefaultSizes()}, Settings: settings()}
}

func TestARunThatIsStoredOwnsItsAppWrapper(t *testing.T) {
	planned, problems := runplan.Plan(given(func(_ *v1alpha1.Application, run *v1alpha1.Run) { run.UID = "u" }))
	if planned == nil {
		t.Fatal(problems)
	}
	isController := true
	want := []metav1.OwnerReference{{APIVersion: "codeflare.dev/v1alpha1", Kind: "Run", Name: "digits-1", UID: "u", Controller: &isController}}
	if diff := cmp.Diff(want, planned.AppWrapper.OwnerReferences); diff != "" {
		t.Error(diff)
	}
}

// Without gang, nothing schedules the pods of a JobSet together, and no kind PodGroup may exist.
func TestWithoutGangThereAreNoPodGroups(t *testing.T) {
	input := given(func(app *v1alpha1.Application, _ *v1alpha1.Run) {
		app.Spec.Torch = &v1alpha1.Torch{Backend: v1alpha1.JobSet}
	})
	input.Settings.Gang = false
	planned, problems := runplan.Plan(input)
	if planned == nil {
		t.Fatal(problems)
	}
	if text := fmt.Sprintln(len(planned.AppWrapper.Spec.Components), string(planned.AppWrapper.Spec.Components[0].Template.Raw)); !strings.HasPrefix(text, "1 ") || strings.Contains(text, "pod-group") {
		t.Errorf("got %s", text)
	}
}

func TestTheResourceOfGPUsIsASetting(t *testing.T) {
	input := given(func(app *v1alpha1.Application, run *v1alpha1.Run) {
		app.Spec.SupportsGPU, run.Spec.SupportsGPU = true, true
	})
	input.Settings.GPUResourceName = "amd.com/gpu"
	planned, problems := runplan.Plan(input)
	if planned == nil {
		t.Fatal(problems)
	}
	if got := planned.Size.String(); got != "2 workers of 1 cpu, 8Gi memory, 1 amd.com/gpu" {
		t.Errorf("got %s", got)
	}
}

// A name is cut so that those of all pods fit, and stays another than that of any other Run.
func TestNamesFit(t *testing.T) {
	long := strings.Repeat("a", 60)
	for run, want := range map[string]string{
		"digits-1": "digits-1",
		long[:45]:  long[:45],
		long[:46]:  "",
	} {
		got := runplan.AppWrapperName(run, "")
		if want != "" && got != want || len(got+"-node-0-9999-abcde") > 63 {
			t.Errorf("%s becomes %s", run, got)
		}
	}
	if runplan.AppWrapperName(long+"b", "") == runplan.AppWrapperName(long+"c", "") {
		t.Error("two Runs have one name")
	}
}

// Kinds that a later version of the schema may accept.
func TestAnUnknownAPIIsAProblem(t *testing.T) {
	planned, problems := runplan.Plan(given(func(app *v1alpha1.Application, _ *v1alpha1.Run) { app.Spec.API = "spark" }))
	want := []runplan.Problem{{Reason: runplan.Impossible, Message: "api must be ray, shell, torch or workqueue, and is spark"}}
	if diff := cmp.Diff(want, problems); diff != "" || planned != nil {
		t.Error(diff)
	}
}

func TestAnAppWrapperThatCannotBeStoredIsNotPlanned(t *testing.T) {
	in := oneRun()
	in.Run.Spec.Env = map[string]v1alpha1.Text{}
	for i := range 31 {
		in.Run.Spec.Env["V"+strconv.Itoa(i)] = v1alpha1.Text(strings.Repeat("a", 32<<10))
	}
	if got, problems := runplan.Plan(in); got == nil {
		t.Errorf("almost a MiB is refused: %v", problems)
	}
	in.Run.Spec.Env["V"] = in.Run.Spec.Env["V0"]
	got, problems := runplan.Plan(in)
	want := runplan.Problem{Reason: runplan.Refused, Message: "the AppWrapper would have 1025 KiB or more, and may have 1024: put long variables into a ConfigMap, and name that in envFrom, and long code into a repository"}
	if got != nil || len(problems) != 1 || problems[0] != want {
		t.Errorf("got %v", problems)
	}
}

// The status of a Run has its steps, and could not be saved.
func TestAWorkflowThatCannotBeStoredIsNotPlanned(t *testing.T) {
	in := workflowInput()
	long := strings.Repeat("a", 32<<10)
	steps := func(n int) {
		in.Application.Spec.Workflow.Steps = nil
		for i := range n {
			in.Application.Spec.Workflow.Steps = append(in.Application.Spec.Workflow.Steps, v1alpha1.Step{
				Name: "s" + strconv.Itoa(i), Application: v1alpha1.ApplicationReference{Name: "app"}, Options: &long,
			})
		}
	}
	steps(31)
	if got, problems := runplan.Plans(in); len(got) != 31 {
		t.Errorf("almost a MiB is refused: %v", problems)
	}
	steps(32)
	got, problems := runplan.Plans(in)
	if got != nil || len(problems) != 1 || !strings.HasSuffix(problems[0].Message, "KiB, and may have 1024: leave long options of steps to their Applications") {
		t.Errorf("got %d plans, %v", len(got), problems)
	}
}

// What describes a program is of no use in a workflow, and nobody may think that it is.
func TestAWorkflowSaysWhichFieldsItDoesNotUse(t *testing.T) {
	in := workflowInput()
	plain, _ := runplan.Plans(in)
	steps, full := in.Application.Spec.Workflow, fullInput().Application.Spec
	full.API, full.Workflow, full.Torch = v1alpha1.APIWorkflow, steps, nil
	full.Env, full.Repo, full.Size, full.ImagePullSecret = map[string]v1alpha1.Text{"A": "a"}, "https://h/a/b/tree/c", "md", "s"
	in.Application.Name, in.Application.Spec = "nightly", full
	got, problems := runplan.Plans(in)
	if len(got) != 2 || len(plain) != 2 || plain[0].Unused != "" {
		t.Fatalf("got %d and %d plans: %v", len(plain), len(got), problems)
	}
	const want = "no step uses image, command, options, env, envFrom, code, repo, inputs, size, supportsGpu, imagePullSecret or securityContext" +
		" of Application nightly: set it in the Applications of the steps"
	if got[0].Unused != want {
		t.Errorf("got %q", got[0].Unused)
	}
	// Each field is one of these, is refused in a workflow, or was of no use in 2023 either.
	others := []string{"api", "workflow", "steps", "requirements", "torch", "ray", "workqueue", "repoSecret", "minCpu", "minMemory", "minGpu"}
	for _, field := range leaves(reflect.TypeFor[v1alpha1.ApplicationSpec](), "") {
		name, _, _ := strings.Cut(strings.TrimPrefix(field, "."), ".")
		if !strings.Contains(want, name) && !slices.Contains(others, name) {
			t.Errorf("nobody knows whether a workflow uses %s", name)
		}
	}
}

// An Application may have become what no step can be since the Run was accepted.
func TestAStepThatStartsIsJudgedAgain(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.ApplicationSpec){
		"step a is an interactive cluster, which has no end: give Application app a command": func(app *v1alpha1.ApplicationSpec) {
			*app = v1alpha1.ApplicationSpec{API: v1alpha1.APIRay, Image: "ray:2"}
		},
		"step a is a workqueue, and must be ray, shell or torch": func(app *v1alpha1.ApplicationSpec) { app.API = v1alpha1.APIWorkQueue },
		"step a is a workflow, and must be ray, shell or torch":  func(app *v1alpha1.ApplicationSpec) { app.API = v1alpha1.APIWorkflow },
	} {
		in := workflowInput()
		in.Step, in.Application = &in.Application.Spec.Workflow.Steps[0], &in.Applications[0]
		in.Run = runplan.ForStep(in.Run, *in.Step)
		change(&in.Application.Spec)
		got, problems := runplan.Plans(in)
		if got != nil || len(problems) != 1 || problems[0].Message != want {
			t.Errorf("got %d plans, %v, want %q", len(got), problems, want)
		}
	}
}

func TestWithoutTheAgentNothingIsFetched(t *testing.T) {
	code := func(app *v1alpha1.Application, _ *v1alpha1.Run) { app.Spec.Repo = "https://h/a/b/tree/c" }
	bucket := func(app *v1alpha1.Application, _ *v1alpha1.Run) { app.Spec.Inputs = []v1alpha1.Input{{Name: "images"}} }
	nothing := func(*v1alpha1.Application, *v1alpha1.Run) {}
	for name, change := range map[string]func(*v1alpha1.Application, *v1alpha1.Run){"code": code, "bucket": bucket, "": nothing} {
		in := given(change)
		in.DataSets = []v1alpha1.DataSet{{ObjectMeta: metav1.ObjectMeta{Name: "images"}, Spec: v1alpha1.DataSetSpec{S3: &v1alpha1.S3Source{}}}}
		in.Settings.AgentImage = ""
		_, problems := runplan.Plan(in)
		if refused := len(problems) == 1 && strings.Contains(problems[0].Message, "an administrator sets agentImage"); refused != (name != "") {
			t.Errorf("%s: %v", name, problems)
		}
	}
}
