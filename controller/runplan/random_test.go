// SPDX-License-Identifier: Apache-2.0

package runplan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/controller/runschema"
	"github.com/mlbatch/mlbatch/test/sameseed"
)

func TestMain(m *testing.M) { os.Exit(sameseed.Run(m)) }

// Whatever the API server stores either has problems, each a sentence, or becomes an AppWrapper
// that is admitted and has all that was written.
func TestAnyRunIsPlannedOrExplained(t *testing.T) {
	schema := compiled(t)
	planned := 0
	rapid.Check(t, func(t *rapid.T) {
		input := drawInput(t, schema)
		before := copied(input)
		got, problems := runplan.Plan(input)
		again, _ := runplan.Plan(copied(input))
		if diff := cmp.Diff(before, input); diff != "" {
			t.Fatalf("the plan changed its input:\n%s", diff)
		}
		if (got == nil) == (len(problems) == 0) {
			t.Fatalf("there is a plan and not, and %d problems", len(problems))
		}
		for _, p := range problems {
			if p.Reason == "" || p.Message == "" || strings.Contains(p.Message, "\n") || strings.Contains(p.Message, "%!") {
				t.Fatalf("this is no sentence: %q", p)
			}
		}
		if got == nil {
			return
		}
		if planned++; !cmp.Equal(got.AppWrapper, again.AppWrapper) {
			t.Fatalf("two plans of the same input differ:\n%s", cmp.Diff(got.AppWrapper, again.AppWrapper))
		}
		checkPlan(t, input, got)
	})
	if planned == 0 {
		t.Error("nothing was planned")
	}
}

// checkPlan fails unless the plan has everything that its input says.
func checkPlan(t failer, in runplan.Input, got *runplan.Planned) {
	t.Helper()
	app, run := in.Application.Spec, in.Run.Spec
	aw := got.AppWrapper
	same(t, "the queue", run.QueueName, aw.Labels["kueue.x-k8s.io/queue-name"])
	for name, value := range in.Run.Annotations {
		if strings.HasPrefix(name, "workload.codeflare.dev.appwrapper/") {
			same(t, name, value, aw.Annotations[name])
		}
	}
	workers := got.Size.Workers
	if run.Workers != nil {
		same(t, "the workers", *run.Workers, workers)
	}
	for name, amount := range run.Resources {
		planned := got.Size.PerWorker[name]
		if amount.Cmp(planned) != 0 {
			t.Fatalf("%s is %s and not %s", name, planned.String(), amount.String())
		}
	}
	for _, p := range decoded(t, aw) {
		if p.template.Labels["codeflare.dev/role"] == "broker" {
			checkBroker(t, in, p)
			continue
		}
		same(t, "the image", app.Image, p.template.Spec.Containers[0].Image)
		switch p.template.Labels["codeflare.dev/role"] {
		case "submitter":
			same(t, "the variables of the submitter", 0, len(p.template.Spec.Containers[0].Env)+len(p.template.Spec.Containers[0].EnvFrom))
			continue
		case "head":
			same(t, "the number of heads", 1, p.count)
			workers += p.count
			checkResources(t, p.template.Spec.Containers[0], headOf(in, got.Size))
		default:
			checkResources(t, p.template.Spec.Containers[0], got.Size.PerWorker)
		}
		workers -= p.count
		checkPod(t, in, got.Size, p.template)
		checkLine(t, in, got.Size, lineOf(t, aw, p.template))
	}
	same(t, "the workers without a pod", 0, workers)
	for _, component := range aw.Spec.Components {
		if strings.Contains(string(component.Template.Raw), "ttlSecondsAfterFinished") {
			t.Fatalf("a component removes itself: %s", component.Template.Raw)
		}
	}
}

// checkBroker fails unless there is one broker, which has the store, and nothing of the program.
func checkBroker(t failer, in runplan.Input, p pods) {
	t.Helper()
	pod := p.template.Spec
	broker := pod.Containers[0]
	same(t, "the number of brokers", 1, p.count)
	same(t, "the containers of the broker", 1, len(pod.Containers)+len(pod.InitContainers))
	same(t, "the broker's image", in.Settings.AgentImage, broker.Image)
	same(t, "the broker's cpu", "50m", broker.Resources.Requests.Cpu().String())
	if s := broker.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !*s.RunAsNonRoot || len(s.Capabilities.Drop) != 1 || pod.SecurityContext.FSGroup == nil {
		t.Fatalf("the broker may do too much, or too little: %v", s)
	}
	store := in.Run.Spec.Queue.DataSet.Name
	same(t, "the volumes of the broker", store != "d" && store != "e", len(pod.Volumes) == 1 && len(broker.VolumeMounts) == 1)
	same(t, "the keys of the broker, and an authority", store == "e", len(broker.Env) == 3)
	for _, word := range broker.Command {
		if strings.Contains(strings.ReplaceAll(word, "$$", ""), "$(") {
			t.Fatalf("Kubernetes expands %s", word)
		}
	}
}

func checkPod(t failer, in runplan.Input, size runplan.Size, pod corev1.PodTemplateSpec) {
	t.Helper()
	app, run := in.Application.Spec, in.Run.Spec
	container := pod.Spec.Containers[0]
	for _, label := range []string{"run", "application", "archetype", "role"} {
		if pod.Labels["codeflare.dev/"+label] == "" {
			t.Fatalf("the pods lack the label codeflare.dev/%s", label)
		}
	}
	same(t, "Kueue's annotation", in.Run.Annotations[topology], pod.Annotations[topology])
	checkCode(t, app, pod.Spec)
	same(t, "the node selector", fmt.Sprint(size.NodeSelector), fmt.Sprint(pod.Spec.NodeSelector))
	same(t, "the priority", map[v1alpha1.Priority]string{"low": "low-priority", "normal": "default-priority", "high": "high-priority"}[run.Priority], pod.Spec.PriorityClassName)
	same(t, "the number of variables from elsewhere", len(app.EnvFrom)+len(run.EnvFrom)+told(app.Inputs, "e"), len(container.EnvFrom))
	own := maps.Clone(app.Env)
	if own == nil {
		own = map[string]v1alpha1.Text{}
	}
	maps.Copy(own, run.Env)
	names := map[string]bool{}
	for _, variable := range container.Env {
		if names[variable.Name] {
			t.Fatalf("%s is set twice", variable.Name)
		}
		names[variable.Name] = true
		if value, is := own[variable.Name]; is {
			same(t, variable.Name, string(value), expanded(variable.Value))
			delete(own, variable.Name)
		}
	}
	same(t, "the number of variables that are lost", 0, len(own))
	if secret := app.ImagePullSecret; secret != "" {
		same(t, "the secret of the image", secret, pod.Spec.ImagePullSecrets[0].Name)
	}
	if app.SecurityContext != nil {
		same(t, "the user", *app.SecurityContext.RunAsUser, *pod.Spec.SecurityContext.RunAsUser)
	}
	mounts := len(app.Inputs) - told(app.Inputs, "d") - told(app.Inputs, "e")
	switch app.API {
	case v1alpha1.APITorch, v1alpha1.APIRay:
		mounts++ // shared memory
	case v1alpha1.APIWorkQueue:
		mounts += 2 // the agent, and the tasks
	}
	if app.API == v1alpha1.APIRay && strings.TrimSpace(app.Command) != "" {
		mounts++ // the command
	}
	volumes := mounts
	if all := pod.Spec.InitContainers; all != nil && all[0].Name == "code" { // checkCode knows whether there is code
		mounts++
		volumes += len(pod.Spec.InitContainers[0].VolumeMounts)
	}
	same(t, "the number of mounts", mounts, len(container.VolumeMounts))
	same(t, "the number of volumes", volumes, len(pod.Spec.Volumes))
	checkCopies(t, pod.Spec)
}

// told is how many inputs are variables of a DataSet. A plan has no DataSet twice in this way.
func told(inputs []v1alpha1.Input, dataSet v1alpha1.DataSetName) int {
	n := 0
	for _, input := range inputs {
		named := input.Name == string(dataSet)
		for _, name := range input.Sizes {
			named = named || name == dataSet
		}
		if named && input.UseAs == v1alpha1.UseAsConfigMap {
			n++
		}
	}
	return n
}

// checkCopies fails unless each copy of a bucket has a limit and one who fills it, and the program
// cannot change it and has no keys.
func checkCopies(t failer, pod corev1.PodSpec) {
	t.Helper()
	for _, volume := range pod.Volumes {
		if volume.EmptyDir == nil || !strings.HasPrefix(volume.Name, "input-") {
			continue
		}
		filled := slices.ContainsFunc(pod.InitContainers, func(c corev1.Container) bool {
			return len(c.VolumeMounts) == 1 && c.VolumeMounts[0].Name == volume.Name && !c.VolumeMounts[0].ReadOnly
		})
		if volume.EmptyDir.SizeLimit == nil || !filled {
			t.Fatalf("the volume %s has no limit, or nobody fills it", volume.Name)
		}
		for _, mount := range pod.Containers[0].VolumeMounts {
			if mount.Name == volume.Name && !mount.ReadOnly {
				t.Fatalf("the program may write to %s", volume.Name)
			}
		}
	}
	for _, variable := range pod.Containers[0].Env {
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			t.Fatalf("the program gets %s", variable.Name)
		}
	}
}

// checkResources fails unless a container has these, and no others.
func checkResources(t failer, container corev1.Container, want corev1.ResourceList) {
	t.Helper()
	for name, amount := range want {
		if got := container.Resources.Limits[name]; amount.Cmp(got) != 0 || amount.IsZero() {
			t.Fatalf("the pods get %s of %s, not %s", got.String(), name, amount.String())
		}
	}
	same(t, "the number of resources", len(want), len(container.Resources.Requests))
}

// headOf is what the head of a Ray cluster gets: GPUs only if it has no workers, or its author says so.
func headOf(in runplan.Input, size runplan.Size) corev1.ResourceList {
	want := size.PerWorker.DeepCopy()
	if size.Workers > 0 {
		maps.DeleteFunc(want, func(name corev1.ResourceName, _ resource.Quantity) bool { return name != "cpu" && name != "memory" })
	}
	for name, amount := range in.Application.Spec.Ray.HeadResources {
		if want[name] = amount.Quantity; amount.IsZero() {
			delete(want, name)
		}
	}
	return want
}

// lineOf is what runs in a pod, as the program that reads it gets it.
func lineOf(t failer, aw *v1beta2.AppWrapper, pod corev1.PodTemplateSpec) string {
	t.Helper()
	for _, variable := range pod.Spec.Containers[0].Env {
		if variable.Name == "CODEFLARE_COMMAND" {
			return expanded(variable.Value)
		}
	}
	if command := pod.Spec.Containers[0].Command; len(command) > 0 {
		return expanded(command[len(command)-1])
	}
	for _, component := range aw.Spec.Components {
		var files corev1.ConfigMap
		if err := json.Unmarshal(component.Template.Raw, &files); err != nil {
			t.Fatalf("%v", err)
		}
		if strings.HasSuffix(files.Name, ".command") {
			return files.Data["main"]
		}
	}
	return ""
}

// checkLine fails unless a line has what the author wrote.
func checkLine(t failer, in runplan.Input, size runplan.Size, got string) {
	t.Helper()
	options := in.Application.Spec.Options
	if in.Run.Spec.Options != nil {
		options = *in.Run.Spec.Options
	}
	for _, part := range []string{in.Application.Spec.Command, options} {
		part = strings.TrimSpace(part)
		if in.Application.Spec.API == v1alpha1.APITorch {
			part = strings.TrimPrefix(part, "python3 -u ")
		}
		if !strings.Contains(got, part) {
			t.Fatalf("the line lacks %q: %q", part, got)
		}
	}
	if in.Application.Spec.API == v1alpha1.APITorch && !strings.Contains(got, fmt.Sprintf(" --nproc_per_node=%d ", max(1, size.GPUs))) {
		t.Fatalf("torchrun does not start %d processes: %s", size.GPUs, got)
	}
}

func same[T comparable](t failer, what string, want, got T) {
	t.Helper()
	if want != got {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// variable matches what Kubernetes expands in commands and variables.
var variable = regexp.MustCompile(`\$(\$|\([^)]*\))`)

// expanded is a text after Kubernetes has expanded its variables.
func expanded(text string) string {
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		return "a variable's value"
	})
}

const topology = "kueue.x-k8s.io/podset-required-topology"

var (
	anyText  = rapid.StringMatching("[ -~\\n\u0080-\u00a5\u2020-\u2030]{0,20}")
	lineText = rapid.StringMatching("[!-~][ -~\u0080-\u00a5]{0,20}")
	varName  = rapid.SampledFrom([]string{"A", "B", "a.b", "_c-1", "PYTHONUNBUFFERED", "WORLD_SIZE", "HOME", "d_bucket"})
	sizeName = rapid.SampledFrom([]string{"", "xs", "md", "own", "huge", "of two\nlines"})
	dataName = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "none"})
)

// drawInput returns objects that the API server stores.
func drawInput(t *rapid.T, schema runschema.Schema) runplan.Input {
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: "digits"}, Spec: drawApplication(t)}
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: rapid.StringMatching(`[a-z]([-a-z0-9]{0,61}[a-z0-9])?`).Draw(t, "name")}, Spec: drawRun(t)}
	if rapid.Bool().Draw(t, "annotated") {
		run.Annotations = map[string]string{topology: "rack", "workload.codeflare.dev.appwrapper/retryLimit": rapid.SampledFrom([]string{"1", "many"}).Draw(t, "retries")}
	}
	if has := rapid.IntRange(0, 9).Draw(t, "queue") > 0; has == (app.Spec.API == v1alpha1.APIWorkQueue) {
		run.Spec.Queue = &v1alpha1.RunQueue{DataSet: v1alpha1.DataSetReference{Name: dataName.Draw(t, "store")}, Open: rapid.Bool().Draw(t, "open")}
		run.Spec.Inbox = rapid.SampledFrom([]string{"", ".", "a/$(b)"}).Draw(t, "inbox")
	}
	own := &v1alpha1.RunSizeConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: v1alpha1.RunSizeConfigurationSpec{Config: map[string]v1alpha1.Size{
		"own": {
			Workers: rapid.Int32Range(0, 10000).Draw(t, "own workers"), CPU: drawAmount(t), Memory: drawAmount(t), GPU: rapid.Int32Range(0, 8).Draw(t, "own gpu"),
			Resources: drawResources(t, "nvidia.com/gpu", "nvidia.com/roce_gdr", "ephemeral-storage"), NodeSelector: map[string]string{"a": "b"},
		},
	}}}
	in := runplan.Input{Run: run, Application: app, Sizes: []v1alpha1.RunSizeConfiguration{runplan.DefaultSizes(), *own}, Settings: settings()}
	in.Settings.Gang = rapid.Bool().Draw(t, "gang")
	stores(t, schema, v1alpha1.ApplicationKind, app)
	stores(t, schema, v1alpha1.RunKind, run)
	stores(t, schema, v1alpha1.RunSizeConfigurationKind, own)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		dataSet := &v1alpha1.DataSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.DataSetSpec{PVC: &v1alpha1.PVCSource{ClaimName: name}}}
		if name == "b" {
			dataSet.Spec = v1alpha1.DataSetSpec{NFS: &v1alpha1.NFSSource{Server: "s", Path: "/"}, ReadOnly: true}
		}
		if name == "d" || name == "e" {
			dataSet.Spec = v1alpha1.DataSetSpec{S3: &v1alpha1.S3Source{Endpoint: "http://$(HOST)", Bucket: "b-1", Prefix: anyText.Filter(func(s string) bool { return !strings.HasPrefix(s, "/") }).Draw(t, "prefix")}}
		}
		if name == "e" {
			dataSet.Spec.S3.SecretName = "keys"
		}
		stores(t, schema, v1alpha1.DataSetKind, dataSet)
		in.DataSets = append(in.DataSets, *dataSet)
	}
	return in
}

// checkCode fails unless the code gets into the pod, by a container that can do nothing else and costs
// nothing. Nobody else sees the Secret.
func checkCode(t failer, app v1alpha1.ApplicationSpec, pod corev1.PodSpec) {
	t.Helper()
	if len(app.Code) == 0 && app.Repo == "" {
		same(t, "an init container for code", false, slices.ContainsFunc(pod.InitContainers, func(c corev1.Container) bool { return c.Name == "code" }))
		same(t, "the folder in which it starts", "", pod.Containers[0].WorkingDir)
		return
	}
	agent, program := pod.InitContainers[0], pod.Containers[0]
	same(t, "the folder in which it starts", "/workdir", program.WorkingDir)
	for name, amount := range agent.Resources.Requests {
		least := program.Resources.Requests[name]
		if amount.Cmp(least) > 0 && amount.String() != "64Mi" {
			t.Fatalf("the agent requests %s of %s", amount.String(), name)
		}
	}
	if s := agent.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !*s.RunAsNonRoot || len(s.Capabilities.Drop) != 1 {
		t.Fatalf("the agent may do too much: %v", s)
	}
	for _, mount := range program.VolumeMounts {
		if mount.Name == "repo-secret" || mount.Name == "code-files" {
			t.Fatalf("the program has the volume %s", mount.Name)
		}
	}
	for _, word := range agent.Command {
		if strings.Contains(strings.ReplaceAll(word, "$$", ""), "$(") {
			t.Fatalf("Kubernetes expands %s", word)
		}
	}
}

func drawApplication(t *rapid.T) v1alpha1.ApplicationSpec {
	spec := v1alpha1.ApplicationSpec{
		API: v1alpha1.APIShell, Image: "digits:1", Command: lineText.Draw(t, "command"), Options: anyText.Draw(t, "options"),
		Variables: drawVariables(t), Size: sizeName.Draw(t, "size"), SupportsGPU: rapid.Bool().Draw(t, "gpu"),
	}
	if rapid.Bool().Draw(t, "torch") {
		spec.API, spec.Options = v1alpha1.APITorch, lineText.Draw(t, "torch options")
		spec.Command = rapid.SampledFrom([]string{"", "python3 -u "}).Draw(t, "launcher") + spec.Command
		spec.Torch = &v1alpha1.Torch{Backend: rapid.SampledFrom([]v1alpha1.TorchBackend{v1alpha1.PyTorchJob, v1alpha1.JobSet}).Draw(t, "backend")}
	}
	if spec.API == v1alpha1.APIShell && rapid.Bool().Draw(t, "tasks") {
		spec.API = v1alpha1.APIWorkQueue
	}
	if spec.API == v1alpha1.APIShell && rapid.Bool().Draw(t, "ray") {
		spec.API, spec.Ray = v1alpha1.APIRay, &v1alpha1.Ray{HeadResources: drawResources(t, "cpu", "nvidia.com/gpu")}
		if rapid.Bool().Draw(t, "interactive") {
			spec.Command, spec.Options = "", ""
		}
	}
	if rapid.Bool().Draw(t, "user") {
		id := int64(1)
		spec.ImagePullSecret, spec.SecurityContext = "registry", &v1alpha1.SecurityContext{RunAsUser: &id}
	}
	switch rapid.SampledFrom([]string{"none", "code", "repo", "secret"}).Draw(t, "code") {
	case "code":
		spec.Code = []v1alpha1.CodeFile{{Name: "a", Source: anyText.Draw(t, "source")}, {Name: "b"}}
	case "secret":
		spec.RepoSecret = &v1alpha1.SecretReference{Name: "git"}
		fallthrough
	case "repo":
		spec.Repo = rapid.SampledFrom([]string{"https://h/a/b/tree/c/$(d)", "https://h/a/b/c/-/tree/d", "https://h/a"}).Draw(t, "repo")
	}
	for range rapid.IntRange(0, 2).Draw(t, "inputs") {
		input := v1alpha1.Input{Name: dataName.Draw(t, "data"), MountPath: rapid.SampledFrom([]string{"", "", "/data", "/dev/shm/", "/two\nlines"}).Draw(t, "folder")}
		if rapid.Bool().Draw(t, "sizes of data") {
			input.Sizes = map[string]v1alpha1.DataSetName{rapid.SampledFrom([]string{"xs", "lg", "own"}).Draw(t, "size of data"): v1alpha1.DataSetName(input.Name)}
			input.Name = ""
		}
		if input.MountPath == "" && rapid.Bool().Draw(t, "variables of data") {
			input.UseAs = v1alpha1.UseAsConfigMap
		}
		spec.Inputs = append(spec.Inputs, input)
	}
	return spec
}

func drawRun(t *rapid.T) v1alpha1.RunSpec {
	spec := v1alpha1.RunSpec{
		Application: v1alpha1.ApplicationReference{Name: "digits"}, Variables: drawVariables(t), Size: sizeName.Draw(t, "size of the run"),
		Resources: drawResources(t, "cpu", "memory", "nvidia.com/gpu", "a.b/c"), SupportsGPU: rapid.Bool().Draw(t, "wants gpu"),
		Priority: rapid.SampledFrom([]v1alpha1.Priority{"low", "normal", "high"}).Draw(t, "priority"),
		Input:    rapid.SampledFrom([]string{"", "lg", "own"}).Draw(t, "input"), QueueName: rapid.SampledFrom([]string{"", "q"}).Draw(t, "queue"),
	}
	if rapid.Bool().Draw(t, "own options") {
		options := anyText.Draw(t, "options of the run")
		spec.Options = &options
	}
	if rapid.Bool().Draw(t, "own workers") {
		workers := rapid.Int32Range(0, 10000).Draw(t, "workers")
		spec.Workers = &workers
	}
	return spec
}

func drawVariables(t *rapid.T) v1alpha1.Variables {
	all := v1alpha1.Variables{Env: map[string]v1alpha1.Text{}}
	for range rapid.IntRange(0, 3).Draw(t, "variables") {
		all.Env[varName.Draw(t, "variable")] = v1alpha1.Text(anyText.Draw(t, "value"))
	}
	for range rapid.IntRange(0, 2).Draw(t, "sources") {
		all.EnvFrom = append(all.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}})
	}
	return all
}

func drawResources(t *rapid.T, names ...corev1.ResourceName) v1alpha1.Resources {
	all := v1alpha1.Resources{}
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 2).Draw(t, "resources") {
		all[name] = drawAmount(t)
	}
	return all
}

func drawAmount(t *rapid.T) v1alpha1.Amount {
	return v1alpha1.MustParseAmount(rapid.SampledFrom([]string{"0", "1", "8", "500m", "1.5Gi", "16Gi", "1e3"}).Draw(t, "amount"))
}

// stores fails unless the API server stores the object, and fills in its defaults.
func stores(t *rapid.T, schema runschema.Schema, kind string, object any) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatalf("%v", err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	created, err := schema.Create(u)
	if err != nil {
		t.Fatalf("the API server refuses %s: %v", kind, err)
	}
	convert(t, created, object)
}

// copied shares nothing with the input.
func copied(in runplan.Input) runplan.Input {
	in.Run, in.Application = in.Run.DeepCopy(), in.Application.DeepCopy()
	in.Sizes, in.DataSets = slices.Clone(in.Sizes), slices.Clone(in.DataSets)
	for i := range in.Sizes {
		in.Sizes[i] = *in.Sizes[i].DeepCopy()
	}
	for i := range in.DataSets {
		in.DataSets[i] = *in.DataSets[i].DeepCopy()
	}
	return in
}
