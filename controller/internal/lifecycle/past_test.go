// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// past is what an observer with a clock remembers. Promises about time are measured by it,
// and not by the times that the controller records.
type past struct {
	entered  time.Time // the phase was entered
	attempt  time.Time // the attempt began
	refused  time.Time // a creation was last refused in this attempt; zero: none was
	created  time.Time // all components of this attempt existed
	noticed  time.Time // something was last found to be wrong
	lost     time.Time // pods that were ready were last found not to be; zero: not in this attempt
	removal  time.Time // the removal of what is deployed began
	occupied time.Time // a component or a pod was last there
	useful   time.Time // more was last there than what makes no pods and is kept; or quota came; or no controller ran

	tried time.Duration // how long a creation was tried in this attempt until then, with pauses

	reported map[int]bool // components that have reported success in this attempt
	worked   bool         // a pod has succeeded, or a component has reported success, in this attempt
	rejected bool         // a component was refused for good in this attempt

	idleTold time.Time // the author was told that no pod uses its devices

	mustMigrate bool // a pod was on an unhealthy node in this attempt
	ready       bool // pods were ready in this attempt
	migrating   bool // this attempt ended with a migration
	migrated    bool // the attempt before did
}

// longestPause is the longest that lies between two attempts to create something.
const longestPause = 15 * time.Second

// refuse is called after every refusal. What nobody answers is no attempt.
func (p *past) refuse(now time.Time, unanswered bool) {
	p.tried, p.refused = p.triedUntil(now), now
	if unanswered {
		p.refused = time.Time{}
	}
}

// triedUntil is how long a creation was tried, not counting the time in which an attempt was
// due and nobody made it.
func (p *past) triedUntil(now time.Time) time.Duration {
	if p.refused.IsZero() {
		return p.tried
	}
	return p.tried + min(now.Sub(p.refused), longestPause)
}

// remember is called after every save.
func (w *world) remember(was v1beta2.AppWrapperStatus) {
	p := &w.past
	if w.status.Phase != was.Phase && w.status.Phase == v1beta2.AppWrapperResuming {
		*p = past{attempt: w.now, occupied: p.occupied, useful: w.now, migrated: p.migrating && was.Phase == v1beta2.AppWrapperResetting}
	}
	if w.status.Phase != was.Phase && w.status.Phase == v1beta2.AppWrapperRunning {
		p.created = w.now
	}
	p.migrating = p.migrating || w.status.Migrations > was.Migrations
	p.ready = p.ready || w.turned(was, v1beta2.PodsReady, metav1.ConditionTrue)
	if w.turned(was, v1beta2.Unhealthy, metav1.ConditionTrue) {
		p.noticed = w.now
	}
	if meta.IsStatusConditionTrue(was.Conditions, string(v1beta2.PodsReady)) && w.turned(was, v1beta2.PodsReady, metav1.ConditionFalse) {
		p.lost = w.now
	}
	if w.turned(was, v1beta2.Idle, metav1.ConditionTrue) {
		p.idleTold = w.now
	}
	if w.turned(was, v1beta2.DeletingResources, metav1.ConditionTrue) {
		p.removal = w.now
	}
}

// turned reports whether a save has changed a condition to this status.
func (w *world) turned(was v1beta2.AppWrapperStatus, kind v1beta2.AppWrapperCondition, to metav1.ConditionStatus) bool {
	return meta.IsStatusConditionPresentAndEqual(w.status.Conditions, string(kind), to) &&
		!meta.IsStatusConditionPresentAndEqual(was.Conditions, string(kind), to)
}

// watch is called whenever something may have changed in the world.
func (w *world) watch() {
	p := &w.past
	if w.occupied() {
		p.occupied = w.now
	}
	if !w.onlyKept() {
		p.useful = w.now
	}
	if w.shell != nil && !w.now.After(w.shell.away) {
		p.useful = w.shell.away
	}
	for _, pod := range w.pods {
		p.worked = p.worked || pod.Phase == corev1.PodSucceeded
	}
	for i, r := range w.resources {
		if !r.exists || r.verdict != kinds.Succeeded || p.reported[i] {
			continue
		}
		if p.reported == nil {
			p.reported = map[int]bool{}
		}
		p.reported[i], p.worked = true, true
	}
}

// onlyKept reports whether what is left makes no pods, is being deleted, and does not go away.
func (w *world) onlyKept() bool {
	for _, r := range w.resources {
		if r.exists && (!r.terminating || !r.stubborn || r.replicas > 0) {
			return false
		}
	}
	return len(w.pods) == 0 && w.occupied()
}

// occupied reports whether a component or a pod exists.
func (w *world) occupied() bool {
	for _, r := range w.resources {
		if r.exists {
			return true
		}
	}
	return len(w.pods) > 0
}
