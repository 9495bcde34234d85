// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// assemble makes the object of component i from its template, from what Kueue wants its
// pods to have, and from what the administrator has all pods have.
func assemble(aw *v1beta2.AppWrapper, i int, all podtemplate.Edit) (*unstructured.Unstructured, error) {
	object, err := admissionrules.Template(&aw.Spec.Components[i])
	if err != nil {
		return nil, err
	}
	if own := object.GetNamespace(); own != "" && own != aw.Namespace {
		return nil, fmt.Errorf("its namespace %q is not the AppWrapper's", own)
	}
	object.SetNamespace(aw.Namespace)
	name := recordedName(aw, i)
	if name == "" {
		name = kinds.ObjectName(object, aw.UID, i)
	}
	object.SetName(name)
	object.SetGenerateName("")
	addLabel(object, v1beta2.AppWrapperLabel, aw.Name)
	annotate(object, v1beta2.AttemptAnnotation, attempt(aw))
	if aw.Labels[v1beta2.QueueNameLabel] != "" {
		kinds.For(object.GroupVersionKind()).PrepareForQueue(object.Object)
	}
	if err := editPodTemplates(object, aw, i, all); err != nil {
		return nil, err
	}
	return object, own(object, aw)
}

// addLabel respects a value that the template has.
func addLabel(object *unstructured.Unstructured, key, value string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	if _, ok := labels[key]; !ok {
		labels[key] = value
		object.SetLabels(labels)
	}
}

func annotate(object *unstructured.Unstructured, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}

func editPodTemplates(object *unstructured.Unstructured, aw *v1beta2.AppWrapper, i int, all podtemplate.Edit) error {
	infos := aw.Spec.Components[i].PodSetInfos
	for j, podSet := range aw.Status.ComponentStatus[i].PodSets {
		edit := all
		edit.LastWords = aw.Annotations[v1beta2.LastWordsAnnotation] != "false"
		for _, node := range aw.Status.AvoidedNodes {
			edit.AvoidNodes = append(edit.AvoidNodes, node.Name)
		}
		edit.Labels = podtemplate.Labels(aw.Name, i)
		edit.Labels[v1beta2.AppWrapperPodSetLabel], edit.Labels[v1beta2.AttemptLabel] = strconv.Itoa(j), attemptLabel(aw)
		if j < len(infos) {
			edit.Info = infos[j]
		}
		template, err := podtemplate.Find(object.Object, podSet.Path)
		if err != nil {
			return err
		}
		if err := podtemplate.Apply(template, edit); err != nil {
			return fmt.Errorf("path %q: %w", podSet.Path, err)
		}
	}
	return nil
}

// own makes the AppWrapper the controller of the object. Kueue follows this
// reference to find out that the object needs no quota of its own.
func own(object *unstructured.Unstructured, aw *v1beta2.AppWrapper) error {
	if other := metav1.GetControllerOf(object); other != nil {
		return fmt.Errorf("its template has an owner already, %s %s", other.Kind, other.Name)
	}
	reference := metav1.NewControllerRef(aw, v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind))
	object.SetOwnerReferences(append(object.GetOwnerReferences(), *reference))
	return nil
}

// attempt names the present attempt by when it began, in the words of the status: only one clock
// has a part in it.
func attempt(aw *v1beta2.AppWrapper) string {
	return condition(aw.Status, v1beta2.ResourcesDeployed).LastTransitionTime.UTC().Format(time.RFC3339)
}
