// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// pods has the first cause of each pod.
func pods(o Objects) (all []Cause) {
	if o.isWell() {
		return nil // pods that failed were replaced
	}
	for i := range o.Pods {
		for _, find := range []func(Objects, *corev1.Pod) []Cause{unscheduled, evictedPod, containers, mounts} {
			if found := find(o, &o.Pods[i]); len(found) > 0 {
				all = append(all, found...)
				break
			}
		}
	}
	return append(all, podRefused(o)...)
}

// isWell: all pods are ready, or the work is done.
func (o Objects) isWell() bool {
	if aw := o.AppWrapper; aw != nil {
		return aw.Status.Phase == v1beta2.AppWrapperSucceeded || isTrue(aw.Status.Conditions, string(v1beta2.PodsReady))
	}
	if o.Workload == nil {
		return false
	}
	c := condition(o.Workload.Status.Conditions, kueue.WorkloadFinished)
	return isTrue(o.Workload.Status.Conditions, kueue.WorkloadPodsReady) || c != nil && c.Reason == kueue.WorkloadFinishedReasonSucceeded
}

func unscheduled(_ Objects, pod *corev1.Pod) []Cause {
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" || pod.Spec.NodeName != "" {
		return nil
	}
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Message == "" {
			continue
		}
		code := Code("PodNotScheduled")
		switch {
		case hasAny(c.Message, "PersistentVolumeClaim", "persistentvolumeclaim", "persistent volumes"):
			code = "VolumeNotBound"
		case hasAny(c.Message, "pod group", "PodGroup", "pg does not exist", "gang"):
			code = "GangNotScheduled"
		}
		return []Cause{cause(code, Evidence{"Pod " + pod.Name, "condition PodScheduled is False, " + c.Reason, c.Message}, since(c.LastTransitionTime))}
	}
	return nil
}

func evictedPod(_ Objects, pod *corev1.Pod) []Cause {
	if pod.Status.Reason != "Evicted" && pod.Status.Reason != "Preempting" {
		return nil
	}
	reason, message := pod.Status.Reason, pod.Status.Message
	return []Cause{cause("PodEvicted", Evidence{"Pod " + pod.Name, "status.reason " + reason, cmp.Or(message, reason)})}
}

// waits are the reasons with which the kubelet says that a container waits.
var waits = map[string]Code{
	"ErrImagePull": "ImageNotPulled", "ImagePullBackOff": "ImageNotPulled", "InvalidImageName": "ImageNotPulled",
	"ErrImageNeverPull": "ImageNotPulled", "RegistryUnavailable": "ImageNotPulled", "SignatureValidationFailed": "ImageNotPulled",
	"CreateContainerConfigError": "ConfigMissing",
	"CrashLoopBackOff":           "CrashLoop",
}

func containers(_ Objects, pod *corev1.Pod) []Cause {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		object := "container " + status.Name + " of Pod " + pod.Name
		state := status.State
		if state.Terminated == nil && state.Running == nil {
			state.Terminated = status.LastTerminationState.Terminated
		}
		if code, known := waitingFor(state.Waiting); known && code != "CrashLoop" {
			return []Cause{cause(code, Evidence{object, "waiting, " + state.Waiting.Reason, cmp.Or(state.Waiting.Message, state.Waiting.Reason)})}
		}
		if end := state.Terminated; end != nil && (end.ExitCode != 0 || end.Reason == "OOMKilled") {
			return []Cause{terminated(object, *end)}
		}
		if code, known := waitingFor(state.Waiting); known {
			return []Cause{cause(code, Evidence{object, "waiting, " + state.Waiting.Reason, cmp.Or(state.Waiting.Message, state.Waiting.Reason)})}
		}
	}
	return nil
}

func waitingFor(w *corev1.ContainerStateWaiting) (Code, bool) {
	if w == nil {
		return "", false
	}
	code, known := waits[w.Reason]
	return code, known
}

func terminated(object string, end corev1.ContainerStateTerminated) Cause {
	code := Code("ProgramFailed")
	if end.Reason == "OOMKilled" {
		code = "OutOfMemory"
	}
	c := cause(code, Evidence{object, "exitCode", strconv.Itoa(int(end.ExitCode))}, since(end.FinishedAt))
	if end.Reason != "" {
		also(Evidence{object, "reason", end.Reason})(&c)
	}
	if message := strings.TrimSpace(end.Message); message != "" {
		also(Evidence{object, "last lines", message})(&c)
	}
	return c
}

// mounts is about pods on a node whose volumes are not there.
func mounts(o Objects, pod *corev1.Pod) []Cause {
	if pod.Status.Phase != corev1.PodPending {
		return nil
	}
	found := o.events("Pod", pod.Name, "FailedMount", "FailedAttachVolume")
	if len(found) == 0 {
		return nil
	}
	last := found[len(found)-1]
	if hasAny(last.Value, "configmap", "secret") {
		return []Cause{cause("ConfigMissing", last)}
	}
	return []Cause{cause("VolumeNotBound", last)}
}

// podRefused is about pods that the owners of this work could not create.
func podRefused(o Objects) []Cause {
	if o.AppWrapper == nil {
		return nil
	}
	for _, component := range o.AppWrapper.Status.ComponentStatus {
		found := o.events(component.Kind, component.Name, "FailedCreate")
		if len(found) > 0 {
			last := found[len(found)-1]
			return []Cause{cause(refusal(last.Value), last)}
		}
	}
	return nil
}
