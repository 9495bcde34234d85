// SPDX-License-Identifier: Apache-2.0

package runlife_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
)

var one, two = strings.Repeat("1", 40), strings.Repeat("2", 40)

// fetchedBy is a pod whose init container of this name ended.
func fetchedBy(container, message string, code int32) corev1.Pod {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message, ExitCode: code}}
	return corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "waits"}, {Name: container, State: ended}}}}
}

func TestTheCommitOfTheCode(t *testing.T) {
	for sentence, row := range map[string]struct {
		repo   string
		pods   []corev1.Pod
		commit string
		event  string
	}{
		"one for all pods":               {"a", []corev1.Pod{fetchedBy("code", one, 0), fetchedBy("code", one, 0)}, one, "Succeeded"},
		"two":                            {"a", []corev1.Pod{fetchedBy("code", two, 0), fetchedBy("code", one, 0)}, one, "CommitsDiffer"},
		"none, as the pods are gone":     {"a", nil, "", "Succeeded"},
		"the words of another container": {"a", []corev1.Pod{fetchedBy("copy-0", one, 0)}, "", "Succeeded"},
		"the words of a failure":         {"a", []corev1.Pod{fetchedBy("code", one, 1)}, "", "Succeeded"},
		"what is no commit":              {"a", []corev1.Pod{fetchedBy("code", "hello", 0)}, "", "Succeeded"},
		"of code in the Application":     {"", []corev1.Pod{fetchedBy("code", one, 0)}, "", "Succeeded"},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := running()
			w.run.Status.Resolved.Repo = row.repo
			w.aw.Status.Phase = v1beta2.AppWrapperSucceeded
			s := w.snapshot()
			if d := runlife.Decide(s, w.now); d.NeedsPods != (row.repo != "") {
				t.Errorf("the pods are needed: %t", d.NeedsPods)
			}
			s.Pods = &row.pods
			d := runlife.Decide(s, w.now)
			if d.Status.Commit != row.commit || len(d.Events) != 1 || d.Events[0].Reason != row.event || d.Status.Phase != "Succeeded" {
				t.Errorf("the commit is %q, the event %+v, the phase %s", d.Status.Commit, d.Events, d.Status.Phase)
			}
		})
	}
}

func TestAFailureHasItsCommit(t *testing.T) {
	w := running()
	w.run.Status.Resolved.Repo = "a"
	w.aw.Status.Phase = v1beta2.AppWrapperFailed
	s := w.snapshot()
	s.Pods = &[]corev1.Pod{fetchedBy("code", two, 0)}
	if d := runlife.Decide(s, w.now); d.Status.Commit != two || len(d.Events) != 1 || d.Events[0].Reason != "Failed" {
		t.Errorf("the commit is %q, the event %+v", d.Status.Commit, d.Events)
	}
}
