// SPDX-License-Identifier: Apache-2.0

// Package runplan answers what is created for a Run: an AppWrapper, or sentences that say why
// there is none. It is pure: the same input gives the same bytes. The input has passed the schema
// of its kinds.
package runplan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Input is all that a plan depends on.
type Input struct {
	Run *v1alpha1.Run
	// Step is set if the plan is that of one step. The Run is then as the step sees it: ForStep.
	Step *v1alpha1.Step
	// Application is the one that the Run names, nil if there is none.
	Application *v1alpha1.Application
	// Applications are those of the namespace of Application. Only a workflow reads them.
	Applications []v1alpha1.Application
	Sizes        []v1alpha1.RunSizeConfiguration
	// DataSets are those of the Run's namespace.
	DataSets []v1alpha1.DataSet
	// Outline plans of the steps of a workflow have the kinds of what is wrapped, and nothing else of it:
	// all together they may be large, and each is planned again when it starts.
	Outline bool
	// Datashim are the names of Datashim's own Datasets in the Run's namespace.
	Datashim []string
	Settings Settings
}

// Settings are the platform's.
type Settings struct {
	// GPUResourceName is the resource that a size means by gpu.
	GPUResourceName string
	// Gang makes PodGroups for pods that no operator groups.
	Gang bool
	// AgentImage is of the init containers that fetch what a program needs, and of brokers.
	AgentImage string
	// Datashim: what is no DataSet may be a Dataset of Datashim, which mounts it.
	Datashim bool
	// BrokerResources are requested for the broker of a work queue.
	BrokerResources corev1.ResourceList
	// BrokerFSGroup is the group that the volume of a broker belongs to, nil for none, where the
	// Application has no fsGroup.
	BrokerFSGroup *int64
}

// DefaultSettings are those of a platform whose administrator changed nothing.
func DefaultSettings() Settings {
	group := int64(agentUser)
	return Settings{
		GPUResourceName: "nvidia.com/gpu", Gang: true, BrokerFSGroup: &group,
		BrokerResources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
	}
}

// Planned is what is created for a Run.
type Planned struct {
	// Step is whose AppWrapper it is, nil unless the Run is a workflow.
	Step *v1alpha1.Step
	// Unused says which fields of a workflow's Application none of its steps uses, and is empty if there
	// are none.
	Unused     string
	AppWrapper *v1beta2.AppWrapper
	// Size is what the Run's pods get.
	Size Size
	// Resolved is what the status of the Run says of it.
	Resolved v1alpha1.Resolved
}

// Plan returns what is created for a Run of one program, or all problems that are in the way.
func Plan(in Input) (*Planned, []Problem) {
	if problems := elsewhere(in); len(problems) > 0 {
		return nil, problems
	}
	if in.Application == nil {
		return nil, []Problem{applicationNotFound(in.Run)}
	}
	components, known := archetypes[in.Application.Spec.API]
	if !known {
		return nil, []Problem{impossible("api must be %s, and is %s", archetypesBut(""), in.Application.Spec.API)}
	}
	if problems := hopeless(variables(in), in.Application.Spec.Code); len(problems) > 0 {
		return nil, problems
	}
	size, problems := sizeOf(in)
	data, wrong := dataOf(in)
	store, missing := storeOf(in)
	problems = slices.Concat(problems, wrong, missing, repoProblems(in), withoutAgent(in, data), unfit(in, size), prefixProblems(in))
	if len(problems) > 0 {
		return nil, problems
	}
	j := job{Input: in, name: in.appWrapperName(), size: size, data: data, store: store}
	aw, err := j.appWrapper(append(j.codeFiles(), components(j)...))
	if err != nil {
		return nil, []Problem{problem(Refused, "%v", err)}
	}
	if problems := refused(aw); len(problems) > 0 {
		return nil, problems
	}
	return &Planned{Step: in.Step, AppWrapper: aw, Size: size, Resolved: j.resolved()}, nil
}

// refused are the reasons for which the AppWrapper would not be stored.
func refused(aw *v1beta2.AppWrapper) []Problem {
	text, err := json.Marshal(aw)
	if err != nil {
		return []Problem{problem(Refused, "%v", err)}
	}
	if len(text) > largest {
		return []Problem{tooLong(fmt.Sprintf("%d KiB", len(text)>>10))}
	}
	var problems []Problem
	for _, refusal := range admissionrules.ValidateCreate(aw, admissionrules.DefaultLimits) {
		problems = append(problems, problem(Refused, "%v", refusal))
	}
	return problems
}

// archetypes make the components of a job, in the order in which they are created.
var archetypes = map[v1alpha1.API]func(job) []component{
	v1alpha1.APITorch: job.torch,
	v1alpha1.APIRay:   job.ray,
	v1alpha1.APIShell: job.shell,
	// It cannot be a step.
	v1alpha1.APIWorkQueue: job.workQueue,
}

// job is a Run with what was found for it.
type job struct {
	Input
	name string // of the AppWrapper, and what it wraps
	size Size
	data data
	// store has the tasks of a work queue, and is nil for others.
	store *v1alpha1.DataSet
}

func (j job) resolved() v1alpha1.Resolved {
	return v1alpha1.Resolved{
		ApplicationGeneration: j.Application.Generation,
		Size:                  j.size.Name,
		Workers:               j.size.Workers,
		PerWorker:             j.size.PerWorker,
		Queue:                 j.Run.Spec.QueueName,
		PriorityClass:         priorityClasses[j.Run.Spec.Priority],
		Repo:                  j.Application.Spec.Repo,
	}
}

// holdOnFailure is the time in which the reason of a failure can be read from the pods.
const holdOnFailure = "30s"

func (j job) appWrapper(components []component) (*v1beta2.AppWrapper, error) {
	aw := &v1beta2.AppWrapper{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta2.GroupVersion.String(), Kind: v1beta2.AppWrapperKind},
		ObjectMeta: metav1.ObjectMeta{
			Name:        j.name,
			Namespace:   j.Run.Namespace,
			Labels:      j.labels(),
			Annotations: map[string]string{v1beta2.DeletionOnFailureGracePeriodAnnotation: holdOnFailure},
		},
	}
	maps.Copy(aw.Annotations, withPrefix(j.Run.Annotations, v1beta2.AnnotationPrefix))
	maps.Copy(aw.Annotations, j.graceAnnotations(aw.Annotations))
	if j.Step != nil && j.Step.Retries != nil {
		aw.Annotations[v1beta2.RetryLimitAnnotation] = strconv.Itoa(int(*j.Step.Retries))
	}
	if queue := j.Run.Spec.QueueName; queue != "" {
		aw.Labels[v1beta2.QueueNameLabel] = queue
	}
	// A Run that is only planned has no UID, and can own nothing.
	if j.Run.UID != "" {
		isController := true
		aw.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.RunKind, Name: j.Run.Name, UID: j.Run.UID, Controller: &isController,
		}}
	}
	for _, c := range components {
		raw, err := json.Marshal(c) // with keys in order
		if err != nil {
			return nil, fmt.Errorf("cannot encode a component: %w", err)
		}
		aw.Spec.Components = append(aw.Spec.Components, v1beta2.AppWrapperComponent{Template: runtime.RawExtension{Raw: raw}})
	}
	return aw, nil
}

// labels are those of the AppWrapper and of its pods.
func (j job) labels() map[string]string {
	all := map[string]string{
		v1alpha1.RunLabel:         labelValue(j.Run.Name),
		v1alpha1.ApplicationLabel: labelValue(j.Application.Name),
		v1alpha1.ArchetypeLabel:   labelValue(string(j.Application.Spec.API)),
	}
	if j.Step != nil {
		all[v1alpha1.StepLabel] = j.Step.Name
	}
	return all
}

// CopiedAnnotations are the prefixes of a Run's annotations that become those of its AppWrapper or
// its pods.
var CopiedAnnotations = []string{v1beta2.AnnotationPrefix, podSetAnnotations}

func withPrefix(annotations map[string]string, prefix string) map[string]string {
	found := maps.Clone(annotations)
	maps.DeleteFunc(found, func(name, _ string) bool { return !strings.HasPrefix(name, prefix) })
	return found
}

// unfit are problems of a Run and an Application that each schema alone does not see.
func unfit(in Input, size Size) []Problem {
	var problems []Problem
	app := in.Application.Spec
	if app.API == v1alpha1.APIRay {
		return unfitRay(in)
	}
	if size.Name != "" && size.Workers < 1 {
		problems = append(problems, impossible("a %s Run needs at least one worker: set workers", app.API))
	}
	if app.API != v1alpha1.APITorch {
		return problems
	}
	if options := in.Run.Spec.Options; options != nil && strings.Contains(strings.TrimSpace(*options), "\n") {
		problems = append(problems, impossible("the options of a torch Run are one line, because torchrun gets them"))
	}
	if withoutLauncher(strings.TrimSpace(job{Input: in}.line())) == "" {
		problems = append(problems, impossible("the command of Application %s only starts Python: add the program", in.Application.Name))
	}
	for _, name := range setByTorch {
		if _, set := variables(in)[name]; set {
			problems = append(problems, impossible("the variable %s tells the workers of a torch Run apart, and is set for each: leave it out", name))
		}
	}
	return problems
}

// ApplicationNamespace is where the Application of a Run is. A Run whose author may not get it there
// is not created.
func ApplicationNamespace(run *v1alpha1.Run) string {
	return cmp.Or(run.Spec.Application.Namespace, run.Namespace)
}

// elsewhere: a step names an Application of another namespace than the workflow's. Nobody has asked
// whether the author of the Run may get it.
func elsewhere(in Input) []Problem {
	if in.Step == nil || in.Step.Application.Namespace == "" {
		return nil
	}
	app, here := in.Step.Application, ApplicationNamespace(in.Run)
	if app.Namespace == here {
		return nil
	}
	return []Problem{impossible("Application %s is in namespace %s and has to be in the workflow's%s: copy it", app.Name, app.Namespace, comma(here))}
}

func applicationNotFound(run *v1alpha1.Run) Problem {
	return problem(ApplicationNotFound, "there is no Application %s%s yet", run.Spec.Application.Name, inNamespace(ApplicationNamespace(run)))
}
