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
	// secretFolder is where the agent finds user and password of a repository.
	secretFolder = "/codeflare/secret"
)

// CodeContainer is the name of the init container that brings the code. If that is in a
// repository, its termination message is the commit.
const CodeContainer = "code"

// hasCode: the program has a work folder.
func hasCode(in Input) bool {
	return len(in.Application.Spec.Code) > 0 || in.Application.Spec.Repo != ""
}

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

func (j job) codeName() string { return beside(j.name, "code") }

// addCode gives a pod the code of its program, in a folder that everybody may write to: programs
// run as any user, and a volume of a ConfigMap would be read-only.
func (j job) addCode(pod *corev1.PodSpec) {
	if !hasCode(j.Input) {
		return
	}
	from, command := j.codeSource()
	work := corev1.VolumeMount{Name: "workdir", MountPath: workFolder}
	volumes := []corev1.Volume{{Name: work.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	mounts := []corev1.VolumeMount{work}
	if from != nil {
		volumes = append(volumes, from.volume)
		mounts = append(mounts, corev1.VolumeMount{Name: from.volume.Name, MountPath: from.folder, ReadOnly: true})
	}
	pod.Volumes = slices.Concat(pod.Volumes, volumes)
	pod.InitContainers = append(pod.InitContainers, j.agent(CodeContainer, mounts, command...))
	program := &pod.Containers[0]
	program.WorkingDir = workFolder
	program.VolumeMounts = append([]corev1.VolumeMount{work}, program.VolumeMounts...) // inputs may be below it
}

// source is a volume that only the agent sees, and where.
type source struct {
	volume corev1.Volume
	folder string
}

// codeSource is where the agent has the code from, and its command.
func (j job) codeSource() (*source, []string) {
	if len(j.Application.Spec.Code) > 0 {
		files := corev1.Volume{Name: "code-files"}
		files.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: j.codeName()}}
		return &source{files, codeFolder}, []string{"files", codeFolder, workFolder}
	}
	tree, _ := TreeOf(j.Application.Spec.Repo)
	command := []string{"fetch", "--repository=" + literal(tree.Repository), "--tree=" + literal(tree.Path), "--to=" + workFolder}
	if j.Application.Spec.RepoSecret == nil {
		return nil, command
	}
	secret := corev1.Volume{Name: "repo-secret"}
	secret.Secret = &corev1.SecretVolumeSource{SecretName: j.Application.Spec.RepoSecret.Name}
	return &source{secret, secretFolder}, append(command, "--secret="+secretFolder)
}
