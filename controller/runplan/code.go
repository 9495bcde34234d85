// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

const (
	// workFolder is where a program finds its code, and is when it starts.
	workFolder = "/workdir"
	// codeFolder is where the agent finds the files of a ConfigMap.
	codeFolder = "/codeflare/code"
	// codeContainer brings the code into the work folder.
	codeContainer = "code"
)

// hasCode: the program has a work folder.
func hasCode(in Input) bool { return len(in.Application.Spec.Code) > 0 }

// codeFiles is the ConfigMap of the code that an Application has in itself, if it has any.
func (j job) codeFiles() []component {
	if len(j.Application.Spec.Code) == 0 {
		return nil
	}
	files := map[string]string{}
	for _, file := range j.Application.Spec.Code {
		files[file.Name] = file.Source
	}
	return []component{{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": j.codeName()}, "data": files,
	}}
}

func (j job) codeName() string { return j.name + "-code" }

// addCode gives a pod the code of its program, in a folder that everybody may write to: programs
// run as any user, and a volume of a ConfigMap would be read-only.
func (j job) addCode(pod *corev1.PodSpec) {
	if !hasCode(j.Input) {
		return
	}
	const files = "code-files"
	work := corev1.VolumeMount{Name: "workdir", MountPath: workFolder}
	from := corev1.VolumeMount{Name: files, MountPath: codeFolder, ReadOnly: true}
	pod.InitContainers = append(pod.InitContainers, j.agent(codeContainer, []corev1.VolumeMount{from, work}, "files", codeFolder, workFolder))
	configMap := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: j.codeName()}}
	pod.Volumes = append(slices.Clip(pod.Volumes),
		corev1.Volume{Name: files, VolumeSource: corev1.VolumeSource{ConfigMap: configMap}},
		corev1.Volume{Name: work.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	program := &pod.Containers[0]
	program.WorkingDir = workFolder
	program.VolumeMounts = append([]corev1.VolumeMount{work}, program.VolumeMounts...) // inputs may be below it
}
