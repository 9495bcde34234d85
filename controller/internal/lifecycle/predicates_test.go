// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// Conditions under which a promise is checked.

func always(moment) bool { return true }

func moves(m moment) bool { return m.decision.Moved(m.seen.Snapshot) }

func stays(m moment) bool { return !moves(m) }

func staysAndWrites(m moment) bool { return stays(m) && m.writes }

// nowAndThen is for slow checks.
func nowAndThen(m moment) bool { return m.looks%8 == 0 }

func acts(m moment) bool { return m.decision.Effect != lifecycle.Nothing }

func notDeleted(m moment) bool { return !m.deleting }

func announces(m moment) bool { return m.decision.Event != nil }

func waits(m moment) bool { return m.decision.Requeue > 0 }

func hasPods(m moment) bool { return len(m.seen.pods) > 0 }

func hasEnded(m moment) bool { return !m.seen.Deleting && ends(m.seen.Status.Phase) }

func ends(phase v1beta2.AppWrapperPhase) bool {
	return phase == v1beta2.AppWrapperSucceeded || phase == v1beta2.AppWrapperFailed
}

func movesOn(m moment) bool { return m.was.Phase != m.status.Phase }

func entering(phase v1beta2.AppWrapperPhase) func(moment) bool {
	return func(m moment) bool { return movesOn(m) && m.status.Phase == phase }
}

func retries(m moment) bool {
	return m.was.Phase == v1beta2.AppWrapperResetting && m.status.Phase == v1beta2.AppWrapperResuming
}

// blames reports whether the attempt ended for one of these reasons.
func blames(reasons ...string) func(moment) bool {
	return func(m moment) bool {
		unhealthy := meta.FindStatusCondition(m.status.Conditions, string(v1beta2.Unhealthy))
		verdict := m.status.Phase == v1beta2.AppWrapperResetting || m.status.Phase == v1beta2.AppWrapperFailed
		return movesOn(m) && verdict && unhealthy != nil && slices.Contains(reasons, unhealthy.Reason)
	}
}

// holdsForNothing reports whether a controller runs, and there is quota for nothing that could
// use it.
func holdsForNothing(m moment) bool {
	removes := m.status.Phase == v1beta2.AppWrapperResetting || m.status.Phase == v1beta2.AppWrapperSuspending
	return m.quota && removes && !m.deleting && m.onlyKept() && (m.shell == nil || !m.now.Before(m.shell.away))
}

// removalGrace is how long to wait for what does not go away.
func (m moment) removalGrace() time.Duration {
	return min(max(m.policy.ForcefulDeletionGrace, m.policy.AdmissionGrace), m.policy.KeptGrace)
}

// gaveUp reports whether a removal had waited long enough for what does not go away. Quota that
// comes meanwhile does not make it longer.
func gaveUp(m moment) bool {
	removed := m.was.Phase == v1beta2.AppWrapperResetting || m.was.Phase == v1beta2.AppWrapperSuspending
	return removed && m.waited(m.past.removal, m.removalGrace())
}

// isRefused reports whether the attempt ended because a creation was refused.
func isRefused(m moment) bool {
	unhealthy := meta.FindStatusCondition(m.status.Conditions, string(v1beta2.Unhealthy))
	return blames(v1beta2.ReasonCreateFailed)(m) && strings.Contains(unhealthy.Message, "could not be created")
}

// beginsRemoval reports whether the removal of components begins without leaving this phase.
func beginsRemoval(phase v1beta2.AppWrapperPhase) func(moment) bool {
	return func(m moment) bool {
		return m.was.Phase == phase && !movesOn(m) && m.turned(m.was, v1beta2.DeletingResources, metav1.ConditionTrue)
	}
}

// isHealthy reports whether the AppWrapper runs, its status says so, and nothing else is
// required of it.
func isHealthy(m moment) bool {
	o := m.seen
	if o.Status.Phase != v1beta2.AppWrapperRunning || o.Deleting || o.Suspend ||
		!meta.IsStatusConditionTrue(o.Status.Conditions, string(v1beta2.PodsReady)) ||
		meta.IsStatusConditionTrue(o.Status.Conditions, string(v1beta2.Unhealthy)) ||
		meta.IsStatusConditionTrue(o.Status.Conditions, string(v1beta2.OnUnhealthyNodes)) ||
		meta.IsStatusConditionTrue(o.Status.Conditions, string(v1beta2.SurplusPods)) ||
		meta.IsStatusConditionTrue(o.Status.Conditions, string(v1beta2.Idle)) ||
		meta.IsStatusConditionTrue(o.Status.Conditions, string(v1beta2.DeletingResources)) {
		return false
	}
	expected := 0
	for i, c := range o.Components {
		if !c.Exists || c.Terminating || c.Verdict == kinds.Succeeded || c.Verdict == kinds.Failed {
			return false
		}
		for _, podSet := range o.Status.ComponentStatus[i].PodSets {
			expected += int(podSet.Count())
		}
	}
	busy := func(p lifecycle.Pod) bool {
		return p.Phase == corev1.PodRunning && !p.Terminating && p.MigrateFrom == "" && p.NotReadySince.IsZero() && p.IdleSince.IsZero()
	}
	return len(o.Pods) == expected && !slices.ContainsFunc(o.Pods, func(p lifecycle.Pod) bool { return !busy(p) })
}

// What must be true under the condition.

func (m moment) waited(since time.Time, d time.Duration) bool {
	return !m.now.Before(since.Add(d))
}

// hasStrays: a component exists that was created after its attempt.
func (m moment) hasStrays() bool {
	return slices.ContainsFunc(m.resources, func(r *resource) bool { return r.exists && r.stray })
}

// deploysNothing: it waits for quota or has failed, says that nothing of it is deployed, and a controller runs.
func deploysNothing(m moment) bool {
	phase, away := m.status.Phase, m.stopped || m.shell != nil && m.now.Before(m.shell.away)
	return m.resting && !away && !m.gone && (phase == v1beta2.AppWrapperSuspended || phase == v1beta2.AppWrapperFailed) &&
		!meta.IsStatusConditionTrue(m.status.Conditions, string(v1beta2.ResourcesDeployed))
}

// removal has the effects of a phase that removes components.
var removal = []lifecycle.Effect{lifecycle.Delete, lifecycle.ForceDelete}

var effects = map[v1beta2.AppWrapperPhase][]lifecycle.Effect{
	v1beta2.AppWrapperEmpty:       {lifecycle.AddFinalizer},
	v1beta2.AppWrapperSuspended:   append([]lifecycle.Effect{lifecycle.AddFinalizer, lifecycle.TryCreate}, removal...), // of what came too late
	v1beta2.AppWrapperResuming:    {lifecycle.Create},
	v1beta2.AppWrapperRunning:     append([]lifecycle.Effect{lifecycle.GiveBack}, removal...), // if its pods outlive a component, or are idle
	v1beta2.AppWrapperResetting:   append([]lifecycle.Effect{lifecycle.Reassign}, removal...), // if Kueue has assigned bad nodes
	v1beta2.AppWrapperSuspending:  removal,
	v1beta2.AppWrapperSucceeded:   removal,
	v1beta2.AppWrapperFailed:      removal,
	v1beta2.AppWrapperTerminating: removal,
}

func hasEffect(m moment) bool {
	if m.seen.Deleting && (m.decision.Effect == lifecycle.RemoveFinalizer || m.decision.Effect == lifecycle.Delete) {
		return true
	}
	return slices.Contains(effects[m.decision.Status.Phase], m.decision.Effect)
}

func countsRetries(m moment) bool {
	retried := entering(v1beta2.AppWrapperResetting)(m) && !blames(v1beta2.ReasonAutopilotNoExecute)(m)
	return m.status.Retries-m.was.Retries == countOf(retried)
}

// countsStarts: what was lost after it was ready had started.
func countsStarts(m moment) bool {
	late := blames(v1beta2.ReasonCreateFailed)(m) || blames(v1beta2.ReasonInsufficientPodsReady)(m) && !m.past.ready
	return m.status.StartupRetries-m.was.StartupRetries == countOf(late && entering(v1beta2.AppWrapperResetting)(m))
}

func countsMigrations(m moment) bool {
	return m.status.Migrations-m.was.Migrations == countOf(blames(v1beta2.ReasonAutopilotNoExecute)(m))
}

// hadToMigrate reports whether a pod was on an unhealthy node in this attempt, or the attempt
// began with a migration and its pods are late to become ready for the first time.
func hadToMigrate(m moment) bool {
	return m.past.mustMigrate || m.past.migrated && !m.past.ready && m.waited(m.past.created, m.policy.AdmissionGrace)
}

func countOf(happened bool) int32 {
	if happened {
		return 1
	}
	return 0
}

// mayMigrate reports whether the AppWrapper rests in Running, nothing is about to end that, and
// a migration is left.
func mayMigrate(m moment) bool {
	hopeless := func(p *pod) bool { return slices.Contains(p.ExitCodes, 13) }
	return m.status.Phase == v1beta2.AppWrapperRunning && !m.deleting && (m.shell == nil || !m.now.Before(m.shell.away)) &&
		m.status.Migrations < m.policy.MigrationLimit && !slices.ContainsFunc(m.pods, hopeless) &&
		!meta.IsStatusConditionTrue(m.status.Conditions, string(v1beta2.DeletingResources))
}

// failsAgain reports whether an attempt ends for a reason that a node may be to blame for.
func failsAgain(m moment) bool {
	unhealthy := meta.FindStatusCondition(m.decision.Status.Conditions, string(v1beta2.Unhealthy))
	to := m.decision.Status.Phase
	return moves(m) && (to == v1beta2.AppWrapperResetting || to == v1beta2.AppWrapperFailed) && m.seen.Status.Migrations < m.policy.MigrationLimit &&
		unhealthy != nil && slices.Contains([]string{v1beta2.ReasonFailedComponent, v1beta2.ReasonFoundFailedPods}, unhealthy.Reason)
}

// noNodeIsToBlame reports whether no pod failed on an unhealthy node; unless another ended with an
// exit code that forbids another attempt.
func noNodeIsToBlame(m moment) bool {
	missing, rejected, otherwise := 0, false, false
	for i, c := range m.decision.Status.ComponentStatus {
		for _, podSet := range c.PodSets {
			if !succeeded(m, i) {
				missing += int(podSet.Count())
			}
		}
	}
	for _, p := range m.seen.Pods {
		if p.Phase == corev1.PodFailed && slices.Contains(p.ExitCodes, 13) {
			return true
		}
		if p.Component >= 0 && succeeded(m, p.Component) {
			continue
		}
		fails := p.Phase == corev1.PodFailed && p.MigrateFrom != ""
		if len(p.MigrateBecause) > 0 { // in these walks, always a rejection
			rejected = rejected || fails
			continue
		}
		missing--
		otherwise = otherwise || fails
	}
	return !otherwise && (!rejected || missing <= 0)
}

// succeeded reports whether a component did.
func succeeded(m moment, component int) bool {
	return knownToSucceed(m.decision.Status, component)
}

// knownToSucceed reports whether a status says so of a component.
func knownToSucceed(s v1beta2.AppWrapperStatus, component int) bool {
	return component < len(s.ComponentStatus) && meta.IsStatusConditionTrue(s.ComponentStatus[component].Conditions, string(v1beta2.ComponentSucceeded))
}

// hasMigrated reports whether no unfinished component has a pod on an unhealthy node.
func hasMigrated(m moment) bool {
	for _, p := range m.pods {
		done := m.past.reported[p.Component] && !m.resources[p.Component].unlabelled
		ended := p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed
		if p.MigrateFrom != "" && !p.MigrateAt.After(m.now) && !p.Terminating && !ended && !done {
			return false
		}
	}
	return true
}

// mayHaveNoSurplus reports whether the AppWrapper rests in Running, has not finished, and surplus
// pods are to end that.
func mayHaveNoSurplus(m moment) bool {
	return m.status.Phase == v1beta2.AppWrapperRunning && m.policy.ResetSurplus && !m.deleting && (m.shell == nil || !m.now.Before(m.shell.away)) &&
		!meta.IsStatusConditionTrue(m.status.Conditions, string(v1beta2.DeletingResources)) && !achieved(m)
}

// surplusFor reports whether more pods than declared run, and have run for that long.
func (m moment) surplusFor(d time.Duration) bool {
	running := 0
	for _, p := range m.pods {
		if p.Phase == corev1.PodRunning && !p.Terminating && m.waited(p.Started, d) {
			running++
		}
	}
	for _, r := range m.resources {
		running -= int(r.replicas)
	}
	return running > 0
}

// mayNotHang reports whether the AppWrapper rests in Running, has not finished, and asked not to hang.
func mayNotHang(m moment) bool {
	return m.status.Phase == v1beta2.AppWrapperRunning && m.policy.NoProgressGrace > 0 && !m.deleting && (m.shell == nil || !m.now.Before(m.shell.away)) &&
		!meta.IsStatusConditionTrue(m.status.Conditions, string(v1beta2.DeletingResources)) && !achieved(m)
}

// hangsFor reports whether a pod that is to work has not been ready for that long, and enough pods ran.
func (m moment) hangsFor(s v1beta2.AppWrapperStatus, d time.Duration) bool {
	ready := meta.FindStatusCondition(s.Conditions, string(v1beta2.PodsReady))
	if ready == nil || ready.Status != metav1.ConditionTrue || !m.waited(ready.LastTransitionTime.Time, d) {
		return false
	}
	for _, p := range m.pods {
		// A controller that was away has not seen a success whose component is gone since.
		done := m.past.reported[p.Component] && (m.shell == nil || knownToSucceed(s, p.Component))
		if p.Phase == corev1.PodRunning && !p.Terminating && p.MigrateFrom == "" && !done && !p.NotReadySince.IsZero() && m.waited(p.NotReadySince, d) {
			return true
		}
	}
	return false
}

func givesBack(m moment) bool { return m.decision.Effect == lifecycle.GiveBack }

// idleIsForgottenAfter is what docs/fault-tolerance.md says.
const idleIsForgottenAfter = 10 * time.Minute

// isIdleFor reports whether none of the pods that it saw has used its devices for that long, as was said
// lately.
func (m moment) isIdleFor(d time.Duration) bool {
	holds := false
	for _, p := range m.seen.Pods {
		if p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed || p.Terminating || len(p.Devices) == 0 {
			continue
		}
		if p.IdleSince.IsZero() || !m.waited(p.IdleSince, d) || m.waited(p.IdleSeen, idleIsForgottenAfter) {
			return false
		}
		holds = true
	}
	return holds
}

// mayNotRest reports whether the AppWrapper rests in Running, all is well, and it asked not to be idle.
func mayNotRest(m moment) bool {
	return m.status.Phase == v1beta2.AppWrapperRunning && m.policy.IdleGrace > 0 && !m.suspend && !m.deleting && !m.stopped && (m.shell == nil || !m.now.Before(m.shell.away)) &&
		meta.IsStatusConditionTrue(m.status.Conditions, string(v1beta2.PodsReady)) && !meta.IsStatusConditionTrue(m.status.Conditions, string(v1beta2.Unhealthy)) &&
		!meta.IsStatusConditionTrue(m.status.Conditions, string(v1beta2.DeletingResources)) && !achieved(m) && m.watcherGone.IsZero()
}

// hasGivenBack reports whether no idle work is left that was told so in time.
func hasGivenBack(m moment) bool {
	m.seen = m.observe()
	told := meta.IsStatusConditionTrue(m.status.Conditions, string(v1beta2.Idle))
	if !m.isIdleFor(m.policy.IdleGrace / 2) {
		return true
	}
	return told && (!m.isIdleFor(m.policy.IdleGrace) || !m.waited(m.past.idleTold, m.policy.IdleGrace/2))
}

func achieved(m moment) bool {
	for i, r := range m.resources {
		if r.reportsEnd && !m.past.reported[i] {
			return false
		}
	}
	return m.past.worked
}

func graceIsOver(m moment) bool {
	switch {
	case m.past.noticed.IsZero():
		return false
	case blames(v1beta2.ReasonFoundFailedPods)(m):
		return m.waited(m.past.noticed, m.policy.FailureGrace)
	case m.past.lost.IsZero():
		return m.waited(m.past.created, m.policy.AdmissionGrace)
	}
	return m.waited(m.past.lost, m.policy.FailureGrace)
}

// makesPods reports whether the owner replaces a deleted pod of this resource.
func (r *resource) makesPods() bool { return r.exists && !r.terminating && r.replicas > 0 }

func isPure(m moment) bool {
	return reflect.DeepEqual(m.before, m.seen.Snapshot) && reflect.DeepEqual(lifecycle.Decide(m.before, m.now), m.decision)
}

// isStable reports whether after at most three looks there is a move, or nothing more to write.
func isStable(m moment) bool {
	s, d := m.seen.Snapshot, m.decision
	for range 3 {
		s.Status = d.Status
		d = lifecycle.Decide(s, m.now)
		if d.Moved(s) || same(d.Status, s.Status) {
			return true
		}
	}
	return false
}

func same(a, b v1beta2.AppWrapperStatus) bool {
	return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(a, b)
}

func conditionsAreStamped(m moment) bool {
	before, after := m.seen.Status, m.decision.Status
	if moves(m) && !after.PhaseTransitionTime.Time.Equal(m.now) || stays(m) && !reflect.DeepEqual(before.PhaseTransitionTime, after.PhaseTransitionTime) {
		return false
	}
	if !m.areStamped(before.Conditions, after.Conditions) {
		return false
	}
	for i := range before.ComponentStatus {
		if !m.areStamped(before.ComponentStatus[i].Conditions, after.ComponentStatus[i].Conditions) {
			return false
		}
	}
	return true
}

func (m moment) areStamped(before, after []metav1.Condition) bool {
	for _, c := range after {
		old := meta.FindStatusCondition(before, c.Type)
		if old != nil && old.Status == c.Status {
			if !old.LastTransitionTime.Equal(&c.LastTransitionTime) {
				return false
			}
			continue
		}
		held := c.Reason == v1beta2.ReasonDeletionPaused // as old as the phase
		if !c.LastTransitionTime.Time.Equal(m.now) && !held {
			return false
		}
	}
	return true
}

func podSetsAreKept(m moment) bool {
	for i, c := range m.seen.Status.ComponentStatus {
		if !reflect.DeepEqual(c.PodSets, m.decision.Status.ComponentStatus[i].PodSets) {
			return false
		}
	}
	return true
}

func isContent(m moment) bool {
	d := m.decision
	return !m.writes && d.Effect == lifecycle.Nothing && d.Requeue == 0 && d.Event == nil
}

// isAtRest reports whether nothing is left to do, except a removal that was tried and refused.
func isAtRest(m moment) bool {
	d := m.decision
	return same(d.Status, m.seen.Status) && (d.Effect == lifecycle.Nothing || slices.Contains(removal, d.Effect))
}
