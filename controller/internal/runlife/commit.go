// SPDX-License-Identifier: Apache-2.0

package runlife

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/runplan"
)

// hasRepo: the code was in a repository when the Run was planned.
func (v *view) hasRepo() bool {
	return v.status.Resolved != nil && v.status.Resolved.Repo != ""
}

// rememberCommit keeps the commit of the code. Each pod fetched for itself; if what they got differs,
// it returns an event that says so.
func (v *view) rememberCommit() *Event {
	if !v.hasRepo() || v.Pods == nil {
		return nil
	}
	var all []string
	for _, pod := range *v.Pods {
		if commit := commitOf(pod); commit != "" {
			all = append(all, commit)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) == 0 {
		return nil
	}
	v.status.Commit = all[0]
	if len(all) == 1 {
		return nil
	}
	return &Event{
		Type: corev1.EventTypeWarning, Reason: reasonCommitsDiffer, Action: actionEnd,
		Message: "it has succeeded, but its pods had different code: " + strings.Join(all, ", ") + "; name a commit or a tag in repo",
	}
}

// commitDigits are those of a commit's name.
const commitDigits = 40

// commitOf is what a pod says that it fetched.
func commitOf(pod corev1.Pod) string {
	for _, status := range pod.Status.InitContainerStatuses {
		end := status.State.Terminated
		if status.Name == runplan.CodeContainer && end != nil && end.ExitCode == 0 && len(end.Message) == commitDigits {
			return end.Message
		}
	}
	return ""
}
