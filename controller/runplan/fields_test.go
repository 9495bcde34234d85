// SPDX-License-Identifier: Apache-2.0

package runplan_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// changes change one field each. The Run of fullInput is then planned in another way, or not at all.
var changes = map[string]func(in *runplan.Input){
	"Application.api":                        func(in *runplan.Input) { in.Application.Spec.API = v1alpha1.APIShell },
	"Application.image":                      func(in *runplan.Input) { in.Application.Spec.Image = "b" },
	"Application.command":                    func(in *runplan.Input) { in.Application.Spec.Command = "b" },
	"Application.options":                    func(in *runplan.Input) { in.Application.Spec.Options = "b" },
	"Application.env":                        func(in *runplan.Input) { in.Application.Spec.Env["B"] = "b" },
	"Application.envFrom":                    func(in *runplan.Input) { in.Application.Spec.EnvFrom = secret("b") },
	"Application.code.name":                  func(in *runplan.Input) { in.Application.Spec.Code[0].Name = "b" },
	"Application.code.source":                func(in *runplan.Input) { in.Application.Spec.Code[0].Source = "b" },
	"Application.inputs.name":                func(in *runplan.Input) { in.Application.Spec.Inputs[0].Name = "nfs" },
	"Application.inputs.namespace":           func(in *runplan.Input) { in.Application.Spec.Inputs[0].Namespace = "red" },
	"Application.inputs.sizes":               func(in *runplan.Input) { in.Application.Spec.Inputs[1].Sizes["a"] = "nfs" },
	"Application.inputs.defaultSize":         func(in *runplan.Input) { in.Application.Spec.Inputs[1].DefaultSize = "b" },
	"Application.inputs.mountPath":           func(in *runplan.Input) { in.Application.Spec.Inputs[0].MountPath = "/b" },
	"Application.size":                       func(in *runplan.Input) { in.Application.Spec.Size, in.Run.Spec.Size = "md", "" },
	"Application.supportsGpu":                func(in *runplan.Input) { in.Application.Spec.SupportsGPU = false },
	"Application.imagePullSecret":            func(in *runplan.Input) { in.Application.Spec.ImagePullSecret = "b" },
	"Application.securityContext.runAsUser":  func(in *runplan.Input) { in.Application.Spec.SecurityContext.RunAsUser = id(9) },
	"Application.securityContext.runAsGroup": func(in *runplan.Input) { in.Application.Spec.SecurityContext.RunAsGroup = id(9) },
	"Application.securityContext.fsGroup":    func(in *runplan.Input) { in.Application.Spec.SecurityContext.FSGroup = id(9) },
	"Application.torch.backend":              func(in *runplan.Input) { in.Application.Spec.Torch.Backend = v1alpha1.JobSet },
	"DataSet.pvc.claimName":                  func(in *runplan.Input) { in.DataSets[0].Spec.PVC.ClaimName = "b" },
	"DataSet.pvc.subPath":                    func(in *runplan.Input) { in.DataSets[0].Spec.PVC.SubPath = "b" },
	"DataSet.nfs.server":                     func(in *runplan.Input) { in.DataSets[1].Spec.NFS.Server = "b" },
	"DataSet.nfs.path":                       func(in *runplan.Input) { in.DataSets[1].Spec.NFS.Path = "b" },
	"Application.inputs.useas":               func(in *runplan.Input) { in.Application.Spec.Inputs[3].UseAs = v1alpha1.UseAsConfigMap },
	"DataSet.s3.endpoint":                    func(in *runplan.Input) { in.DataSets[2].Spec.S3.Endpoint = "b" },
	"DataSet.s3.bucket":                      func(in *runplan.Input) { in.DataSets[2].Spec.S3.Bucket = "b" },
	"DataSet.s3.prefix":                      func(in *runplan.Input) { in.DataSets[2].Spec.S3.Prefix = "b" },
	"DataSet.s3.region":                      func(in *runplan.Input) { in.DataSets[2].Spec.S3.Region = "b" },
	"DataSet.s3.secretName":                  func(in *runplan.Input) { in.DataSets[2].Spec.S3.SecretName = "b" },
	"DataSet.s3.copyLimit":                   func(in *runplan.Input) { in.DataSets[2].Spec.S3.CopyLimit = amount("9") },
	"DataSet.readOnly":                       func(in *runplan.Input) { in.DataSets[0].Spec.ReadOnly = true },
	"Run.application.name":                   func(in *runplan.Input) { in.Run.Spec.Application.Name, in.Application = "b", nil },
	"Run.options":                            func(in *runplan.Input) { in.Run.Spec.Options = new(string) },
	"Run.env":                                func(in *runplan.Input) { in.Run.Spec.Env["A"] = "b" },
	"Run.envFrom":                            func(in *runplan.Input) { in.Run.Spec.EnvFrom = secret("b") },
	"Run.size":                               func(in *runplan.Input) { in.Run.Spec.Size = "md" },
	"Run.workers":                            func(in *runplan.Input) { in.Run.Spec.Workers = new(int32) },
	"Run.resources":                          func(in *runplan.Input) { in.Run.Spec.Resources["cpu"] = v1alpha1.MustParseAmount("9") },
	"Run.supportsGpu":                        func(in *runplan.Input) { in.Run.Spec.SupportsGPU = false },
	"Run.priority":                           func(in *runplan.Input) { in.Run.Spec.Priority = v1alpha1.PriorityHigh },
	"Run.input":                              func(in *runplan.Input) { in.Run.Spec.Input = "a" },
	"Run.queueName":                          func(in *runplan.Input) { in.Run.Spec.QueueName = "b" },
	"RunSizeConfiguration.priority":          func(in *runplan.Input) { *in.Sizes[0].Spec.Priority = 9 },
	"RunSizeConfiguration.config.workers":    size(func(s *v1alpha1.Size) { s.Workers = 9 }),
	"RunSizeConfiguration.config.cpu":        size(func(s *v1alpha1.Size) { s.CPU = v1alpha1.MustParseAmount("9") }),
	"RunSizeConfiguration.config.memory":     size(func(s *v1alpha1.Size) { s.Memory = v1alpha1.MustParseAmount("9") }),
	"RunSizeConfiguration.config.gpu":        size(func(s *v1alpha1.Size) { s.GPU = 9 }),
	"RunSizeConfiguration.config.resources": size(func(s *v1alpha1.Size) {
		s.Resources = v1alpha1.Resources{"a.b/c": v1alpha1.MustParseAmount("9")}
	}),
	"RunSizeConfiguration.config.nodeSelector": size(func(s *v1alpha1.Size) { s.NodeSelector = map[string]string{"a": "b"} }),
}

// changesOfRay are the same for rayInput.
var changesOfRay = map[string]func(in *runplan.Input){
	"Application.requirements": func(in *runplan.Input) { in.Application.Spec.Requirements = []v1alpha1.Requirement{"b"} },
	"Application.ray.headResources": func(in *runplan.Input) {
		in.Application.Spec.Ray = &v1alpha1.Ray{HeadResources: v1alpha1.Resources{"cpu": v1alpha1.MustParseAmount("9")}}
	},
}

// changesOfWorkflows are the same for workflowInput.
var changesOfWorkflows = map[string]func(in *runplan.Input){
	"Application.steps": func(in *runplan.Input) {
		in.Application.Spec.Workflow, in.Application.Spec.Steps = nil, []string{"app", "app"}
	},
	"Application.workflow.steps.name":                  step(func(s *v1alpha1.Step) { s.Name = "c" }),
	"Application.workflow.steps.application.name":      step(func(s *v1alpha1.Step) { s.Application.Name = "c" }),
	"Application.workflow.steps.application.namespace": step(func(s *v1alpha1.Step) { s.Application.Namespace = "red" }),
	"Application.workflow.steps.options":               step(func(s *v1alpha1.Step) { s.Options = new(string) }),
	"Application.workflow.steps.size":                  step(func(s *v1alpha1.Step) { s.Size = "md" }),
	"Application.workflow.steps.dependsOn":             step(func(s *v1alpha1.Step) { s.DependsOn = nil }),
	"Application.workflow.steps.when":                  step(func(s *v1alpha1.Step) { s.When = v1alpha1.WhenAlways }),
	"Application.workflow.steps.retries":               step(func(s *v1alpha1.Step) { s.Retries = new(int32) }),
}

// step changes the second of two steps.
func step(change func(*v1alpha1.Step)) func(*runplan.Input) {
	return func(in *runplan.Input) { change(&in.Application.Spec.Workflow.Steps[1]) }
}

// changesOfRepo are of repoInput: code is in one place only.
var changesOfRepo = map[string]func(in *runplan.Input){
	"Application.repo":                 func(in *runplan.Input) { in.Application.Spec.Repo += "/b" },
	"Application.repoSecret.name":      func(in *runplan.Input) { in.Application.Spec.RepoSecret.Name = "b" },
	"Application.repoSecret.namespace": func(in *runplan.Input) { in.Application.Spec.RepoSecret.Namespace = "red" },
}

// changesOfQueues are of queueInput.
var changesOfQueues = map[string]func(in *runplan.Input){
	"Application.workqueue.maxAttempts":        func(in *runplan.Input) { in.Application.Spec.WorkQueue.MaxAttempts = 9 },
	"Application.workqueue.taskTimeoutSeconds": func(in *runplan.Input) { in.Application.Spec.WorkQueue.TaskTimeoutSeconds = 9 },
	"Application.workqueue.leaseSeconds":       func(in *runplan.Input) { in.Application.Spec.WorkQueue.LeaseSeconds = 99 },
	"Run.inbox":                                func(in *runplan.Input) { in.Run.Spec.Inbox = "a" },
	"Run.queue.dataset.name":                   func(in *runplan.Input) { in.Run.Spec.Queue.DataSet.Name = "nfs" },
	"Run.queue.open":                           func(in *runplan.Input) { in.Run.Spec.Queue.Open = true },
	"Run.queue.maxFailed":                      func(in *runplan.Input) { in.Run.Spec.Queue.MaxFailed = 9 },
}

// noPart are fields about the end of a Run, which is no part of a plan, the one that says which
// Application is given, and those that nothing read in 2023 either.
var noPart = []string{
	"Run.activeDeadlineSeconds", "Run.ttlSecondsAfterFinished", "Run.cancel", "Run.application.namespace",
	"Application.minCpu", "Application.minMemory", "Application.minGpu",
}

// tried are all changes, each with the input that they are made to.
var tried = []struct {
	given   func() runplan.Input
	changes map[string]func(in *runplan.Input)
}{{fullInput, changes}, {rayInput, changesOfRay}, {workflowInput, changesOfWorkflows}, {repoInput, changesOfRepo}, {queueInput, changesOfQueues}}

// A field on which no plan depends would be a promise that nobody keeps.
func TestEveryFieldMatters(t *testing.T) {
	missing := map[string]bool{}
	for kind, spec := range map[string]any{
		"Application": v1alpha1.ApplicationSpec{}, "DataSet": v1alpha1.DataSetSpec{}, "Run": v1alpha1.RunSpec{},
		"RunSizeConfiguration": v1alpha1.RunSizeConfigurationSpec{},
	} {
		for _, field := range leaves(reflect.TypeOf(spec), kind) {
			missing[field] = !slices.Contains(noPart, field)
		}
	}
	for _, these := range tried {
		plain := shown(t, these.given())
		for field, change := range these.changes {
			in := these.given()
			change(&in)
			if shown(t, in) == plain {
				t.Errorf("nothing depends on %s", field)
			}
			if !missing[field] {
				t.Errorf("%s is no field, or was tried before", field)
			}
			missing[field] = false
		}
	}
	for field, is := range missing {
		if is {
			t.Errorf("%s is not tried", field)
		}
	}
}

// leaves are the paths of the fields of our own types.
func leaves(of reflect.Type, path string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map && of.Elem().Kind() == reflect.Struct {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[v1alpha1.Run]().PkgPath() {
		return []string{path}
	}
	var all []string
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && options == "inline" {
			all = append(all, leaves(field.Type, path)...)
		} else {
			all = append(all, leaves(field.Type, path+"."+name)...)
		}
	}
	return all
}

// shown is a plan or its problems, as text.
func shown(t *testing.T, in runplan.Input) string {
	t.Helper()
	planned, problems := runplan.Plans(in)
	if planned == nil {
		return fmt.Sprint(problems)
	}
	text, err := json.Marshal(planned)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// workflowInput is a Run of two steps of fullInput's Application.
func workflowInput() runplan.Input {
	in := fullInput()
	app := v1alpha1.ApplicationReference{Name: "app"}
	in.Run.Spec.Options = nil
	in.Applications = []v1alpha1.Application{*in.Application}
	in.Applications[0].Name = app.Name
	in.Application = &v1alpha1.Application{}
	in.Application.Spec.API = v1alpha1.APIWorkflow
	in.Application.Spec.Workflow = &v1alpha1.Workflow{Steps: []v1alpha1.Step{
		{Name: "a", Application: app}, {Name: "b", Application: app, DependsOn: []string{"a"}},
	}}
	return in
}

// fullInput is a Run that is planned, with something everywhere.
func fullInput() runplan.Input {
	in := given(func(app *v1alpha1.Application, run *v1alpha1.Run) {
		app.Spec.Options, app.Spec.SupportsGPU, app.Spec.Torch = "a", true, &v1alpha1.Torch{}
		app.Spec.Variables = v1alpha1.Variables{Env: map[string]v1alpha1.Text{}, EnvFrom: secret("a")}
		app.Spec.SecurityContext = &v1alpha1.SecurityContext{RunAsUser: id(1), RunAsGroup: id(2), FSGroup: id(3)}
		app.Spec.Code = []v1alpha1.CodeFile{{Name: "a", Source: "a"}}
		app.Spec.Inputs = []v1alpha1.Input{
			{Name: "pvc", MountPath: "/a"},
			{Sizes: map[string]v1alpha1.DataSetName{"a": "pvc", "b": "none", "xs": "nfs"}, DefaultSize: "a", MountPath: "/sizes"},
			{Sizes: map[string]v1alpha1.DataSetName{"a": "pvc", "xs": "nfs"}, MountPath: "/more"},
			{Name: "s3"},
		}
		run.Spec.SupportsGPU, run.Spec.Size, run.Spec.Resources = true, "own", v1alpha1.Resources{}
		run.Spec.Variables = v1alpha1.Variables{Env: map[string]v1alpha1.Text{"A": "a"}, EnvFrom: secret("a")}
	})
	first, second := int32(1), int32(2)
	own := v1alpha1.Size{Workers: 2, CPU: v1alpha1.MustParseAmount("1"), Memory: v1alpha1.MustParseAmount("1Gi"), GPU: 1}
	other := own
	other.Workers = 3
	in.Sizes = []v1alpha1.RunSizeConfiguration{
		{Spec: v1alpha1.RunSizeConfigurationSpec{Priority: &first, Config: map[string]v1alpha1.Size{"own": own}}},
		{Spec: v1alpha1.RunSizeConfigurationSpec{Priority: &second, Config: map[string]v1alpha1.Size{"own": other, "md": other}}},
	}
	in.DataSets = []v1alpha1.DataSet{
		{ObjectMeta: metav1.ObjectMeta{Name: "pvc"}, Spec: v1alpha1.DataSetSpec{PVC: &v1alpha1.PVCSource{ClaimName: "a"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "nfs"}, Spec: v1alpha1.DataSetSpec{NFS: &v1alpha1.NFSSource{Server: "a", Path: "/a"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "s3"}, Spec: v1alpha1.DataSetSpec{S3: &v1alpha1.S3Source{Endpoint: "a", Bucket: "a"}}},
	}
	return in
}

func rayInput() runplan.Input {
	in := fullInput()
	in.Application.Spec.API = v1alpha1.APIRay
	return in
}

// repoInput is fullInput with its code in a repository.
func repoInput() runplan.Input {
	in := fullInput()
	in.Application.Spec.Code = nil
	in.Application.Spec.Repo = "https://git.example.com/org/repo/tree/main"
	in.Application.Spec.RepoSecret = &v1alpha1.SecretReference{Name: "a"}
	return in
}

func queueInput() runplan.Input {
	in := fullInput()
	in.Application.Spec.API, in.Application.Spec.WorkQueue = v1alpha1.APIWorkQueue, &v1alpha1.WorkQueue{}
	in.Run.Spec.Queue = &v1alpha1.RunQueue{DataSet: v1alpha1.DataSetReference{Name: "pvc"}}
	return in
}

func size(change func(*v1alpha1.Size)) func(*runplan.Input) {
	return func(in *runplan.Input) {
		own := in.Sizes[0].Spec.Config["own"]
		change(&own)
		in.Sizes[0].Spec.Config["own"] = own
	}
}

func secret(name string) []corev1.EnvFromSource {
	return []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
}

func amount(text string) *v1alpha1.Amount {
	parsed := v1alpha1.MustParseAmount(text)
	return &parsed
}

func id(number int64) *int64 { return &number }
