// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// maxRounds limits how often the cluster and the controller react to each other.
const maxRounds = 200

// settle lets the cluster and the controller react to each other until both rest.
func (w *world) settle() {
	w.watch()
	if w.shell != nil {
		w.shell.settle()
		return
	}
	for range maxRounds {
		moved := w.garbageCollect()
		moved = w.makePods() || moved
		if w.stale() && w.old.resourceVersion != w.resourceVersion {
			w.look(w.old)
		}
		w.old = w.observe()
		moved = w.look(w.old) || moved
		if !moved {
			w.witness(settles, moment{resting: true})
			return
		}
	}
	w.witness(settles, moment{})
}

// makePods plays the owners of pods: each creates as many as its resource requests.
func (w *world) makePods() bool {
	made := false
	for i, r := range w.resources {
		if !r.exists || r.terminating || r.verdict != "" {
			continue
		}
		for have := w.podsOf(i, r.replaces); have < r.replicas; have++ {
			name := fmt.Sprintf("%s-%d", r.name, w.made)
			node := fmt.Sprintf("node-%d", w.made)
			w.made++
			w.notes("owner", "makes pod "+name)
			w.pods = append(w.pods, &pod{node: node, stray: r.stray, Pod: lifecycle.Pod{Name: name, Component: i, Phase: corev1.PodPending, Devices: oneGPU}})
			made = true
		}
	}
	return made
}

var oneGPU = map[string]int64{"nvidia.com/gpu": 1}

func (w *world) podsOf(i int, butFailed bool) int32 {
	n := int32(0)
	for _, p := range w.pods {
		if p.Component == i && !p.foreign && !p.Terminating && (!butFailed || p.Phase != corev1.PodFailed) {
			n++
		}
	}
	return n
}

// garbageCollect removes deleted resources, then the pods that belong to them.
func (w *world) garbageCollect() bool {
	moved := false
	for _, r := range w.resources {
		if r.exists && r.terminating && !r.stubborn {
			w.goes(r)
			moved = true
		}
	}
	kept := w.pods[:0]
	for _, p := range w.pods {
		if !w.resources[p.Component].exists && !p.Terminating && !p.foreign {
			p.Terminating = true
			moved = true
		}
		if p.Terminating && !p.stuck {
			w.notes("kubelet", fmt.Sprintf("pod %s is gone", p.Name))
			moved = true
			continue
		}
		kept = append(kept, p)
	}
	w.pods = kept
	return moved
}

// pass lets time pass; the controller looks again whenever its requeue is due.
func (w *world) pass(d time.Duration) {
	until := w.now.Add(d)
	for !w.wake.IsZero() && !w.wake.After(until) {
		w.now = later(w.now, w.wake)
		w.notes("time", "")
		w.settle()
	}
	w.now = until
	w.settle()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// phase moves pods of a component from one phase to another.
func (w *world) phase(component int, from, to corev1.PodPhase, exitCodes ...int32) {
	for _, p := range w.pods {
		if p.Component == component && p.Phase == from && !p.Terminating {
			p.become(w.now, to, exitCodes)
		}
	}
	w.settle()
}

// become sets the phase. A pod that leaves Pending has started.
func (p *pod) become(now time.Time, phase corev1.PodPhase, exitCodes []int32) {
	if p.Started.IsZero() {
		p.Started = now
	}
	p.Phase, p.ExitCodes, p.NotReadySince, p.IdleSince = phase, exitCodes, time.Time{}, time.Time{}
}

func (w *world) starts(component int) {
	w.phase(component, corev1.PodPending, corev1.PodRunning)
}

// onePod moves the first running pod of a component to another phase.
func (w *world) onePod(component int, to corev1.PodPhase, exitCodes ...int32) {
	w.EndPod(component, to, exitCodes...)
	w.settle()
}

func (w *world) hangs(component int) {
	w.Hang(component)
	w.settle()
}

// loses removes a pod of a component.
func (w *world) loses(component int) {
	w.LosePod(component)
	w.settle()
}

func (w *world) admit() {
	w.Admit()
	w.settle()
}

func (w *world) evict() {
	w.Evict()
	w.settle()
}

func (w *world) remove() {
	w.Delete(false)
	w.settle()
}
