// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// slimAppWrapper leaves what a look reads. Templates are large, and are needed whole for
// two things only: to find the pod sets of a new AppWrapper, which stays as it is, and to
// create components, for which the AppWrapper is read from the API server anyway.
func (v *vocabulary) slimAppWrapper(object any) (any, error) {
	aw, ok := object.(*v1beta2.AppWrapper)
	if !ok {
		return object, nil
	}
	aw.ManagedFields = nil
	if !podSetsAreRecorded(aw) {
		return aw, nil
	}
	aw.Labels = nil
	maps.DeleteFunc(aw.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, v1beta2.AnnotationPrefix) })
	for i := range aw.Spec.Components {
		whole := &aw.Spec.Components[i]
		slim := v1beta2.AppWrapperComponent{Template: whole.Template}
		if head, err := headOf(whole.Template.Raw); err == nil { // else a look will tell what is wrong with it
			slim.Template.Raw = head
		}
		if admitted := len(whole.PodSetInfos); admitted > 0 {
			slim.PodSetInfos = make([]v1beta2.AppWrapperPodSetInfo, admitted)
		}
		aw.Spec.Components[i] = slim
	}
	aw.Namespace = shared(v, aw.Namespace)
	v.share(aw.Finalizers)
	aw.Status.Conditions = v.slimConditions(aw.Status.Conditions)
	for i := range aw.Status.ComponentStatus {
		v.slimComponentStatus(&aw.Status.ComponentStatus[i])
	}
	return aw, nil
}

func (v *vocabulary) share(words []string) {
	for i := range words {
		words[i] = shared(v, words[i])
	}
}

func (v *vocabulary) slimComponentStatus(c *v1beta2.AppWrapperComponentStatus) {
	c.Kind, c.APIVersion, c.Conditions = shared(v, c.Kind), shared(v, c.APIVersion), v.slimConditions(c.Conditions)
	for i := range c.PodSets {
		c.PodSets[i].Path = shared(v, c.PodSets[i].Path)
	}
}

// slimConditions are no longer than they are many: who decodes a list makes room for more.
func (v *vocabulary) slimConditions(whole []metav1.Condition) []metav1.Condition {
	for i := range whole {
		c := &whole[i]
		c.Type, c.Status, c.Reason = shared(v, c.Type), shared(v, c.Status), shared(v, c.Reason)
	}
	return slices.Clone(whole)
}

func (v *vocabulary) slimOwners(owners []metav1.OwnerReference) []metav1.OwnerReference {
	for i := range owners {
		owners[i].APIVersion, owners[i].Kind = shared(v, owners[i].APIVersion), shared(v, owners[i].Kind)
	}
	return owners
}

// head is what tells which object a template makes.
type head struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Metadata   struct {
		Name         string `json:"name,omitempty"`
		GenerateName string `json:"generateName,omitempty"`
		Namespace    string `json:"namespace,omitempty"`
	} `json:"metadata"`
}

func headOf(template []byte) ([]byte, error) {
	var h head
	if err := kjson.UnmarshalCaseSensitivePreserveInts(template, &h); err != nil {
		return nil, err
	}
	return json.Marshal(h)
}

// slimComponent leaves whose the component is, and the words of its status and of its
// conditions, in which it says how it fares.
func (v *vocabulary) slimComponent(object any) (any, error) {
	switch whole := object.(type) {
	case *unstructured.Unstructured:
		slim := &unstructured.Unstructured{Object: map[string]any{}}
		slim.SetAPIVersion(shared(v, whole.GetAPIVersion()))
		slim.SetKind(shared(v, whole.GetKind()))
		v.keepMetadata(whole, slim)
		if status, ok := whole.Object["status"].(map[string]any); ok {
			slim.Object["status"] = v.slimStatus(status)
		}
		return slim, nil
	case *metav1.PartialObjectMetadata:
		slim := &metav1.PartialObjectMetadata{TypeMeta: whole.TypeMeta}
		v.keepMetadata(whole, slim)
		return slim, nil
	}
	return object, nil
}

func (v *vocabulary) keepMetadata(whole, slim metav1.Object) {
	slim.SetName(whole.GetName())
	slim.SetNamespace(shared(v, whole.GetNamespace()))
	slim.SetUID(whole.GetUID())
	slim.SetResourceVersion(whole.GetResourceVersion())
	slim.SetDeletionTimestamp(whole.GetDeletionTimestamp())
	slim.SetFinalizers(whole.GetFinalizers())
	slim.SetOwnerReferences(v.slimOwners(whole.GetOwnerReferences()))
	if metav1.GetControllerOfNoCopy(whole) == nil { // whose it was the label tells
		slim.SetLabels(ourLabels(whole))
	}
}

func ourLabels(object metav1.Object) map[string]string {
	ours := map[string]string{}
	for _, key := range []string{v1beta2.AppWrapperLabel, v1beta2.AppWrapperComponentLabel} {
		if value, ok := object.GetLabels()[key]; ok {
			ours[key] = value
		}
	}
	return ours
}

func (v *vocabulary) slimStatus(whole map[string]any) map[string]any {
	slim := map[string]any{}
	for key, value := range whole {
		if word, ok := value.(string); ok {
			slim[shared(v, key)] = word
		}
	}
	conditions, _ := whole["conditions"].([]any)
	kept := make([]any, 0, len(conditions))
	for i := range conditions {
		if condition, ok := conditions[i].(map[string]any); ok {
			kept = append(kept, map[string]any{"type": condition["type"], "status": condition["status"], "reason": condition["reason"]})
		}
	}
	if len(kept) > 0 {
		slim["conditions"] = kept
	}
	return slim
}

// slimPod leaves what podOf and the verdict on a bare pod read, and what a delete needs.
func (v *vocabulary) slimPod(pod *corev1.Pod) *corev1.Pod {
	slim := &corev1.Pod{}
	slim.Name, slim.Namespace, slim.UID = pod.Name, shared(v, pod.Namespace), pod.UID
	slim.ResourceVersion, slim.DeletionTimestamp = pod.ResourceVersion, pod.DeletionTimestamp
	slim.OwnerReferences, slim.Finalizers = v.slimOwners(pod.OwnerReferences), pod.Finalizers
	v.share(slim.Finalizers)
	slim.Status.Phase = shared(v, pod.Status.Phase)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget { // few pods have it
			slim.Status.Conditions = []corev1.PodCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	slim.Labels = ourLabels(pod)
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Terminated != nil {
			ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: container.State.Terminated.ExitCode}}
			slim.Status.ContainerStatuses = append(slim.Status.ContainerStatuses, corev1.ContainerStatus{State: ended})
		}
	}
	return slim
}
