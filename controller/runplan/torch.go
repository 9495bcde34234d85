// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"cmp"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// setByTorch are variables that differ from worker to worker. The training operator sets them for
// a PyTorchJob; a JobSet has them in its template.
var setByTorch = []string{"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"}

// backend is the kind that makes the pods of a torch Run, and empty for others.
func (j job) backend() v1alpha1.TorchBackend {
	if j.Application.Spec.API != v1alpha1.APITorch {
		return ""
	}
	if torch := j.Application.Spec.Torch; torch != nil {
		return cmp.Or(torch.Backend, v1alpha1.PyTorchJob)
	}
	return v1alpha1.PyTorchJob
}

func (j job) torch() []component {
	command := []string{"sh", "-c", literal(torchrun(j.line(), j.size.GPUs))}
	if j.backend() == v1alpha1.JobSet {
		return j.jobSet(command)
	}
	replicas := map[string]any{"Master": j.replicas("master", 1, command)}
	if workers := j.size.Workers - 1; workers > 0 { // the operator makes a pod for a role of none
		replicas["Worker"] = j.replicas("worker", workers, command)
	}
	return []component{{
		"apiVersion": "kubeflow.org/v1",
		"kind":       "PyTorchJob",
		"metadata":   map[string]any{"name": j.name},
		"spec":       map[string]any{"pytorchReplicaSpecs": replicas},
	}}
}

func (j job) replicas(role string, pods int32, command []string) map[string]any {
	return map[string]any{"replicas": pods, "restartPolicy": corev1.RestartPolicyNever, "template": j.pod(role, "pytorch", command)}
}

// jobSet has one indexed Job, of which the pod of index 0 is the master.
func (j job) jobSet(command []string) []component {
	template := j.pod("node", "pytorch", command, j.rendezvous()...)
	var components []component
	if j.Settings.Gang && j.size.Workers > 1 {
		components = append(components, j.gang(j.size.Workers, template))
	}
	return append(components, component{
		"apiVersion": "jobset.x-k8s.io/v1alpha2",
		"kind":       "JobSet",
		"metadata":   map[string]any{"name": j.name},
		"spec": map[string]any{
			"network": map[string]any{"subdomain": j.subdomain()},
			"replicatedJobs": []any{map[string]any{
				"name": "node", "replicas": 1, "template": map[string]any{"spec": j.indexed(template)},
			}},
		},
	})
}

// subdomain is that of the pods of a JobSet, and the name of its Service. By default that would be the
// JobSet's, which the Service of another Run may have.
func (j job) subdomain() string { return j.name + "-nodes" }

// gang makes one group of the pods of some templates, which start together.
func (j job) gang(pods int32, templates ...corev1.PodTemplateSpec) component {
	name := beside(j.name, "gang")
	for _, template := range templates {
		template.Labels["scheduling.x-k8s.io/pod-group"] = name
	}
	return component{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1",
		"kind":       "PodGroup",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"minMember": pods},
	}
}

// indexed is the spec of a Job whose pods have numbers. The AppWrapper controller does the retries.
func (j job) indexed(template corev1.PodTemplateSpec) map[string]any {
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return map[string]any{
		"parallelism": j.size.Workers, "completions": j.size.Workers, "completionMode": "Indexed", "backoffLimit": 0, "template": template,
	}
}

// rendezvous are the variables of setByTorch for a JobSet.
func (j job) rendezvous() []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "MASTER_ADDR", Value: fmt.Sprintf("%s-node-0-0.%s", j.name, j.subdomain())},
		{Name: "MASTER_PORT", Value: "23456"},
		{Name: "WORLD_SIZE", Value: strconv.Itoa(int(j.size.Workers))},
		{Name: "RANK", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			FieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']",
		}}},
	}
}
