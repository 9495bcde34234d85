// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// shell stands between a world and the decisions as the package appwrapper does. It has three
// caches that are stale independently, live reads where the Snapshot needs them, looks only
// when something wakes it, and a process that may be down for a while.
type shell struct {
	w *world
	// What the three caches have.
	aw, components, pods observation
	// earlier are AppWrappers that the cache had before; a new process may start with one.
	earlier []observation

	woken bool
	away  time.Time // until when no process runs
	// lags reports whether a cache stays stale although it could catch up.
	lags func() bool
	// downtime is how long the process is down after a crash.
	downtime func() time.Duration
	crashed  bool
}

func newShell(w *world, crash, lags func() bool, downtime func() time.Duration) *shell {
	now := w.observe()
	s := &shell{w: w, aw: now, components: now, pods: now, woken: true, lags: lags, downtime: downtime}
	w.shell = s
	w.crash = func() bool {
		s.crashed = crash()
		return s.crashed
	}
	return s
}

// settle goes on until nothing moves, no cache lags and nothing is left to wake up for.
func (s *shell) settle() {
	for range 5 * maxRounds {
		moved := s.w.garbageCollect()
		moved = s.w.makePods() || moved
		moved = s.catchUp(!moved && !s.due()) || moved
		if s.due() {
			s.look()
			moved = true
		}
		if !moved {
			s.w.witness(settles, moment{resting: true})
			s.checkRest()
			return
		}
	}
	s.w.witness(settles, moment{})
}

// due reports whether a process runs and has been woken.
func (s *shell) due() bool {
	if s.w.now.Before(s.away) {
		return false
	}
	return s.woken || !s.w.wake.IsZero() && !s.w.wake.After(s.w.now)
}

func (s *shell) look() {
	s.woken, s.crashed = false, false
	s.w.look(s.observation())
	switch {
	case s.crashed:
		s.restart()
	case s.polls():
		s.w.wake = s.w.now.Add(pollInterval)
	}
}

// pollInterval is how often the controller looks if nothing would wake it.
const pollInterval = time.Second

// polls reports whether a resource is being removed whose end does not wake the controller.
func (s *shell) polls() bool {
	return s.w.removing() && !s.w.gone && slices.ContainsFunc(s.w.resources, func(r *resource) bool { return r.exists && !r.reportsEnd })
}

// goes removes a resource. A known gap, documented in docs/lifecycle.md: the controller does
// not notice the removal of a resource that is not watched unless it polls.
func (w *world) goes(r *resource) {
	r.exists, r.terminating = false, false
	if w.shell != nil && !r.reportsEnd {
		w.shell.woken = w.shell.woken || !w.removing()
	}
}

// restart starts a new process, now or later, which may see an old AppWrapper first.
func (s *shell) restart() {
	s.w.dryRun = lifecycle.DryRun{} // a process forgets it
	now := s.w.observe()
	s.components, s.pods = now, now
	s.aw = now
	if n := len(s.earlier); n > 0 && s.lags() {
		s.aw = s.earlier[max(0, n-5)]
	}
	s.away = s.w.now.Add(s.downtime())
	s.woken, s.w.wake = true, s.away
}

// observation combines the three caches and the live reads.
func (s *shell) observation() observation {
	live := s.w.observe()
	o := s.aw
	o.Waits, o.Kueue = live.Waits, live.Kueue // their cache is a watch of its own, which wakes at once
	o.DryRun = live.DryRun
	o.Components, o.uids = slices.Clone(s.components.Components), slices.Clone(s.components.uids)
	for i, r := range s.w.resources {
		watched := r.reportsEnd && o.Components[i].Exists
		if !watched && s.mayExist(i) {
			o.Components[i], o.uids[i] = live.Components[i], live.uids[i]
		} else if !watched {
			o.Components[i].Exists = false
		}
	}
	o.Pods, o.pods = slices.Clone(s.pods.Pods), s.pods.pods
	for i := range o.Pods {
		o.Pods[i].IdleSeen = s.w.idleSeen(o.Pods[i]) // it is said again and again
	}
	if len(o.Pods) == 0 && meta.IsStatusConditionTrue(o.Status.Conditions, string(v1beta2.ResourcesDeployed)) {
		o.Pods, o.pods = live.Pods, live.pods
	}
	return o
}

// mayExist reports whether the observer reads a component live.
func (s *shell) mayExist(i int) bool {
	if i >= len(s.aw.Status.ComponentStatus) {
		return false
	}
	c := meta.FindStatusCondition(s.aw.Status.ComponentStatus[i].Conditions, string(v1beta2.ResourcesDeployed))
	return c != nil && (c.Status != metav1.ConditionFalse || c.Reason == v1beta2.ReasonComponentCreationErrored)
}

// catchUp updates caches. Their changes wake the controller.
func (s *shell) catchUp(all bool) bool {
	now, moved := s.w.observe(), false
	if s.aw.resourceVersion != now.resourceVersion && (all || !s.lags()) {
		s.earlier = append(s.earlier, s.aw)
		s.aw, s.woken, moved = now, true, true
	}
	if differs, wakes := s.componentChanges(now); differs && (all || !s.lags()) {
		s.components, s.woken, moved = now, s.woken || wakes, true
	}
	if differs, wakes := podChanges(s.pods, now); differs && (all || !s.lags()) {
		s.pods, s.woken, moved = now, s.woken || wakes, true
	}
	return moved
}

// componentChanges: the end and the removal of a watched component wake the controller. Its
// creation does only if it comes after its attempt.
func (s *shell) componentChanges(now observation) (differs, wakes bool) {
	before := s.components
	over := s.aw.Status.Phase == v1beta2.AppWrapperSuspended || s.aw.Status.Phase == v1beta2.AppWrapperFailed
	for i, r := range s.w.resources {
		old, c := before.Components[i], now.Components[i]
		another := before.uids[i] != now.uids[i]
		held := c.Terminating && len(c.Finalizers) != len(old.Finalizers)
		if old.Exists == c.Exists && old.Terminating == c.Terminating && old.Verdict == c.Verdict && !another && !held {
			continue
		}
		differs = true
		appears := !old.Exists && c.Exists && !c.Terminating && c.Verdict == kinds.Unknown
		wakes = wakes || r.reportsEnd && (!appears || over)
	}
	return differs, wakes
}

// podChanges: phases, starts, readiness, idleness, deletions and unhealthy nodes wake the controller; a new pod
// does not.
func podChanges(before, now observation) (differs, wakes bool) {
	known := map[*pod]lifecycle.Pod{}
	for i, p := range before.pods {
		known[p] = before.Pods[i]
	}
	for i, p := range now.pods {
		old, ok := known[p]
		delete(known, p)
		if !ok {
			old, differs = lifecycle.Pod{Phase: corev1.PodPending}, true
		}
		if old.Phase != now.Pods[i].Phase || old.Terminating != now.Pods[i].Terminating || old.MigrateFrom != now.Pods[i].MigrateFrom || !old.MigrateAt.Equal(now.Pods[i].MigrateAt) || old.Started != now.Pods[i].Started || old.NotReadySince != now.Pods[i].NotReadySince || old.IdleSince != now.Pods[i].IdleSince {
			differs, wakes = true, true
		}
	}
	return differs || len(known) > 0, wakes || len(known) > 0
}

// checkRest checks that after settling nothing is left to do and the controller will be woken
// in time.
func (s *shell) checkRest() {
	w := s.w
	looksSoon := !w.wake.IsZero() && !w.wake.After(w.now.Add(pollInterval))
	if w.gone || looksSoon || w.now.Before(s.away) {
		return
	}
	o := w.observe()
	w.witness(idles, moment{seen: o, decision: lifecycle.Decide(o.Snapshot, w.now)})
}
