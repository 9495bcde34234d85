// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// component is an object to wrap. Its pod templates are typed, and the rest is not, because the
// types of operators write fields that only they set.
type component map[string]any

// podSetAnnotations is the prefix of annotations that Kueue reads from pod templates.
const podSetAnnotations = "kueue.x-k8s.io/podset-"

// priorityClasses are the platform's, which team namespaces allow.
var priorityClasses = map[v1alpha1.Priority]string{
	v1alpha1.PriorityLow:    "low-priority",
	"":                      "default-priority",
	v1alpha1.PriorityNormal: "default-priority",
	v1alpha1.PriorityHigh:   "high-priority",
}

// pod is the template of the pods that run the program, in a container with this name.
func (j job) pod(role, container string, command []string, env ...corev1.EnvVar) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: j.labels(), Annotations: withPrefix(j.Run.Annotations, podSetAnnotations)},
		Spec: corev1.PodSpec{
			PriorityClassName: priorityClasses[j.Run.Spec.Priority],
			NodeSelector:      j.size.NodeSelector,
			Volumes:           j.data.volumes,
			Containers: []corev1.Container{{
				Name:                     container,
				Image:                    j.Application.Spec.Image,
				Command:                  command,
				EnvFrom:                  slices.Concat(j.data.envFrom, j.Application.Spec.EnvFrom, j.Run.Spec.EnvFrom),
				Env:                      append(env, j.env()...),
				Resources:                corev1.ResourceRequirements{Requests: j.size.PerWorker, Limits: j.size.PerWorker},
				VolumeMounts:             j.data.mounts,
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
		},
	}
	template.Labels[v1alpha1.RoleLabel] = role
	maps.Copy(template.Labels, j.data.labels)
	j.addCode(&template.Spec)
	j.addCopies(&template.Spec)
	if secret := j.Application.Spec.ImagePullSecret; secret != "" {
		template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: secret}}
	}
	if s := j.Application.Spec.SecurityContext; s != nil {
		template.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: s.RunAsUser, RunAsGroup: s.RunAsGroup, FSGroup: s.FSGroup}
	}
	return template
}

// env are the variables of the platform, of the inputs and then, by name, the author's.
func (j job) env() []corev1.EnvVar {
	all := []corev1.EnvVar{
		{Name: v1alpha1.ReservedVariables + "RUN", Value: j.Run.Name},
		{Name: v1alpha1.ReservedVariables + "WORKERS", Value: strconv.Itoa(int(j.size.Workers))},
	}
	if j.Step != nil {
		all = append(all, corev1.EnvVar{Name: v1alpha1.ReservedVariables + "STEP", Value: j.Step.Name})
	}
	own := variables(j.Input)
	if _, set := own[unbuffered]; !set && j.backend() != v1alpha1.PyTorchJob {
		all = append(all, corev1.EnvVar{Name: unbuffered, Value: "1"})
	}
	all = append(all, j.placesOfData()...)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		all = append(all, corev1.EnvVar{Name: name, Value: literal(string(own[name]))})
	}
	return all
}

// unbuffered makes Python write its output at once. The training operator sets it itself.
const unbuffered = "PYTHONUNBUFFERED"
