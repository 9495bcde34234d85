// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// agentProgram is its path in the agent's image.
	agentProgram = "/agent"
	// agentUser is the user of the agent's image.
	agentUser = 65532
)

// agentMemory is the least memory in which the agent can work.
var agentMemory = resource.MustParse("64Mi")

// agent is an init container that runs a command of the agent. It has no rights on its node, and
// its own user, whoever the program runs as.
func (j job) agent(name string, mounts []corev1.VolumeMount, command ...string) corev1.Container {
	no, yes := false, true
	container := corev1.Container{
		Name:                     name,
		Image:                    j.Settings.AgentImage,
		Command:                  append([]string{agentProgram}, command...),
		Resources:                j.agentResources(),
		VolumeMounts:             mounts,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no,
			ReadOnlyRootFilesystem:   &yes,
			RunAsNonRoot:             &yes,
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	// Where nobody chose a user, the image's counts, or the one that OpenShift assigns.
	if s := j.Application.Spec.SecurityContext; s != nil && s.RunAsUser != nil {
		user := int64(agentUser)
		container.SecurityContext.RunAsUser = &user
	}
	return container
}

// agentResources are the cpu and memory of the program. They cost nothing, because an init container
// and the program do not run at the same time, and Kueue counts the larger of them.
func (j job) agentResources() corev1.ResourceRequirements {
	amounts := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if amount, has := j.size.PerWorker[name]; has {
			amounts[name] = amount
		}
	}
	if memory, has := amounts[corev1.ResourceMemory]; has && memory.Cmp(agentMemory) < 0 {
		amounts[corev1.ResourceMemory] = agentMemory
	}
	return corev1.ResourceRequirements{Requests: amounts, Limits: amounts}
}

// withoutAgent: pods would have a container without an image, which no API server takes.
func withoutAgent(in Input, data data) []Problem {
	if in.Settings.AgentImage != "" || !hasCode(in) && len(data.copies) == 0 {
		return nil
	}
	return []Problem{impossible("code and data cannot be fetched, because the controller has no image for that: an administrator sets agentImage in its configuration")}
}
