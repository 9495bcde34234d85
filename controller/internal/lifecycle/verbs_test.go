// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/quotareason"
	"github.com/mlbatch/mlbatch/test/stories"
)

// Stories happen in a world.
var _ stories.World = (*world)(nil)

func (w *world) Note(who, what string) {
	w.notes(who, what)
}

func (w *world) Settle() {
	w.settle()
}

func (w *world) Pass(d time.Duration) {
	w.pass(d)
}

// Admit: Kueue admits the AppWrapper unless it has finished or is being deleted.
func (w *world) Admit() {
	if !w.suspend || w.deleting || w.gone || w.finished() {
		return
	}
	if !w.quota {
		w.past.useful, w.reserved = w.now, w.now
	}
	w.quota, w.suspend = true, false
	w.kueue = quotareason.Word{Known: true}
	w.resourceVersion++
}

func (w *world) Wait(reason quotareason.Reason) {
	w.waits = reason
	if w.shell != nil {
		w.shell.woken = true
	}
}

func (w *world) Evict() {
	if w.suspend || w.gone {
		return
	}
	w.suspend = true
	w.kueue = quotareason.Word{Known: true, Evicted: string(quotareason.Preempted)}
	w.resourceVersion++
	w.accountForQuota()
}

// Delete is the same either way: there is no garbage collector here.
func (w *world) Delete(_ bool) {
	if w.deleting || w.gone {
		return
	}
	w.deleting, w.deletedAt = true, w.now
	w.resourceVersion++
	if !w.hasFinalizer {
		w.disappear()
	}
}

func (w *world) StopController() {
	w.stopped, w.wake = true, time.Time{}
}

func (w *world) StartController() {
	w.stopped = false
}

func (w *world) Remove(component int) {
	w.removed = w.removed || w.resources[component].exists
	w.resources[component].exists, w.resources[component].terminating = false, false
}

func (w *world) Free(component int) {
	w.resources[component].stubborn = false
}

func (w *world) Permit(component int) {
	w.resources[component].refusal = nil
}

func (w *world) Report(component int, succeeded bool) {
	w.resources[component].verdict = kinds.Failed
	if succeeded {
		w.resources[component].verdict = kinds.Succeeded
	}
}

func (w *world) StartPods() {
	for _, p := range w.pods {
		if p.Phase == corev1.PodPending && !p.Terminating {
			p.become(w.now, corev1.PodRunning, nil)
		}
	}
}

// CreateLate: a leader that was paused before it created a component does so now. It happens only after the
// attempt, and to kinds that are watched.
func (w *world) CreateLate(component int) {
	r := w.resources[component]
	over := w.status.Phase == v1beta2.AppWrapperSuspended || w.status.Phase == v1beta2.AppWrapperFailed
	if w.gone || r.exists || !r.reportsEnd || !over || w.status.ComponentStatus[component].Name == "" {
		return
	}
	w.notes("paused controller", fmt.Sprintf("creates %s %q", r.kind, r.name))
	r.exists, r.terminating, r.verdict = true, false, kinds.Unknown
	r.uid++
	r.stray = true
}

// AddPod happens only while the AppWrapper runs.
func (w *world) AddPod() {
	if w.gone || w.status.Phase != v1beta2.AppWrapperRunning {
		return
	}
	added := &pod{foreign: true, node: "foreign", Pod: lifecycle.Pod{Name: fmt.Sprintf("foreign-%d", w.made), Phase: corev1.PodRunning, Started: w.now}}
	w.made++
	w.pods = append(w.pods, added)
}

func (w *world) RemoveAddedPods() {
	w.pods = slices.DeleteFunc(w.pods, func(p *pod) bool { return p.foreign })
}

func (w *world) Hang(component int) {
	for _, p := range w.pods {
		if p.Component == component && p.Phase == corev1.PodRunning && !p.foreign && p.NotReadySince.IsZero() {
			p.NotReadySince = w.now
			return
		}
	}
}

func (w *world) GoOn() {
	for _, p := range w.pods {
		p.NotReadySince = time.Time{}
	}
}

// Idle is said by whoever watches the devices.
func (w *world) Idle(component int) {
	for _, p := range w.pods {
		if p.Component == component && p.Phase == corev1.PodRunning && !p.foreign && p.IdleSince.IsZero() && w.watcherGone.IsZero() {
			p.IdleSince = w.now
		}
	}
}

func (w *world) Busy() {
	for _, p := range w.pods {
		p.works = true
	}
	w.hearOfWork()
}

// hearOfWork: nobody says any more that those that use their devices are idle.
func (w *world) hearOfWork() {
	for _, p := range w.pods {
		if p.works && w.watcherGone.IsZero() {
			p.works, p.IdleSince = false, time.Time{}
		}
	}
}

func (w *world) StopWatcher() {
	if w.watcherGone.IsZero() {
		w.watcherGone = w.now
	}
}

func (w *world) StartWatcher() {
	w.watcherGone = time.Time{}
	w.hearOfWork()
	if w.shell != nil {
		w.shell.woken = true
	}
}

func (w *world) EndPods(component int, how corev1.PodPhase, exitCodes ...int32) {
	for _, p := range w.pods {
		if p.Component == component && p.Phase == corev1.PodRunning && !p.stuck {
			p.become(w.now, how, exitCodes)
		}
	}
}

func (w *world) EndPod(component int, how corev1.PodPhase, exitCodes ...int32) {
	for _, p := range w.pods {
		if p.Component == component && p.Phase == corev1.PodRunning && !p.stuck {
			p.become(w.now, how, exitCodes)
			return
		}
	}
}

func (w *world) EvictPod(component int) {
	if i := w.firstPod(component); i >= 0 {
		w.pods[i].Terminating = true
		because := nodehealth.Cause{Source: nodehealth.PodEvicted, Sign: "DeletionByTaintManager"}
		w.evictions = append(w.evictions, lifecycle.Eviction{Component: component, Node: w.pods[i].node, Because: because, At: w.now})
		w.past.mustMigrate = true
	}
}

func (w *world) LosePod(component int) {
	if i := w.firstPod(component); i >= 0 {
		w.pods = slices.Delete(w.pods, i, i+1)
	}
}

func (w *world) LoseNode(component int) {
	if i := w.firstPod(component); i >= 0 {
		w.pods[i].stuck = true
	}
}

func (w *world) ReturnNode(component int) {
	if i := w.firstPod(component); i >= 0 {
		w.pods[i].stuck = false
		w.MarkNodeHealthy(component)
	}
}

// notReadyGrace is how long a node may take to come back.
const notReadyGrace = time.Minute

func (w *world) MarkNodeNotReady(component int) {
	if i := w.firstPod(component); i >= 0 && w.pods[i].MigrateFrom == "" {
		w.pods[i].MigrateFrom, w.pods[i].MigrateAt = w.pods[i].node, w.now.Add(notReadyGrace)
		w.past.mustMigrate = true
	}
}

func (w *world) MarkNodeUnhealthy(component int) {
	if i := w.firstPod(component); i >= 0 {
		w.pods[i].MigrateFrom, w.pods[i].MigrateAt = w.pods[i].node, time.Time{}
		w.past.mustMigrate = true
	}
}

// RejectPod: the kubelet does not accept the first pod.
func (w *world) RejectPod(component int) {
	if i := w.firstPod(component); i >= 0 && w.pods[i].Phase == corev1.PodPending {
		w.pods[i].become(w.now, corev1.PodFailed, nil)
		w.pods[i].MigrateFrom = w.pods[i].node
		w.pods[i].MigrateBecause = []nodehealth.Cause{{Source: nodehealth.PodRejected, Sign: "UnexpectedAdmissionError"}}
		w.past.mustMigrate = true
	}
}

func (w *world) MarkNodeHealthy(component int) {
	if i := w.firstPod(component); i >= 0 {
		w.pods[i].MigrateFrom = ""
	}
}

// firstPod is the index of a component's oldest pod, -1 if it has none.
func (w *world) firstPod(component int) int {
	return slices.IndexFunc(w.pods, func(p *pod) bool { return p.Component == component && !p.foreign })
}
