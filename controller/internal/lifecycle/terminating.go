// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// quickDeletion is how long what was deployed has to go before the phase says that it is going. Most
// of it goes within a second, and nobody would read a status that is gone then, too.
const quickDeletion = 5 * time.Second

// terminating handles an AppWrapper with a deletionTimestamp, in any phase. The finalizer is
// removed when nothing is left, even with --cascade=orphan: what kept running would use quota
// that Kueue gives to others. What uses none does not keep the AppWrapper, whose quota is held until
// then. Without our finalizer nothing was ever deployed.
func terminating(v *view) Decision {
	const phase = v1beta2.AppWrapperTerminating
	if !v.HasFinalizer {
		return v.stay()
	}
	if d, quick := v.goesQuickly(); quick {
		return d
	}
	if v.status.Phase != phase && (v.isTrue(v1beta2.ResourcesDeployed) || v.remains()) {
		v.beginRemoval()
		return v.move(phase).because(CauseDeleted)
	}
	if d, gone := v.tearDown(); !gone && !v.releasable() {
		return d
	}
	if v.LastFinalizer {
		return Decision{Status: v.Status, Effect: RemoveFinalizer}
	}
	v.clear(v1beta2.ResourcesDeployed, string(phase), nothingDeployed)
	v.clear(v1beta2.QuotaReserved, string(phase), nothingDeployed)
	return v.do(RemoveFinalizer, nil)
}

// goesQuickly deletes without a word. The deletionTimestamp is the promise that nothing is created
// any more, so the status need not say it. What is not gone after quickDeletion is removed in the phase
// Terminating, and only from then on counts the grace period before force.
func (v *view) goesQuickly() (d Decision, quick bool) {
	stays := Decision{Status: v.Status}
	if !v.LastFinalizer || v.status.Phase == v1beta2.AppWrapperTerminating {
		return stays, false
	}
	if !v.remains() {
		stays.Effect = RemoveFinalizer
		return stays, true
	}
	until := v.DeletedAt.Add(quickDeletion)
	if left := until.Sub(v.now); left <= 0 || left > quickDeletion {
		return stays, false
	}
	if targets := v.undeleted(v.existing()); len(targets) > 0 {
		stays.Effect, stays.Targets = Delete, targets
	}
	return stays.requeueAt(until, v.now), true
}
