// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Pod is a pod of a Run.
type Pod struct {
	Name string `json:"name"`
	// Step is that of a workflow, empty for other Runs.
	Step string `json:"step,omitempty"`
	// Worker is its number, from 0, which is the rank of a torch worker. It is -1 if the pod has none.
	Worker int    `json:"worker"`
	Role   string `json:"role"`
	Node   string `json:"node,omitempty"`
	// State is its phase, and why it is not running.
	State string `json:"state"`

	stored corev1.Pod
}

// podsOf are the pods of a Run in the order of their steps and workers. Of two with the same number, the newer
// is the first.
func podsOf(ctx context.Context, c client.Reader, run *v1alpha1.Run) ([]Pod, error) {
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace(run.Namespace), client.MatchingLabels{v1alpha1.RunLabel: run.Name}); err != nil {
		return nil, failed(err, "cannot list the pods of Run %s", run.Name)
	}
	var all []Pod
	for _, p := range list.Items {
		all = append(all, Pod{Name: p.Name, Step: p.Labels[v1alpha1.StepLabel], Worker: workerOf(p), Role: p.Labels[v1alpha1.RoleLabel], Node: p.Spec.NodeName, State: stateOf(p), stored: p})
	}
	turn := func(p Pod) int {
		return slices.IndexFunc(run.Status.Steps, func(step v1alpha1.StepStatus) bool { return step.Name == p.Step })
	}
	slices.SortFunc(all, func(a, b Pod) int {
		newer := b.stored.CreationTimestamp.Compare(a.stored.CreationTimestamp.Time)
		return cmp.Or(cmp.Compare(turn(a), turn(b)), cmp.Compare(uint(a.Worker), uint(b.Worker)), newer, cmp.Compare(a.Name, b.Name)) // those without a number are the last
	})
	return all, nil
}

const (
	// completionIndex numbers the pods of an indexed Job, also in a JobSet.
	completionIndex = "batch.kubernetes.io/job-completion-index"
	// replicaIndex numbers the workers of a PyTorchJob, beside its master.
	replicaIndex = "training.kubeflow.org/replica-index"
)

func workerOf(pod corev1.Pod) int {
	if pod.Labels[v1alpha1.RoleLabel] == "master" {
		return 0
	}
	if number, err := strconv.Atoi(cmp.Or(pod.Labels[completionIndex], pod.Annotations[completionIndex])); err == nil {
		return number
	}
	if number, err := strconv.Atoi(pod.Labels[replicaIndex]); err == nil {
		return number + 1
	}
	return -1
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
