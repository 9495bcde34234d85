// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// dataFolder is where the agent copies a bucket to.
const dataFolder = "/codeflare/data"

// Keys of the Secret of a bucket, and how their values are called in the agent's environment.
const (
	accessKeyID         = "accessKeyID"
	secretAccessKey     = "secretAccessKey"
	accessKeyVariable   = v1alpha1.ReservedVariables + "ACCESS_KEY_ID"
	secretValueVariable = v1alpha1.ReservedVariables + "SECRET_ACCESS_KEY"
	authorities         = "ca.crt"
	authorityVariable   = v1alpha1.ReservedVariables + "AUTHORITIES"
)

// bucketCopy fills a volume from a bucket.
type bucketCopy struct {
	name, volume string
	bucket       *v1alpha1.S3Source
}

// copyLimit is that of the schema if nothing has passed it.
func copyLimit(bucket *v1alpha1.S3Source) resource.Quantity {
	if bucket.CopyLimit == nil {
		return resource.MustParse("10Gi")
	}
	return bucket.CopyLimit.DeepCopy().Quantity
}

// addCopies gives a pod what it needs of buckets, before the program starts. Only the kubelet reads
// the Secret, and only the agent gets the keys.
func (j job) addCopies(pod *corev1.PodSpec) {
	for _, c := range j.data.copies {
		container := j.agent(c.name, []corev1.VolumeMount{{Name: c.volume, MountPath: dataFolder}}, c.command()...)
		container.Env = keysOf(c.bucket)
		pod.InitContainers = append(pod.InitContainers, container)
	}
}

func (c bucketCopy) command() []string {
	limit := copyLimit(c.bucket)
	return append([]string{"copy", dataFolder, "--limit=" + limit.String()}, placeOf(c.bucket)...)
}

// placeOf are the options of the agent that say where a bucket is.
func placeOf(bucket *v1alpha1.S3Source) []string {
	var options []string
	for _, option := range []struct{ name, value string }{
		{"endpoint", bucket.Endpoint}, {"bucket", bucket.Bucket}, {"prefix", bucket.Prefix}, {"region", bucket.Region},
	} {
		if option.value != "" {
			options = append(options, "--"+option.name+"="+literal(option.value))
		}
	}
	return options
}

// keysOf are variables of the agent. Only the kubelet reads the Secret.
func keysOf(bucket *v1alpha1.S3Source) []corev1.EnvVar {
	name := bucket.SecretName
	if name == "" {
		return nil
	}
	authority, optional := fromSecret(authorityVariable, name, authorities), true
	authority.ValueFrom.SecretKeyRef.Optional = &optional
	return []corev1.EnvVar{fromSecret(accessKeyVariable, name, accessKeyID), fromSecret(secretValueVariable, name, secretAccessKey), authority}
}

func fromSecret(variable, secret, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key,
	}}}
}

// tell says in variables where a bucket is, and with which keys it is read.
func (d *data) tell(dataSet v1alpha1.DataSet, at map[string]string) []Problem {
	bucket := dataSet.Spec.S3
	if bucket == nil {
		return []Problem{impossible("DataSet %s is a volume and cannot be variables: use mount", dataSet.Name)}
	}
	prefix := strings.NewReplacer("-", "_", ".", "_").Replace(dataSet.Name) + "_"
	if prefix[0] >= '0' && prefix[0] <= '9' {
		return []Problem{impossible("DataSet %s cannot be variables, because their names cannot begin with a digit: use mount, or rename it", dataSet.Name)}
	}
	if other, taken := at[prefix]; taken {
		return []Problem{impossible("input %s and %s both set variables that begin with %s: remove one", dataSet.Name, other, prefix)}
	}
	at[prefix] = "input " + dataSet.Name
	for _, v := range []struct{ name, value string }{
		{"endpoint", bucket.Endpoint}, {"bucket", bucket.Bucket}, {"prefix", bucket.Prefix}, {"region", bucket.Region},
	} {
		d.env = append(d.env, corev1.EnvVar{Name: prefix + v.name, Value: literal(v.value)})
	}
	if bucket.SecretName != "" {
		d.envFrom = append(d.envFrom, corev1.EnvFromSource{Prefix: prefix, SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: bucket.SecretName},
		}})
	}
	return nil
}

// placesOfData are the variables of inputs that the author does not set.
func (j job) placesOfData() []corev1.EnvVar {
	own := variables(j.Input)
	return slices.DeleteFunc(slices.Clone(j.data.env), func(v corev1.EnvVar) bool {
		_, set := own[v.Name]
		return set
	})
}
