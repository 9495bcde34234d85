// SPDX-License-Identifier: Apache-2.0

package runlife

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// longestFailure is how much of a log the status keeps.
const longestFailure = 1024

// rememberFailure keeps the failure that came first. If no pod tells one, what was known stays.
func (v *view) rememberFailure() {
	var all []failure
	for _, pod := range *v.Pods {
		all = append(all, failuresOf(pod)...)
	}
	if len(all) == 0 {
		return
	}
	first := slices.MinFunc(decisive(all), func(a, b failure) int {
		return cmp.Or(a.at.Compare(b.at), strings.Compare(a.Pod, b.Pod), strings.Compare(a.Container, b.Container))
	}).LastFailure
	first.Attempt, first.Step = v.attempt(), v.StepName()
	v.status.LastFailure = &first
}

// attempt counts from 1. In Resetting the AppWrapper has counted the retry already.
func (v *view) attempt() int32 {
	aw := v.mine()
	if aw.Status.Phase == v1beta2.AppWrapperResetting {
		return max(1, aw.Status.Retries)
	}
	return aw.Status.Retries + 1
}

type failure struct {
	v1alpha1.LastFailure
	at time.Time
}

// failuresOf are the containers of a pod that failed or, if none tells, the pod itself.
func failuresOf(pod corev1.Pod) []failure {
	var all []failure
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		end := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
		if end == nil || end.ExitCode == 0 {
			continue
		}
		code := end.ExitCode
		all = append(all, failure{at: end.FinishedAt.Time, LastFailure: v1alpha1.LastFailure{
			Pod: pod.Name, Container: status.Name, ExitCode: &code, Reason: end.Reason, Message: lastLines(end.Message),
		}})
	}
	if len(all) > 0 || pod.Status.Phase != corev1.PodFailed {
		return all
	}
	whole := failure{LastFailure: v1alpha1.LastFailure{Pod: pod.Name, Reason: pod.Status.Reason, Message: lastLines(pod.Status.Message)}}
	for _, c := range pod.Status.Conditions { // the latest is the end of the pod
		if c.LastTransitionTime.After(whole.at) {
			whole.at = c.LastTransitionTime.Time
		}
	}
	return []failure{whole}
}

// lastLines are the last whole lines of a text, or the end of its last line.
func lastLines(text string) string {
	text = strings.TrimSpace(text)
	end := lastBytes(text, longestFailure)
	if len(end) == len(text) {
		return end
	}
	if _, whole, found := strings.Cut(end, "\n"); found {
		return whole
	}
	return end
}

// lastBytes cuts a text from the front to at most n bytes, between two characters.
func lastBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	text = text[len(text)-n:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}
