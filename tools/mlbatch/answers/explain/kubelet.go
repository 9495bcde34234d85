// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// podEnds are what nodes and others say of pods that they have ended.
var podEnds = []phrase{
	{"StorageLimit", []string{"exceeds the limit", "exceeds the total limit of containers", "exceeded its local ephemeral storage limit"}},
	{"NodePressure", []string{"The node was low on resource", "The node had condition"}},
	{"NodeShutdown", []string{"node shutdown"}},
}

// targets are why Kubernetes says that it ends a pod.
var targets = map[string]Code{
	corev1.PodReasonPreemptionByScheduler: "PodPreempted",
	"DeletionByTaintManager":              "NodeTaintAppeared",
	"EvictionByEvictionAPI":               "PodDrained",
	"DeletionByPodGC":                     "NodeGone",
}

// disrupted is about pods that something other than their program has ended.
func disrupted(_ Objects, pod *corev1.Pod) []Cause {
	reason, message := pod.Status.Reason, pod.Status.Message
	if reason == "DeadlineExceeded" {
		return []Cause{cause("DeadlineExceeded", Evidence{"Pod " + pod.Name, "status.reason " + reason, cmp.Or(message, reason)})}
	}
	if reason == "Evicted" || reason == "Preempting" || hasAny(message, "node shutdown") {
		return []Cause{cause(sorted(message, podEnds, "PodEvicted"), Evidence{"Pod " + pod.Name, "status.reason " + reason, cmp.Or(message, reason)})}
	}
	for _, c := range pod.Status.Conditions {
		if code, known := targets[c.Reason]; known && c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			told := Evidence{"Pod " + pod.Name, "condition DisruptionTarget is True, " + c.Reason, cmp.Or(c.Message, c.Reason)}
			return []Cause{cause(code, told, since(c.LastTransitionTime))}
		}
	}
	return nil
}

// rejected is about pods that a node refused to run.
func rejected(_ Objects, pod *corev1.Pod) []Cause {
	reason, message := pod.Status.Reason, pod.Status.Message
	if pod.Status.Phase != corev1.PodFailed || reason == "" {
		return nil
	}
	code := Code("PodRejected")
	switch {
	case strings.HasPrefix(reason, "OutOf"):
		code = "NodeOverbooked"
	case reason == "UnexpectedAdmissionError":
		code = "DevicesRefused"
	case !strings.HasPrefix(message, "Pod was rejected: "):
		return nil
	}
	return []Cause{cause(code, Evidence{"Pod " + pod.Name, "status.reason " + reason, cmp.Or(message, reason)})}
}

// slow is how long the preparation of a pod takes before it is a cause.
const slow = time.Minute

// preparing is about pods on a node whose containers do not run yet.
func preparing(o Objects, pod *corev1.Pod) []Cause {
	if pod.Status.Phase != corev1.PodPending || pod.Spec.NodeName == "" {
		return nil
	}
	if found := o.podEvents(pod, "FailedCreatePodSandBox", "NetworkNotReady"); len(found) > 0 {
		return []Cause{cause("SandboxFailed", found[len(found)-1])}
	}
	for _, s := range pod.Status.InitContainerStatuses {
		if s.State.Running == nil || s.Name == "" || staysRunning(pod, s.Name) {
			continue
		}
		object := "container " + s.Name + " of Pod " + pod.Name
		if end := s.LastTerminationState.Terminated; end != nil && end.ExitCode != 0 { // it is not the first time
			return []Cause{terminated(object, *end, true, also(Evidence{object, "restartCount", strconv.Itoa(int(s.RestartCount))}))}
		}
		return []Cause{cause("InitRuns", Evidence{"Pod " + pod.Name, "init container that runs", s.Name}, since(s.State.Running.StartedAt))}
	}
	return o.slowly(pod)
}

// slowly is about the step at which the node is for some time.
func (o Objects) slowly(pod *corev1.Pod) []Cause {
	if pod.Status.StartTime == nil || o.Now.Sub(pod.Status.StartTime.Time) < slow {
		return nil
	}
	for _, c := range pod.Status.Conditions {
		code := map[corev1.ConditionStatus]Code{corev1.ConditionTrue: "ImageComing", corev1.ConditionFalse: "PodNotPrepared"}[c.Status]
		if c.Type != corev1.PodReadyToStartContainers || code == "" {
			continue
		}
		return []Cause{cause(code, Evidence{"Pod " + pod.Name, "condition PodReadyToStartContainers", string(c.Status)}, since(*pod.Status.StartTime))}
	}
	return nil
}

// staysRunning: an init container is a side-car, for whose end nothing waits.
func staysRunning(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// unready is about pods that run, and are not ready.
func unready(o Objects, pod *corev1.Pod) []Cause {
	if pod.Status.Phase != corev1.PodRunning {
		return nil
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	if found := o.runsOn(pod); found != nil {
		return found
	}
	for _, row := range []phrase{
		{"NodeNotReady", []string{"NodeNotReady"}},
		{"HookFailed", []string{"FailedPostStartHook", "PostStartHook"}},
		{"ProbeFailed", []string{"probe failed", "probe errored"}},
	} {
		if found := o.podEvents(pod, row.words...); len(found) > 0 {
			return []Cause{cause(row.code, found[len(found)-1])}
		}
	}
	return nil
}

// runsOn is about a pod of which a container has ended well some time ago, as the program does beside a proxy that
// never ends: the pod ends when all have.
func (o Objects) runsOn(pod *corev1.Pod) []Cause {
	for _, ended := range pod.Status.ContainerStatuses {
		end := ended.State.Terminated
		if end == nil || end.ExitCode != 0 || o.Now.Sub(end.FinishedAt.Time) < slow {
			continue
		}
		for _, s := range pod.Status.ContainerStatuses {
			if s.State.Running != nil {
				at := func(name string) string { return "container " + name + " of Pod " + pod.Name }
				return []Cause{cause("ContainerRunsOn", Evidence{at(s.Name), "running since", s.State.Running.StartedAt.UTC().Format(time.RFC3339)},
					also(Evidence{at(ended.Name), "exitCode", "0"}), since(end.FinishedAt))}
			}
		}
	}
	return nil
}
