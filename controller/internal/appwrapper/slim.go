// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// slimAppWrapper leaves what a look reads. Templates are large, and are needed whole for
// two things only: to find the pod sets of a new AppWrapper, which stays as it is, and to
// create components, for which the AppWrapper is read from the API server anyway.
func (in *interner) slimAppWrapper(object any) (any, error) {
	aw, ok := object.(*v1beta2.AppWrapper)
	if !ok {
		return object, nil
	}
	aw.ManagedFields = nil
	if !podSetsAreRecorded(aw) {
		return aw, nil
	}
	aw.Labels = nil
	says := in.whatTemplatesSay(aw)
	says.annotate(aw)
	for i := range aw.Spec.Components {
		whole := &aw.Spec.Components[i]
		slim := v1beta2.AppWrapperComponent{Template: says.heads[i]}
		if admitted := len(whole.PodSetInfos); admitted > 0 {
			slim.PodSetInfos = make([]v1beta2.AppWrapperPodSetInfo, admitted)
			for j := range whole.PodSetInfos {
				if podtemplate.GetsItsNode(whole.PodSetInfos[j].SchedulingGates) {
					slim.PodSetInfos[j].SchedulingGates = whole.PodSetInfos[j].SchedulingGates
				}
			}
		}
		aw.Spec.Components[i] = slim
	}
	aw.Namespace = intern(in, aw.Namespace)
	in.internAll(aw.Finalizers)
	for i := range aw.Status.LastAttempts { // withWords reads them where they are needed
		aw.Status.LastAttempts[i].LastWords = ""
	}
	aw.Status.Conditions = in.slimConditions(aw.Status.Conditions)
	for i := range aw.Status.ComponentStatus {
		in.slimComponentStatus(&aw.Status.ComponentStatus[i])
	}
	return aw, nil
}

func (in *interner) internAll(values []string) {
	for i := range values {
		values[i] = intern(in, values[i])
	}
}

func (in *interner) slimComponentStatus(c *v1beta2.AppWrapperComponentStatus) {
	c.Kind, c.APIVersion, c.Conditions = intern(in, c.Kind), intern(in, c.APIVersion), in.slimConditions(c.Conditions)
	for i := range c.PodSets {
		c.PodSets[i].Path = intern(in, c.PodSets[i].Path)
	}
}

// slimConditions are no longer than they are many: who decodes a list makes room for more.
func (in *interner) slimConditions(whole []metav1.Condition) []metav1.Condition {
	for i := range whole {
		c := &whole[i]
		c.Type, c.Status, c.Reason = intern(in, c.Type), intern(in, c.Status), intern(in, c.Reason)
	}
	return slices.Clone(whole)
}

func (in *interner) slimOwners(owners []metav1.OwnerReference) []metav1.OwnerReference {
	for i := range owners {
		owners[i].APIVersion, owners[i].Kind = intern(in, owners[i].APIVersion), intern(in, owners[i].Kind)
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
func (in *interner) slimComponent(object any) (any, error) {
	switch whole := object.(type) {
	case *unstructured.Unstructured:
		slim := &unstructured.Unstructured{Object: map[string]any{}}
		slim.SetAPIVersion(intern(in, whole.GetAPIVersion()))
		slim.SetKind(intern(in, whole.GetKind()))
		in.keepMetadata(whole, slim)
		if status, ok := whole.Object["status"].(map[string]any); ok {
			slim.Object["status"] = in.slimStatus(status)
		}
		return slim, nil
	case *metav1.PartialObjectMetadata:
		slim := &metav1.PartialObjectMetadata{TypeMeta: whole.TypeMeta}
		in.keepMetadata(whole, slim)
		return slim, nil
	}
	return object, nil
}

func (in *interner) keepMetadata(whole, slim metav1.Object) {
	slim.SetName(whole.GetName())
	slim.SetNamespace(intern(in, whole.GetNamespace()))
	slim.SetUID(whole.GetUID())
	slim.SetResourceVersion(whole.GetResourceVersion())
	slim.SetDeletionTimestamp(whole.GetDeletionTimestamp())
	slim.SetFinalizers(whole.GetFinalizers())
	slim.SetOwnerReferences(in.slimOwners(whole.GetOwnerReferences()))
	if attempt, ok := whole.GetAnnotations()[v1beta2.AttemptAnnotation]; ok {
		slim.SetAnnotations(map[string]string{v1beta2.AttemptAnnotation: attempt})
	}
	if metav1.GetControllerOfNoCopy(whole) == nil { // whose it was the label tells
		slim.SetLabels(ourLabels(whole))
	}
}

func ourLabels(object metav1.Object) map[string]string {
	ours := map[string]string{}
	for _, key := range []string{v1beta2.AppWrapperLabel, v1beta2.AppWrapperComponentLabel, v1beta2.AppWrapperPodSetLabel, v1beta2.AttemptLabel} {
		if value, ok := object.GetLabels()[key]; ok {
			ours[key] = value
		}
	}
	return ours
}

func (in *interner) slimStatus(whole map[string]any) map[string]any {
	slim := map[string]any{}
	for key, value := range whole {
		if word, ok := value.(string); ok {
			slim[intern(in, key)] = word
		}
	}
	conditions, _ := whole["conditions"].([]any)
	kept := make([]any, 0, len(conditions))
	for i := range conditions {
		if condition, ok := conditions[i].(map[string]any); ok {
			kept = append(kept, slimComponentCondition(condition))
		}
	}
	if len(kept) > 0 {
		slim["conditions"] = kept
	}
	if succeeded, ok := whole["succeeded"]; ok {
		slim["succeeded"] = succeeded
	}
	if jobs := slimJobs(whole["replicatedJobsStatus"]); len(jobs) > 0 {
		slim["replicatedJobsStatus"] = jobs
	}
	return slim
}

// slimJobs are the Jobs of a JobSet of which some have succeeded.
func slimJobs(whole any) (slim []any) {
	jobs, _ := whole.([]any)
	for _, each := range jobs {
		job, _ := each.(map[string]any)
		if n, ok := job["succeeded"]; ok && n != int64(0) {
			slim = append(slim, map[string]any{"name": job["name"], "succeeded": n})
		}
	}
	return slim
}

// slimComponentCondition has the message of a failure, too: the training operator says only there why.
func slimComponentCondition(whole map[string]any) map[string]any {
	slim := map[string]any{"type": whole["type"], "status": whole["status"], "reason": whole["reason"]}
	if message, ok := whole["message"]; ok && whole["type"] == "Failed" && whole["status"] == "True" {
		slim["message"] = message
	}
	return slim
}

// slimPodConditions are those that podOf reads. Few pods have one.
func slimPodConditions(pod *corev1.Pod) []corev1.PodCondition {
	var slim []corev1.PodCondition
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			slim = append(slim, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
		}
	}
	if c, hangs := hangOf(pod); hangs {
		slim = append(slim, c)
	}
	if c, idle := idleCondition(pod); idle {
		slim = append(slim, c)
	}
	return slim
}

// slimPod leaves what podOf and the verdict on a bare pod read, and what a delete needs.
func (in *interner) slimPod(pod *corev1.Pod) *corev1.Pod {
	slim := &corev1.Pod{}
	slim.Name, slim.Namespace, slim.UID = pod.Name, intern(in, pod.Namespace), pod.UID
	slim.ResourceVersion, slim.DeletionTimestamp = pod.ResourceVersion, pod.DeletionTimestamp
	slim.CreationTimestamp, slim.DeletionGracePeriodSeconds = pod.CreationTimestamp, pod.DeletionGracePeriodSeconds
	slim.OwnerReferences, slim.Finalizers = in.slimOwners(pod.OwnerReferences), pod.Finalizers
	in.internAll(slim.Finalizers)
	slim.Status.Phase, slim.Status.StartTime = intern(in, pod.Status.Phase), pod.Status.StartTime
	slim.Status.Conditions = slimPodConditions(pod)
	slim.Labels = ourLabels(pod)
	runs := pod.Status.Phase == corev1.PodRunning
	for _, container := range pod.Status.ContainerStatuses {
		switch {
		case runs && crashes(container):
			slim.Status.ContainerStatuses = append(slim.Status.ContainerStatuses, in.slimCrash(container))
		case container.State.Terminated != nil:
			slim.Status.ContainerStatuses = append(slim.Status.ContainerStatuses, in.slimEnd(container))
		}
	}
	if runs {
		slim.Status.InitContainerStatuses = in.slimCrashes(pod.Status.InitContainerStatuses)
	}
	in.slimInit(pod, slim)
	in.slimFailures(pod, slim)
	return slim
}
