// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// needed is an object of the core API without which pods do not start.
type needed struct{ kind, name string }

// missing has a note for each claim, Secret and ConfigMap that the pods of an AppWrapper need and
// that is not there. It may come later.
func missing(ctx context.Context, c client.Reader, aw *v1beta2.AppWrapper) (notes []string, err error) {
	all, err := neededBy(aw)
	if err != nil {
		return nil, err
	}
	for _, n := range all {
		// Metadata is enough: what is in a Secret is not read.
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(n.kind))
		err := c.Get(ctx, client.ObjectKey{Namespace: aw.Namespace, Name: n.name}, object)
		if apierrors.IsNotFound(err) {
			notes = append(notes, fmt.Sprintf("there is no %s %s in namespace %s: its pods need it", n.kind, n.name, aw.Namespace))
		} else if err != nil {
			notes = append(notes, fmt.Sprintf("skipped a check: cannot look up %s %s: %v", n.kind, n.name, printing.OneLineError(err)))
		}
	}
	return notes, nil
}

// neededBy are the objects that the pods of an AppWrapper need, each once, without those that it wraps itself.
func neededBy(aw *v1beta2.AppWrapper) ([]needed, error) {
	decoded := admissionrules.Decode(aw)
	pods, err := decoded.Pods()
	if err != nil {
		return nil, err
	}
	var all []needed
	for _, p := range pods {
		for _, n := range neededByPod(p.Template.Spec) {
			if !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	brought := func(n needed) bool {
		return slices.ContainsFunc(decoded.Templates, func(o *unstructured.Unstructured) bool { return o.GetKind() == n.kind && o.GetName() == n.name })
	}
	return slices.DeleteFunc(all, brought), nil
}

// neededByPod is what a pod cannot start without. What it names as optional may be missing.
func neededByPod(pod corev1.PodSpec) []needed {
	var all []needed
	for _, volume := range pod.Volumes {
		all = append(all, neededByVolume(volume.VolumeSource)...)
	}
	for _, secret := range pod.ImagePullSecrets {
		all = append(all, needed{"Secret", secret.Name})
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, from := range container.EnvFrom {
			all = append(all, neededByVariables(from)...)
		}
		for _, variable := range container.Env {
			all = append(all, neededByVariable(variable.ValueFrom)...)
		}
	}
	return all
}

func neededByVolume(volume corev1.VolumeSource) (all []needed) {
	if claim := volume.PersistentVolumeClaim; claim != nil {
		all = append(all, needed{"PersistentVolumeClaim", claim.ClaimName})
	}
	if s := volume.Secret; s != nil {
		all = append(all, required("Secret", s.SecretName, s.Optional)...)
	}
	if m := volume.ConfigMap; m != nil {
		all = append(all, required("ConfigMap", m.Name, m.Optional)...)
	}
	if volume.Projected == nil {
		return all
	}
	for _, source := range volume.Projected.Sources {
		if s := source.Secret; s != nil {
			all = append(all, required("Secret", s.Name, s.Optional)...)
		}
		if m := source.ConfigMap; m != nil {
			all = append(all, required("ConfigMap", m.Name, m.Optional)...)
		}
	}
	return all
}

func neededByVariable(from *corev1.EnvVarSource) []needed {
	switch {
	case from == nil:
	case from.SecretKeyRef != nil:
		return required("Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Optional)
	case from.ConfigMapKeyRef != nil:
		return required("ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Optional)
	}
	return nil
}

func neededByVariables(from corev1.EnvFromSource) []needed {
	switch {
	case from.SecretRef != nil:
		return required("Secret", from.SecretRef.Name, from.SecretRef.Optional)
	case from.ConfigMapRef != nil:
		return required("ConfigMap", from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
	}
	return nil
}

func required(kind, name string, optional *bool) []needed {
	if optional != nil && *optional {
		return nil
	}
	return []needed{{kind, name}}
}
