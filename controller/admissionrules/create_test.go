// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// appWrapper is AppWrapper "a" in namespace "blue" with these components, each a YAML flow
// mapping.
func appWrapper(t *testing.T, components ...string) *v1beta2.AppWrapper {
	t.Helper()
	aw := &v1beta2.AppWrapper{}
	text := "metadata: {name: a, namespace: blue}\nspec:\n  components:\n"
	for _, component := range components {
		text += "  - " + component + "\n"
	}
	if err := yaml.UnmarshalStrict([]byte(text), aw); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return aw
}

const (
	podTemplate = `{spec: {containers: [{name: c, image: i}]}}`
	job         = `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 2, template: ` + podTemplate + `}}`
	pyTorchJob  = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {generateName: p-}, spec: {pytorchReplicaSpecs: ` +
		`{Master: {template: ` + trainer + `}, Worker: {replicas: 3, template: ` + trainer + `}}}}`
	trainer = `{spec: {containers: [{name: pytorch, image: i}]}}`
	service = `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {}}`
	custom  = `{apiVersion: example.com/v1, kind: Custom, metadata: {name: c}, spec: {pods: [{template: ` + podTemplate + `}]}}`
)

func component(template string) string { return "{template: " + template + "}" }

func declared(podSets, template string) string {
	return "{podSets: " + podSets + ", template: " + template + "}"
}

func TestCreateAcceptsWhatCanBeDeployed(t *testing.T) {
	for name, components := range map[string][]string{
		"a Job":                               {component(job)},
		"a PyTorchJob with a generated name":  {component(pyTorchJob)},
		"a Service beside a Job":              {component(service), component(job)},
		"two objects with generated names":    {component(pyTorchJob), component(pyTorchJob)},
		"an elastic PyTorchJob":               {component(strings.Replace(pyTorchJob, "spec: {", "spec: {elasticPolicy: {maxReplicas: 9}, ", 1))},
		"declared pod sets that agree":        {declared("[{path: template.spec.template, replicas: 2}]", job)},
		"a declared kind that nobody knows":   {declared("[{path: 'template.spec.pods[0].template'}]", custom)},
		"a pod set of no pods":                {declared("[{path: 'template.spec.pods[0].template', replicas: 0}]", custom)},
		"the AppWrapper's namespace, spelled": {component(strings.Replace(job, "name: j", "name: j, namespace: blue", 1))},
	} {
		t.Run(name, func(t *testing.T) {
			if problems := ValidateCreate(appWrapper(t, components...), DefaultLimits); len(problems) > 0 {
				t.Error(problems.ToAggregate())
			}
		})
	}
}

func TestCreateRefusesWhatCannotBeDeployed(t *testing.T) {
	for name, tc := range map[string]struct {
		components []string
		field      string
		kind       field.ErrorType
	}{
		"a template without a kind": {
			[]string{component(`{apiVersion: v1, metadata: {name: x}}`)}, "spec.components[0].template", field.ErrorTypeInvalid},
		"an AppWrapper in an AppWrapper": {
			[]string{component(job), component(`{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: x}}`)},
			"spec.components[1].template", field.ErrorTypeForbidden},
		"a version of a kind whose pods nobody would count": {
			[]string{declared("[{path: template.spec.headGroupSpec.template}]", `{apiVersion: ray.io/v1alpha1, kind: RayCluster, metadata: {name: r}, spec: `+
				`{headGroupSpec: {template: `+podTemplate+`}, workerGroupSpecs: [{replicas: 100, template: `+podTemplate+`}]}}`)},
			"spec.components[0].template.apiVersion", field.ErrorTypeNotSupported},
		"another namespace": {
			[]string{component(strings.Replace(job, "name: j", "name: j, namespace: red", 1))},
			"spec.components[0].template.metadata.namespace", field.ErrorTypeForbidden},
		"an object without any name": {
			[]string{component(strings.Replace(job, "name: j", "labels: {}", 1))},
			"spec.components[0].template.metadata.name", field.ErrorTypeRequired},
		"two objects of one name": {
			[]string{component(job), component(job)}, "spec.components[1].template.metadata.name", field.ErrorTypeDuplicate},
		"an object that belongs to another": {
			[]string{component(strings.Replace(job, "name: j", "name: j, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: u, controller: true}]", 1))},
			"spec.components[0].template.metadata.ownerReferences", field.ErrorTypeForbidden},
		"an object with a finalizer, which would keep the quota": {
			[]string{component(job), component(strings.Replace(service, "name: s", "name: s, finalizers: [example.com/mine]", 1))},
			"spec.components[1].template.metadata.finalizers", field.ErrorTypeForbidden},
		"a PyTorchJob that an autoscaler would enlarge": {
			[]string{component(strings.Replace(pyTorchJob, "spec: {", "spec: {elasticPolicy: {maxReplicas: 9, metrics: []}, ", 1))},
			"spec.components[0].template", field.ErrorTypeInvalid},
		"a role of no pods, of which the operator makes one": {
			[]string{component(strings.Replace(pyTorchJob, "replicas: 3", "replicas: 0", 1))},
			"spec.components[0].template", field.ErrorTypeInvalid},
		"pods that carry the label of another AppWrapper": {
			[]string{component(strings.Replace(job, "template: {", "template: {metadata: {labels: {"+v1beta2.AppWrapperLabel+": b}}, ", 1))},
			"spec.components[0].template.spec.template.metadata.labels[" + v1beta2.AppWrapperLabel + "]", field.ErrorTypeForbidden},
		"pods whose metadata is no object": {
			[]string{component(strings.Replace(job, "template: {", "template: {metadata: none, ", 1))},
			"spec.components[0].template.spec.template.metadata", field.ErrorTypeTypeInvalid},
		"a pod set without a path": {
			[]string{declared("[{path: ''}]", custom)}, "spec.components[0].podSets[0].path", field.ErrorTypeRequired},
		"a path that leads nowhere": {
			[]string{declared("[{path: template.spec.template}]", custom)}, "spec.components[0].podSets[0].path", field.ErrorTypeInvalid},
		"a negative number of replicas": {
			[]string{declared("[{path: 'template.spec.pods[0].template', replicas: -1}]", custom)},
			"spec.components[0].podSets[0].replicas", field.ErrorTypeInvalid},
		"a Job of a negative width": {
			[]string{component(strings.Replace(job, "parallelism: 2", "parallelism: -2", 1))}, "spec.components[0].template", field.ErrorTypeInvalid},
		"a misspelt field in an inferred pod template": {
			[]string{component(strings.Replace(job, "image", "imgae", 1))}, "spec.components[0].template", field.ErrorTypeInvalid},
		"a replica count that is no number": {
			[]string{component(strings.Replace(pyTorchJob, "replicas: 3", "replicas: three", 1))}, "spec.components[0].template", field.ErrorTypeInvalid},
		"a Ray cluster that an autoscaler would enlarge": {
			[]string{declared("[{path: template.spec.headGroupSpec.template}]", `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r}, spec: `+
				`{enableInTreeAutoscaling: true, headGroupSpec: {template: `+podTemplate+`}}}`)},
			"spec.components[0].template", field.ErrorTypeInvalid},
		"declared pod sets that disagree": {
			[]string{declared("[{path: template.spec.template, replicas: 3}]", job)}, "spec.components[0].podSets", field.ErrorTypeInvalid},
		"nothing that makes pods": {
			[]string{component(service)}, "spec.components", field.ErrorTypeInvalid},
		"more pod sets than Kueue takes": {
			[]string{component(pyTorchJob), component(pyTorchJob), component(pyTorchJob), component(pyTorchJob), component(job)},
			"spec.components", field.ErrorTypeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			problems := ValidateCreate(appWrapper(t, tc.components...), DefaultLimits)
			if len(problems) != 1 || problems[0].Field != tc.field || problems[0].Type != tc.kind {
				t.Errorf("want one problem of type %q at %s, got %v", tc.kind, tc.field, problems)
			}
		})
	}
}

func TestCreateCollectsTheProblemsOfAllComponents(t *testing.T) {
	aw := appWrapper(t, component(`{apiVersion: v1, metadata: {name: x}}`), declared("[{path: ''}]", custom))
	aw.Annotations = map[string]string{v1beta2.RetryLimitAnnotation: "three"}
	if problems := ValidateCreate(aw, DefaultLimits); len(problems) != 3 {
		t.Errorf("want three problems, got %v", problems)
	}
}

func TestCreateCountsPodSetsUpToTheGivenLimit(t *testing.T) {
	aw := appWrapper(t, component(pyTorchJob), component(pyTorchJob), component(pyTorchJob), component(pyTorchJob), component(job))
	if problems := ValidateCreate(aw, Limits{Components: 5, PodSets: 9}); len(problems) > 0 {
		t.Error(problems.ToAggregate())
	}
}

func TestCreateCountsComponentsUpToTheGivenLimit(t *testing.T) {
	aw := appWrapper(t, component(service), component(job))
	expectField(t, ValidateCreate(aw, Limits{Components: 2, PodSets: 1}), "")
	expectField(t, ValidateCreate(aw, Limits{Components: 1, PodSets: 1}), "spec.components")
}

func TestCreateChecksTheName(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	const atName = "metadata.name"
	for name, tc := range map[string]struct {
		name, generateName string
		queued             bool
		components         int
		wrong              string
	}{
		"63 characters without a queue":              {name: long(63), components: 1},
		"64 characters":                              {name: long(64), components: 1, wrong: atName},
		"a dot without a queue":                      {name: "a.b", components: 1},
		"a dot in a queue":                           {name: "a.b", queued: true, components: 1, wrong: atName},
		"61 characters in a queue":                   {name: long(61), queued: true, components: 1},
		"62 characters in a queue":                   {name: long(62), queued: true, components: 1, wrong: atName},
		"61 characters with ten pod sets":            {name: long(61), queued: true, components: 10},
		"61 characters with eleven pod sets":         {name: long(61), queued: true, components: 11, wrong: atName},
		"60 characters with eleven pod sets":         {name: long(60), queued: true, components: 11},
		"a generated name without a queue":           {generateName: long(100), components: 1},
		"a prefix of 56 characters in a queue":       {generateName: long(56), queued: true, components: 1},
		"a prefix of 57 characters in a queue":       {generateName: long(57), queued: true, components: 1, wrong: "metadata.generateName"},
		"a prefix with a dot in a queue":             {generateName: "a.b-", queued: true, components: 1, wrong: "metadata.generateName"},
		"a long prefix, cut to the same, in a queue": {generateName: long(90), queued: true, components: 1, wrong: "metadata.generateName"},
	} {
		t.Run(name, func(t *testing.T) {
			var components []string
			for i := range tc.components {
				components = append(components, component(strings.Replace(job, "name: j", fmt.Sprintf("name: j%d", i), 1)))
			}
			aw := appWrapper(t, components...)
			aw.Name, aw.GenerateName = tc.name, tc.generateName
			if tc.queued {
				aw.Labels = map[string]string{v1beta2.QueueNameLabel: "q"}
			}
			expectField(t, ValidateCreate(aw, Limits{Components: 18, PodSets: 18}), tc.wrong)
		})
	}
}

func expectField(t *testing.T, problems field.ErrorList, wrong string) {
	t.Helper()
	if wrong == "" {
		if len(problems) > 0 {
			t.Errorf("unexpected problems: %v", problems.ToAggregate())
		}
		return
	}
	if len(problems) != 1 || problems[0].Field != wrong {
		t.Errorf("want one problem at %s, got %v", wrong, problems)
	}
}

func TestCreateChecksAnnotations(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation, value string
		wrong             bool
	}{
		"a duration":                         {v1beta2.WarmupGracePeriodDurationAnnotation, "1h30m", false},
		"whole days":                         {v1beta2.SuccessTTLAnnotation, "7d", false},
		"a duration without a unit":          {v1beta2.WarmupGracePeriodDurationAnnotation, "90", true},
		"a limit":                            {v1beta2.RetryLimitAnnotation, "0", false},
		"a negative limit":                   {v1beta2.RetryLimitAnnotation, "-1", true},
		"exit codes":                         {v1beta2.TerminalExitCodesAnnotation, "1,2", false},
		"an exit code that is no number":     {v1beta2.RetryableExitCodesAnnotation, "1,x", true},
		"annotations of others are not ours": {"example.com/retryLimit", "x", false},
	} {
		t.Run(name, func(t *testing.T) {
			aw := appWrapper(t, component(job))
			aw.Annotations = map[string]string{tc.annotation: tc.value}
			wrong := ""
			if tc.wrong {
				wrong = "metadata.annotations[" + tc.annotation + "]"
			}
			expectField(t, ValidateCreate(aw, DefaultLimits), wrong)
		})
	}
}
