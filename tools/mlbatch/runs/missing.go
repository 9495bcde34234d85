// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// neededBy are the objects that the pods of an AppWrapper need, each once.
func neededBy(aw *v1beta2.AppWrapper) ([]needed, error) {
	var all []needed
	decoded := admissionrules.Decode(aw)
	for i, template := range decoded.Templates {
		if err := decoded.Errors[i]; err != nil {
			return nil, err
		}
		podSets, err := admissionrules.PodSets(aw.Spec.Components[i].DeclaredPodSets, template)
		if err != nil {
			return nil, err
		}
		for _, podSet := range podSets {
			pod, err := admissionrules.PodTemplate(template, podSet.Path)
			if err != nil {
				return nil, err
			}
			for _, n := range neededByPod(pod.Spec) {
				if !slices.Contains(all, n) {
					all = append(all, n)
				}
			}
		}
	}
	return all, nil
}

func neededByPod(pod corev1.PodSpec) []needed {
	var all []needed
	for _, volume := range pod.Volumes {
		if claim := volume.PersistentVolumeClaim; claim != nil {
			all = append(all, needed{"PersistentVolumeClaim", claim.ClaimName})
		}
		if secret := volume.Secret; secret != nil {
			all = append(all, needed{"Secret", secret.SecretName})
		}
	}
	for _, secret := range pod.ImagePullSecrets {
		all = append(all, needed{"Secret", secret.Name})
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, from := range container.EnvFrom {
			all = append(all, neededByVariables(from)...)
		}
		for _, variable := range container.Env {
			if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil {
				all = append(all, needed{"Secret", from.SecretKeyRef.Name})
			}
		}
	}
	return all
}

func neededByVariables(from corev1.EnvFromSource) []needed {
	isRequired := func(optional *bool) bool { return optional == nil || !*optional }
	if s := from.SecretRef; s != nil && isRequired(s.Optional) {
		return []needed{{"Secret", s.Name}}
	}
	if m := from.ConfigMapRef; m != nil && isRequired(m.Optional) {
		return []needed{{"ConfigMap", m.Name}}
	}
	return nil
}
