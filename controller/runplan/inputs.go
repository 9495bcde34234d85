// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

const (
	// dataSetsFolder has a folder for each input without a mountPath.
	dataSetsFolder = "/mnt/datasets"
	// sharedMemory is where programs on one node exchange data.
	sharedMemory = "/dev/shm"
)

// sizesOfData are the sizes of an input, from small to large.
var sizesOfData = []string{"xxs", "xs", "sm", "md", "lg", "xl", "xxl"}

// data are the volumes of a Run and where they are mounted, and variables instead.
type data struct {
	volumes []corev1.Volume
	mounts  []corev1.VolumeMount
	copies  []bucketCopy
	env     []corev1.EnvVar
	envFrom []corev1.EnvFromSource
	// labels of pods are read by Datashim.
	labels map[string]string
}

func (d *data) add(mount corev1.VolumeMount, source corev1.VolumeSource) {
	d.volumes = append(d.volumes, corev1.Volume{Name: mount.Name, VolumeSource: source})
	d.mounts = append(d.mounts, mount)
}

// dataOf finds the inputs of a Run, and gives torch and ray their shared memory.
func dataOf(in Input) (data, []Problem) {
	var all data
	var problems []Problem
	if api := in.Application.Spec.API; api == v1alpha1.APITorch || api == v1alpha1.APIRay {
		all.add(corev1.VolumeMount{Name: "dshm", MountPath: sharedMemory},
			corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})
	}
	at := ownFolders(in) // which input has a folder, or the prefix of variables
	for i, input := range in.Application.Spec.Inputs {
		dataSet, wrong := dataSetOf(in, input)
		if name, is := ofDatashim(in, input, wrong); is {
			problems = append(problems, all.ask(name, input, at)...)
			continue
		}
		if len(wrong) > 0 {
			problems = append(problems, wrong...)
			continue
		}
		if input.UseAs == v1alpha1.UseAsConfigMap {
			problems = append(problems, all.tell(dataSet, at)...)
			continue
		}
		folder := path.Clean(cmp.Or(input.MountPath, path.Join(dataSetsFolder, dataSet.Name)))
		if other, taken := at[folder]; taken {
			problems = append(problems, impossible("input %s and %s are both mounted at %s: set another mountPath", dataSet.Name, other, folder))
			continue
		}
		at[folder] = "input " + dataSet.Name
		all.mount(i, folder, dataSet.Spec)
	}
	return all, append(problems, all.hidden(at)...)
}

// ownFolders are those that the platform mounts, and what is in them.
func ownFolders(in Input) map[string]string {
	at := map[string]string{}
	switch api := in.Application.Spec.API; api {
	case v1alpha1.APIRay:
		at[sharedMemory], at[commandFolder] = "the shared memory of ray", "the command of ray"
	case v1alpha1.APITorch:
		at[sharedMemory] = "the shared memory of torch"
	case v1alpha1.APIWorkQueue:
		at[agentFolder], at[tasksFolder] = "the agent", "the tasks"
	}
	if hasCode(in) {
		at[workFolder] = "the code"
	}
	return at
}

// hidden are mounts in copies, in which no folder can be made for them.
func (d *data) hidden(at map[string]string) []Problem {
	var problems []Problem
	for _, outer := range d.mounts {
		isCopy := slices.ContainsFunc(d.copies, func(c bucketCopy) bool { return c.volume == outer.Name })
		for _, inner := range d.mounts {
			if isCopy && strings.HasPrefix(inner.MountPath, outer.MountPath+"/") {
				problems = append(problems, impossible("%s would be mounted in %s, which is read-only: set another mountPath", at[inner.MountPath], at[outer.MountPath]))
			}
		}
	}
	return problems
}

// mount mounts the i-th input.
func (d *data) mount(i int, folder string, dataSet v1alpha1.DataSetSpec) {
	mount := corev1.VolumeMount{Name: fmt.Sprintf("input-%d", i), MountPath: folder, ReadOnly: dataSet.ReadOnly}
	d.mountVolume(mount, dataSet)
	if bucket := dataSet.S3; bucket != nil {
		mount.ReadOnly = true // what is written into a copy would be lost
		limit := copyLimit(bucket)
		d.add(mount, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}})
		d.copies = append(d.copies, bucketCopy{name: fmt.Sprintf("copy-%d", i), volume: mount.Name, bucket: bucket})
	}
}

// mountVolume mounts a claim or NFS.
func (d *data) mountVolume(mount corev1.VolumeMount, dataSet v1alpha1.DataSetSpec) {
	if claim := dataSet.PVC; claim != nil {
		mount.SubPath = claim.SubPath
		d.add(mount, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: claim.ClaimName, ReadOnly: dataSet.ReadOnly,
		}})
	}
	if nfs := dataSet.NFS; nfs != nil {
		d.add(mount, corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: nfs.Server, Path: nfs.Path, ReadOnly: dataSet.ReadOnly}})
	}
}

// dataSetOf is the DataSet of an input, of the size that the Run wants.
func dataSetOf(in Input, input v1alpha1.Input) (found v1alpha1.DataSet, problems []Problem) {
	name := cmp.Or(input.Name, sizeOfInput(input, in.Run.Spec.Input))
	if name == "" {
		sizes := strings.Join(slices.Sorted(maps.Keys(input.Sizes)), ", ")
		return found, []Problem{impossible("the sizes of an input are %s: set input of the Run to one of them", sizes)}
	}
	if input.Namespace != "" && input.Namespace != in.Run.Namespace {
		return found, []Problem{impossible("input %s is in namespace %s and has to be in the Run's%s", name, input.Namespace, comma(in.Run.Namespace))}
	}
	return in.dataSet(name, "the Application")
}

// dataSet is the one of that name, which somebody needs.
func (in Input) dataSet(name, who string) (found v1alpha1.DataSet, problems []Problem) {
	for _, dataSet := range in.DataSets {
		if dataSet.Name == name {
			return dataSet, nil
		}
	}
	return found, []Problem{problem(InputNotFound, "there is no DataSet %s%s, which %s needs", name, inNamespace(in.Run.Namespace), who)}
}

func comma(namespace string) string {
	if namespace == "" {
		return ""
	}
	return ", " + namespace
}

// sizeOfInput is the DataSet for a size of the data, empty if none is the smallest.
func sizeOfInput(input v1alpha1.Input, wanted string) string {
	for _, size := range slices.Concat([]string{wanted, input.DefaultSize}, sizesOfData) {
		if name, has := input.Sizes[size]; has {
			return string(name)
		}
	}
	return ""
}
