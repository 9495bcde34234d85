// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package realfaults_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// look is an AppWrapper at a time.
type look struct {
	at time.Time
	aw *workload.AppWrapper
}

// lives has all that was seen of all AppWrappers, and how their pods ended. The names of AppWrappers are unique.
type lives struct {
	mu   sync.Mutex
	of   map[string][]look
	ends map[string][]string
}

func (l *lives) hear(aw *workload.AppWrapper, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !gone {
		l.of[aw.Name] = append(l.of[aw.Name], look{time.Now(), aw})
	}
}

// hearPod keeps how a pod of an AppWrapper ended.
func (l *lives) hearPod(pod *corev1.Pod, _ bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := pod.Labels[workload.AppWrapperLabel]
	if pod.Status.Reason != "" {
		l.ends[name] = append(l.ends[name], pod.Status.Reason)
	}
	for _, c := range pod.Status.ContainerStatuses {
		if end := c.State.Terminated; end != nil {
			l.ends[name] = append(l.ends[name], fmt.Sprintf("%s %d", end.Reason, end.ExitCode))
		}
	}
}

// ended is how the kubelet says that pods of an AppWrapper ended.
func (l *lives) ended(name string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ends[name])
}

// first is the first look at an AppWrapper since then that a condition is about.
func (l *lives) first(name string, since time.Time, condition func(*workload.AppWrapper) bool) (look, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.of[name], func(seen look) bool { return seen.at.After(since) && condition(seen.aw) })
	if i < 0 {
		return look{}, false
	}
	return l.of[name][i], true
}

// latest is the status that was seen last, for people.
func (l *lives) latest(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.of[name]) == 0 {
		return "nobody has seen it"
	}
	text, _ := json.Marshal(l.of[name][len(l.of[name])-1].aw.Status)
	return string(text)
}

// running: all pods are ready.
func running(aw *workload.AppWrapper) bool {
	return aw.Status.Phase == workload.AppWrapperRunning && meta.IsStatusConditionTrue(aw.Status.Conditions, string(workload.PodsReady))
}

func in(phases ...workload.AppWrapperPhase) func(*workload.AppWrapper) bool {
	return func(aw *workload.AppWrapper) bool { return slices.Contains(phases, aw.Status.Phase) }
}

// why is what the condition Unhealthy says.
func why(aw *workload.AppWrapper) string {
	if c := meta.FindStatusCondition(aw.Status.Conditions, string(workload.Unhealthy)); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}
