// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

const (
	// commandFolder has the files of a ConfigMap. The submitter, Ray and its shell quote in three
	// ways, so that what users write is in files.
	commandFolder = "/codeflare/command"
	// lineFile has the line, and environmentFile what Ray installs for it.
	lineFile, environmentFile = "main", "environment.yaml"
	// entrypoint is what Ray runs on the head.
	entrypoint = "bash " + commandFolder + "/" + lineFile
)

// submit submits the line, unless an earlier submitter has, and follows its log. KubeRay's own
// script ends well even if the line does not. This one ends with the code of the line, so that its
// last words are in the pod's termination message. KubeRay sets the variables.
const submit = `at="--address http://${RAY_DASHBOARD_ADDRESS#http://}" id=$RAY_JOB_SUBMISSION_ID
ray job status $at $id >/dev/null 2>&1 ||
  ray job submit $at --submission-id $id --no-wait --runtime-env ` + commandFolder + "/" + environmentFile + ` -- ` + entrypoint + ` || exit
ray job logs $at --follow $id || exit
end=$(ray job status $at $id 2>&1) || exit
case $end in
*"command failed with exit code "*) code=${end#*command failed with exit code }; code=${code%%[!0-9]*}; exit ${code:-1} ;;
*"' failed"*) exit 1 ;;
esac
`

// submitterRequests count for quota beside those of the cluster. The submitter takes more for a
// moment, whenever Python starts.
var (
	submitterRequests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")}
	submitterLimits   = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("512Mi")}
)

// isInteractive: an Application of ray without a command is a cluster for its users.
func isInteractive(app *v1alpha1.Application) bool {
	return app.Spec.API == v1alpha1.APIRay && strings.TrimSpace(app.Spec.Command) == ""
}

// ray makes a cluster, and lets KubeRay submit the line to it.
func (j job) ray() []component {
	cluster, components := j.rayCluster()
	if isInteractive(j.Application) {
		return append(components, component{
			"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": map[string]any{"name": j.name}, "spec": cluster,
		})
	}
	return append(components,
		component{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": j.commandName()}, "data": j.commandFiles()},
		component{
			"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": map[string]any{"name": j.name},
			"spec": map[string]any{
				"submissionMode": "K8sJobMode", "entrypoint": entrypoint, "backoffLimit": 0,
				"shutdownAfterJobFinishes": true, // Kueue insists
				"rayClusterSpec":           cluster, "submitterPodTemplate": j.submitter(),
			},
		})
}

// rayCluster is the spec of a cluster, and what is created before it.
func (j job) rayCluster() (spec map[string]any, before []component) {
	head := j.rayPod("head", "ray-head", headResources(j.Input, j.size))
	spec = map[string]any{"headGroupSpec": map[string]any{"rayStartParams": map[string]any{}, "template": head}}
	workers := j.size.Workers
	if workers == 0 {
		return spec, nil
	}
	worker := j.rayPod("worker", "ray-worker", j.size.PerWorker)
	if j.Settings.Gang {
		before = []component{j.gang(workers+1, head, worker)}
	}
	spec["workerGroupSpecs"] = []any{map[string]any{
		"groupName": "workers", "replicas": workers, "minReplicas": workers, "maxReplicas": workers,
		"rayStartParams": map[string]any{}, "template": worker,
	}}
	return spec, before
}

// rayPod runs Ray, whose command KubeRay adds.
func (j job) rayPod(role, container string, resources corev1.ResourceList) corev1.PodTemplateSpec {
	j.size.PerWorker = resources // of this pod, also of what prepares it
	template := j.pod(role, container, nil)
	if !isInteractive(j.Application) {
		j.mountCommand(&template.Spec)
	}
	return template
}

// submitter has nothing of the program but its image, who runs it, and where.
func (j job) submitter() corev1.PodTemplateSpec {
	j.data.labels = nil
	template := j.pod("submitter", "submitter", nil)
	program := template.Spec
	template.Annotations = nil // about nodes that are close to each other
	template.Spec = corev1.PodSpec{
		RestartPolicy:     corev1.RestartPolicyNever,
		PriorityClassName: program.PriorityClassName,
		NodeSelector:      program.NodeSelector,
		ImagePullSecrets:  program.ImagePullSecrets,
		SecurityContext:   program.SecurityContext,
		Containers: []corev1.Container{{
			Name: "submitter", Image: program.Containers[0].Image, Command: []string{"bash", "-c", literal(submit)},
			Resources:                corev1.ResourceRequirements{Requests: submitterRequests, Limits: submitterLimits},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		}},
	}
	j.mountCommand(&template.Spec)
	return template
}

func (j job) commandName() string { return beside(j.name, "command") }

func (j job) mountCommand(pod *corev1.PodSpec) {
	source := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: j.commandName()}}}
	pod.Volumes = append(slices.Clone(pod.Volumes), corev1.Volume{Name: "command", VolumeSource: source})
	main := &pod.Containers[0]
	main.VolumeMounts = append(slices.Clone(main.VolumeMounts), corev1.VolumeMount{Name: "command", MountPath: commandFolder, ReadOnly: true})
}

// commandFiles are JSON or, like ConfigMaps, not expanded by Kubernetes.
func (j job) commandFiles() map[string]string {
	environment := map[string]any{}
	if packages := j.Application.Spec.Requirements; len(packages) > 0 {
		environment["pip"] = packages
	}
	text, err := json.Marshal(environment)
	if err != nil {
		panic(fmt.Sprintf("cannot encode a list of strings: %v", err))
	}
	return map[string]string{lineFile: j.line(), environmentFile: string(text)}
}

// headResources are cpu and memory of the size. A head without workers gets all that they would.
func headResources(in Input, size Size) corev1.ResourceList {
	all := corev1.ResourceList{}
	for name, amount := range size.PerWorker {
		if size.Workers == 0 || name == corev1.ResourceCPU || name == corev1.ResourceMemory {
			all[name] = amount
		}
	}
	if ray := in.Application.Spec.Ray; ray != nil {
		add(all, ray.HeadResources)
	}
	return withoutNone(all)
}

// unfitRay are problems of a Run of api ray.
func unfitRay(in Input) []Problem {
	var problems []Problem
	if isInteractive(in.Application) && in.Run.Spec.Options != nil && strings.TrimSpace(*in.Run.Spec.Options) != "" {
		problems = append(problems, impossible("Application %s has no command, so that it is an interactive cluster: leave options out", in.Application.Name))
	}
	if ray := in.Application.Spec.Ray; ray != nil {
		own := corev1.ResourceList{}
		add(own, ray.HeadResources)
		if wrong := tooLarge(own); len(wrong) > 0 {
			return append(problems, wrong...)
		}
		problems = append(problems, fractions(own)...)
	}
	return problems
}
