// SPDX-License-Identifier: Apache-2.0

package generator_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// A settings file and a Run that say the same start the same pods, so that a program works with
// both.
func TestARunStartsWhatTheGeneratorStarts(t *testing.T) {
	for name, row := range map[string]struct {
		backend       v1alpha1.TorchBackend
		workers, gpus int
	}{
		"a PyTorchJob":            {v1alpha1.PyTorchJob, 3, 8},
		"a PyTorchJob of one pod": {v1alpha1.PyTorchJob, 1, 1},
		"a JobSet":                {v1alpha1.JobSet, 3, 8},
		"a JobSet of one pod":     {v1alpha1.JobSet, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			rendered := rendered(t, map[string]any{
				"jobName": "digits", "containerImage": "digits:1", "backend": strings.ToLower(string(row.backend)), "queueName": "blue-queue",
				"numPods": row.workers, "numGpusPerPod": row.gpus, "numCpusPerPod": 2, "totalMemoryPerPod": "16Gi", "priority": "high-priority",
				"mainProgram":          `train.py --name "a b" '$(x)' $$`,
				"environmentVariables": []any{map[string]any{"name": "A", "value": "b"}},
				// A Run has no setting for what follows.
				"unhealthyNodes": map[string]any{}, "deletionOnFailureGracePeriodDuration": "30s",
			})
			planned := plannedAs(t, row.backend, int32(row.workers), int32(row.gpus))
			if diff := cmp.Diff(outline(t, rendered.appWrapper), outline(t, planned)); diff != "" {
				t.Errorf("they differ (-generator +run):\n%s", diff)
			}
		})
	}
}

func plannedAs(t *testing.T, backend v1alpha1.TorchBackend, workers, gpus int32) *v1beta2.AppWrapper {
	t.Helper()
	planned, problems := runplan.Plan(runplan.Input{
		Run: &v1alpha1.Run{
			ObjectMeta: metav1.ObjectMeta{Name: "digits"},
			Spec:       v1alpha1.RunSpec{Size: "own", SupportsGPU: true, Priority: v1alpha1.PriorityHigh, QueueName: "blue-queue"},
		},
		Application: &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: "digits"}, Spec: v1alpha1.ApplicationSpec{
			API: v1alpha1.APITorch, Image: "digits:1", Command: `python3 train.py --name "a b"`, Options: `'$(x)' $$`, SupportsGPU: true,
			Variables: v1alpha1.Variables{Env: map[string]v1alpha1.Text{"A": "b"}}, Torch: &v1alpha1.Torch{Backend: backend},
		}},
		Sizes: []v1alpha1.RunSizeConfiguration{{Spec: v1alpha1.RunSizeConfigurationSpec{Config: map[string]v1alpha1.Size{
			"own": {Workers: workers, CPU: v1alpha1.MustParseAmount("2"), Memory: v1alpha1.MustParseAmount("16Gi"), GPU: gpus},
		}}}},
		Settings: runplan.DefaultSettings(),
	})
	if planned == nil {
		t.Fatal(problems)
	}
	// Two names are others, so that no other Run makes objects of the same names.
	names := strings.NewReplacer("digits.gang", "digits-gang", "digits-nodes", "digits")
	for i := range planned.AppWrapper.Spec.Components {
		raw := &planned.AppWrapper.Spec.Components[i].Template.Raw
		*raw = []byte(names.Replace(string(*raw)))
	}
	return planned.AppWrapper
}

// jobOutline is what a job starts, without what only one of the two adds.
type jobOutline struct {
	Queue, Hold string
	Components  []component
}

type component struct {
	Kind, Name string
	Pods       []podSet
}

type podSet struct {
	Count     int32
	Container string
	Launch    string // the last line of the script
	Env       []corev1.EnvVar
	Resources corev1.ResourceRequirements
	Volumes   []corev1.Volume
	Mounts    []corev1.VolumeMount
	Group     string
	Restart   corev1.RestartPolicy
	Priority  string
}

func outline(t *testing.T, aw *v1beta2.AppWrapper) jobOutline {
	t.Helper()
	all := jobOutline{Queue: aw.Labels[v1beta2.QueueNameLabel], Hold: aw.Annotations[v1beta2.DeletionOnFailureGracePeriodAnnotation]}
	for _, c := range aw.Spec.Components {
		template, err := admissionrules.Template(&c)
		if err != nil {
			t.Fatal(err)
		}
		podSets, err := admissionrules.PodSets(nil, template)
		if err != nil {
			t.Fatal(err)
		}
		made := component{Kind: template.GetKind(), Name: template.GetName()}
		for _, set := range podSets {
			pod, err := admissionrules.PodTemplate(template, set.Path)
			if err != nil {
				t.Fatal(err)
			}
			made.Pods = append(made.Pods, podSetOf(set.Count(), pod))
		}
		all.Components = append(all.Components, made)
	}
	return all
}

func podSetOf(count int32, pod corev1.PodTemplateSpec) podSet {
	c := pod.Spec.Containers[0]
	script := strings.Split(strings.TrimRight(expanded(c.Command[2]), "\n"), "\n")
	found := podSet{
		Count: count, Container: c.Name, Launch: script[len(script)-1], Resources: c.Resources, Volumes: pod.Spec.Volumes, Mounts: c.VolumeMounts,
		Group: pod.Labels["scheduling.x-k8s.io/pod-group"], Restart: pod.Spec.RestartPolicy, Priority: pod.Spec.PriorityClassName,
	}
	for _, variable := range c.Env {
		if !strings.HasPrefix(variable.Name, v1alpha1.ReservedVariables) {
			found.Env = append(found.Env, variable)
		}
	}
	for name, amount := range found.Resources.Requests { // equal amounts may be spelt in two ways
		found.Resources.Requests[name] = resource.MustParse(amount.String())
		found.Resources.Limits[name] = resource.MustParse(amount.String())
	}
	return found
}
