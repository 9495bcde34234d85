// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// explain describes each pod in a namespace that is not ready, with its events, states and
// logs. It is empty if the cluster does not answer.
func explain(ctx context.Context, api kubernetes.Interface, namespace string) string {
	pods, err := api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	events, err := api.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	var out strings.Builder
	for _, p := range pods.Items {
		if ready(p) {
			continue
		}
		fmt.Fprintf(&out, "\npod %s is %s and not ready", p.Name, p.Status.Phase)
		for _, e := range events.Items {
			if e.InvolvedObject.UID == p.UID && e.Type == corev1.EventTypeWarning {
				fmt.Fprintf(&out, "\n  %s: %s", e.Reason, e.Message)
			}
		}
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			out.WriteString(containerState(c))
			out.WriteString(logEnd(ctx, api, p, c))
		}
	}
	return out.String()
}

// ready reports whether a pod is ready or has succeeded.
func ready(p corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func containerState(c corev1.ContainerStatus) string {
	state := "runs"
	if w := c.State.Waiting; w != nil {
		state = strings.TrimSpace("waits: " + w.Reason + " " + w.Message)
	}
	if e := c.State.Terminated; e != nil {
		state = fmt.Sprintf("ended with exit code %d", e.ExitCode)
	}
	return fmt.Sprintf("\n  container %s was restarted %d times and %s", c.Name, c.RestartCount, state)
}

// logEnd returns the end of a container's log, or of its previous run if it is being restarted.
func logEnd(ctx context.Context, api kubernetes.Interface, p corev1.Pod, c corev1.ContainerStatus) string {
	lines := int64(10)
	options := &corev1.PodLogOptions{Container: c.Name, TailLines: &lines, Previous: c.RestartCount > 0 && c.State.Running == nil}
	log, err := api.CoreV1().Pods(p.Namespace).GetLogs(p.Name, options).DoRaw(ctx)
	if err != nil || len(log) == 0 {
		return ""
	}
	return "\n    " + strings.ReplaceAll(strings.TrimSpace(string(log)), "\n", "\n    ")
}
