// SPDX-License-Identifier: Apache-2.0

// Package ledger answers what the time was used for in which quota was reserved for an AppWrapper.
// It is pure: it knows the statuses that are saved, and when. Between two saves the time belongs to
// one class, which follows from the earlier status. So the classes add up to the time for which
// quota was reserved, whatever happens between. The time of an attempt is in flight until the
// attempt ends. Then it is split into what was useful and what was lost, and no other sum ever falls.
package ledger

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Class is what time is used for. Metrics, tables and docs name it so.
type Class string

// The classes. There are no others.
const (
	// Starting: from the reservation until enough pods run for the first time in an attempt.
	Starting Class = "Starting"
	// InFlight: the attempt works, and nobody knows yet whether the work is useful.
	InFlight Class = "InFlight"
	// Idle: nothing was done with the devices since the author was told so.
	Idle Class = "Idle"
	// Useful: an attempt that succeeded, or what it did before its last checkpoint.
	Useful Class = "Useful"
	// LostToNode: what an attempt did, which then had to leave a node.
	LostToNode Class = "LostToNode"
	// LostToFailure: what an attempt did that failed for another reason.
	LostToFailure Class = "LostToFailure"
	// LostToHang: what an attempt did that was ended because it made no progress.
	LostToHang Class = "LostToHang"
	// LostToPreemption: what an attempt did until its quota was taken back.
	LostToPreemption Class = "LostToPreemption"
	// Pausing: nothing is left of an attempt, and the next one has to wait.
	Pausing Class = "Pausing"
	// Ending: components are removed.
	Ending Class = "Ending"
	// Held: the components of a failed AppWrapper are kept for its author.
	Held Class = "Held"
)

// Classes are all classes.
func Classes() []Class {
	return []Class{Starting, InFlight, Idle, Useful, LostToNode, LostToFailure, LostToHang, LostToPreemption, Pausing, Ending, Held}
}

// Facts are not in the status of the AppWrapper.
type Facts struct {
	// Reserved is since when Kueue reserves the quota; zero if that is not known. It may give it
	// to the AppWrapper later.
	Reserved time.Time
	// Checkpoint is when the work last saved what it had done; zero if it does not say.
	Checkpoint time.Time
	// Deleted is when the AppWrapper was deleted; zero if it was not. What goes quickly is in no status.
	Deleted time.Time
}

// Post returns the usage to be saved with a status: the earlier usage, and the time since.
func Post(before, after v1beta2.AppWrapperStatus, facts Facts, now time.Time) *v1beta2.AppWrapperUsage {
	reserved, stays := isTrue(before, v1beta2.QuotaReserved), isTrue(after, v1beta2.QuotaReserved)
	if before.Usage == nil && !stays {
		return nil
	}
	usage := v1beta2.AppWrapperUsage{}
	if before.Usage != nil {
		usage = *before.Usage
	}
	switch {
	case reserved:
		countSince(&usage, before, facts.Deleted, now)
	case stays:
		count(&usage, Starting, givenAt(usage, facts, now), now)
	}
	if ends(before, after) {
		split(&usage, lostTo(after), lost(usage.InFlightSeconds, facts.Checkpoint, now))
	}
	return &usage
}

// Until is the usage as it would be posted now if nothing else happened.
func Until(status v1beta2.AppWrapperStatus, now time.Time) v1beta2.AppWrapperUsage {
	if usage := Post(status, status, Facts{}, now); usage != nil {
		return *usage
	}
	return v1beta2.AppWrapperUsage{}
}

// Lost is how much the present attempt would lose if its quota was taken back now, since its last checkpoint.
func Lost(status v1beta2.AppWrapperStatus, checkpoint, now time.Time) time.Duration {
	if isTrue(status, v1beta2.Idle) {
		return 0
	}
	usage := Until(status, now)
	return time.Duration(lost(usage.InFlightSeconds, checkpoint, now)) * time.Second
}

// In is where a usage has the seconds of a class.
func In(u *v1beta2.AppWrapperUsage, class Class) *int64 { return fields[class](u) }

var fields = map[Class]func(*v1beta2.AppWrapperUsage) *int64{
	Starting:         func(u *v1beta2.AppWrapperUsage) *int64 { return &u.StartingSeconds },
	InFlight:         func(u *v1beta2.AppWrapperUsage) *int64 { return &u.InFlightSeconds },
	Idle:             func(u *v1beta2.AppWrapperUsage) *int64 { return &u.IdleSeconds },
	Useful:           func(u *v1beta2.AppWrapperUsage) *int64 { return &u.UsefulSeconds },
	LostToNode:       func(u *v1beta2.AppWrapperUsage) *int64 { return &u.LostToNodeSeconds },
	LostToFailure:    func(u *v1beta2.AppWrapperUsage) *int64 { return &u.LostToFailureSeconds },
	LostToHang:       func(u *v1beta2.AppWrapperUsage) *int64 { return &u.LostToHangSeconds },
	LostToPreemption: func(u *v1beta2.AppWrapperUsage) *int64 { return &u.LostToPreemptionSeconds },
	Pausing:          func(u *v1beta2.AppWrapperUsage) *int64 { return &u.PausingSeconds },
	Ending:           func(u *v1beta2.AppWrapperUsage) *int64 { return &u.EndingSeconds },
	Held:             func(u *v1beta2.AppWrapperUsage) *int64 { return &u.HeldSeconds },
}

// Sum is the time of all classes.
func Sum(u v1beta2.AppWrapperUsage) time.Duration {
	var seconds int64
	for _, class := range Classes() {
		seconds += *In(&u, class)
	}
	return time.Duration(seconds) * time.Second
}

// countSince adds the time since the earlier status. What comes after the deletion is Ending.
func countSince(u *v1beta2.AppWrapperUsage, before v1beta2.AppWrapperStatus, deleted, now time.Time) {
	class, since := classOf(before), countedUntil(before, now)
	if deleted.IsZero() || deleted.After(now) {
		count(u, class, since, now)
		return
	}
	if deleted.After(since) {
		count(u, class, since, deleted)
		since = deleted
	}
	count(u, Ending, since, now)
}

// maxSkew is how far the clocks of two leaders may be apart.
const maxSkew = time.Minute

// count adds the whole seconds since then: whole seconds are stored, so the parts are the whole. What
// a leader has counted whose clock was ahead is not counted again.
func count(u *v1beta2.AppWrapperUsage, class Class, since, now time.Time) {
	*In(u, class) += max(0, now.Unix()-since.Unix())
	if since.Before(now) || since.After(now.Add(maxSkew)) {
		since = now
	}
	u.At = metav1.Time{Time: since.Truncate(time.Second)}
}

// countedUntil is until when a status with reserved quota is counted. Usage that another controller
// has dropped begins anew, and one that another has kept without counting begins with the
// reservation.
func countedUntil(s v1beta2.AppWrapperStatus, now time.Time) time.Time {
	if s.Usage == nil {
		return now
	}
	return later(s.Usage.At.Time, meta.FindStatusCondition(s.Conditions, string(v1beta2.QuotaReserved)).LastTransitionTime.Time)
}

// givenAt is when the quota was reserved that the AppWrapper gets now.
func givenAt(u v1beta2.AppWrapperUsage, facts Facts, now time.Time) time.Time {
	if facts.Reserved.IsZero() {
		return now
	}
	return later(facts.Reserved, u.At.Time)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// classOf is what the time is used for while a status with reserved quota stands.
func classOf(s v1beta2.AppWrapperStatus) Class {
	if isTrue(s, v1beta2.DeletingResources) {
		return Ending
	}
	switch s.Phase {
	case v1beta2.AppWrapperResuming:
		return Starting
	case v1beta2.AppWrapperRunning:
		if !works(s) {
			return Starting
		}
		if isTrue(s, v1beta2.Idle) {
			return Idle
		}
		return InFlight
	case v1beta2.AppWrapperResetting:
		return Pausing
	case v1beta2.AppWrapperFailed:
		return Held
	}
	return Ending
}

// works: enough pods have run in this attempt. Until then the reason of PodsReady is that with
// which the attempt began.
func works(s v1beta2.AppWrapperStatus) bool {
	ready := meta.FindStatusCondition(s.Conditions, string(v1beta2.PodsReady))
	return ready != nil && (ready.Status == metav1.ConditionTrue || ready.Reason == v1beta2.ReasonInsufficientPodsReady)
}

// ends: an attempt was under way, and is not any more.
func ends(before, after v1beta2.AppWrapperStatus) bool {
	return underWay(before.Phase) && !underWay(after.Phase)
}

func underWay(phase v1beta2.AppWrapperPhase) bool {
	return phase == v1beta2.AppWrapperResuming || phase == v1beta2.AppWrapperRunning
}

// lostTo is what an attempt is lost to that ends so. What succeeded, was deleted by its user, or was idle
// when its quota was taken back, is useful as a whole.
func lostTo(after v1beta2.AppWrapperStatus) Class {
	switch after.Phase {
	case v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperTerminating:
		return Useful
	case v1beta2.AppWrapperSuspending:
		if isTrue(after, v1beta2.Idle) {
			return Useful
		}
		return LostToPreemption
	}
	unhealthy := meta.FindStatusCondition(after.Conditions, string(v1beta2.Unhealthy))
	switch {
	case unhealthy == nil:
		return LostToFailure
	case unhealthy.Reason == v1beta2.ReasonAutopilotNoExecute:
		return LostToNode
	case unhealthy.Reason == v1beta2.ReasonNoProgress:
		return LostToHang
	}
	return LostToFailure
}

// split ends the attempt: of what is in flight so much is of this class, and the rest useful.
func split(u *v1beta2.AppWrapperUsage, class Class, lost int64) {
	useful := u.InFlightSeconds - lost
	u.InFlightSeconds = 0
	*In(u, class) += lost
	u.UsefulSeconds += useful
}

// lost is what of the seconds in flight came after the checkpoint.
func lost(inFlight int64, checkpoint, now time.Time) int64 {
	return min(inFlight, max(0, now.Unix()-checkpoint.Unix()))
}

func isTrue(s v1beta2.AppWrapperStatus, kind v1beta2.AppWrapperCondition) bool {
	return meta.IsStatusConditionTrue(s.Conditions, string(kind))
}
