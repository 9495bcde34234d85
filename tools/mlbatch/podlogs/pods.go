// SPDX-License-Identifier: Apache-2.0

// Package podlogs answers: which pods does work have, what are they doing, and what do they say?
package podlogs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Pod is a pod of some work.
type Pod struct {
	Name string `json:"name"`
	// Step is that of a workflow, empty for other work.
	Step string `json:"step,omitempty"`
	// Worker is its number, from 0, which is the rank of a torch worker. It is -1 if the pod has none.
	Worker int    `json:"worker"`
	Role   string `json:"role"`
	Node   string `json:"node,omitempty"`
	// State is its phase, and why it is not running.
	State string `json:"state"`

	Stored corev1.Pod `json:"-"`
}

// Sorted are pods in the order of their steps and workers. Of two with the same number, the newer is the first.
func Sorted(list []corev1.Pod, steps ...string) []Pod {
	var all []Pod
	for _, p := range list {
		all = append(all, Pod{Name: p.Name, Step: p.Labels[v1alpha1.StepLabel], Worker: workerOf(p), Role: roleOf(p), Node: p.Spec.NodeName, State: stateOf(p), Stored: p})
	}
	slices.SortFunc(all, func(a, b Pod) int {
		newer := b.Stored.CreationTimestamp.Compare(a.Stored.CreationTimestamp.Time)
		turn := cmp.Compare(slices.Index(steps, a.Step), slices.Index(steps, b.Step))
		return cmp.Or(turn, cmp.Compare(uint(a.Worker), uint(b.Worker)), newer, cmp.Compare(a.Name, b.Name)) // those without a number are the last
	})
	return all
}

const (
	// completionIndex numbers the pods of an indexed Job, also in a JobSet.
	completionIndex = "batch.kubernetes.io/job-completion-index"
	// replicaIndex numbers the workers of a PyTorchJob, beside its master.
	replicaIndex = "training.kubeflow.org/replica-index"
	replicaType  = "training.kubeflow.org/replica-type"
	// workerIndex numbers the pods of a group of a LeaderWorkerSet, and podIndex those of a StatefulSet.
	workerIndex = "leaderworkerset.sigs.k8s.io/worker-index"
	podIndex    = "apps.kubernetes.io/pod-index"
	nodeType    = "ray.io/node-type"
)

// Number is that of the worker, or empty.
func (p Pod) Number() string {
	if p.Worker < 0 {
		return ""
	}
	return strconv.Itoa(p.Worker)
}

func roleOf(pod corev1.Pod) string {
	return cmp.Or(pod.Labels[v1alpha1.RoleLabel], pod.Labels[replicaType], pod.Labels[nodeType])
}

func workerOf(pod corev1.Pod) int {
	role := roleOf(pod)
	if role == "master" {
		return 0
	}
	for _, text := range []string{pod.Labels[completionIndex], pod.Annotations[completionIndex], pod.Labels[workerIndex], pod.Labels[podIndex]} {
		if number, err := strconv.Atoi(text); err == nil {
			return number
		}
	}
	if number, err := strconv.Atoi(pod.Labels[replicaIndex]); err == nil && role == "worker" {
		return replica(pod, number)
	}
	return -1
}

// replica is the rank of a worker. The operator tells it to the container; usually there is a master before the
// workers.
func replica(pod corev1.Pod, number int) int {
	for _, container := range pod.Spec.Containers {
		for _, variable := range container.Env {
			if rank, err := strconv.Atoi(variable.Value); err == nil && variable.Name == "RANK" {
				return rank
			}
		}
	}
	return number + 1
}

// stateOf is the phase of a pod, and the first reason why it is not running.
func stateOf(pod corev1.Pod) string {
	state := string(cmp.Or(pod.Status.Phase, corev1.PodPending))
	reason := printing.OneLine(cmp.Or(pod.Status.Message, pod.Status.Reason))
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			reason = cmp.Or(reason, printing.OneLine(cmp.Or(condition.Message, condition.Reason)))
		}
	}
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		reason = cmp.Or(reason, reasonOf(container.State))
	}
	if pod.DeletionTimestamp != nil {
		state += ", being deleted"
	}
	if reason == "" {
		return state
	}
	return state + ": " + reason
}

// reasonOf is empty for a container that runs or has succeeded.
func reasonOf(state corev1.ContainerState) string {
	switch {
	case state.Waiting != nil && state.Waiting.Message != "":
		return printing.OneLine(state.Waiting.Reason + ": " + state.Waiting.Message)
	case state.Waiting != nil:
		return printing.OneLine(state.Waiting.Reason)
	case state.Terminated != nil && state.Terminated.ExitCode != 0:
		return printing.OneLine(fmt.Sprintf("%s, exit code %d", cmp.Or(state.Terminated.Reason, "Error"), state.Terminated.ExitCode))
	}
	return ""
}
