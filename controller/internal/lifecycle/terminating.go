// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "github.com/mlbatch/mlbatch/controller/api/v1beta2"

// terminating handles an AppWrapper with a deletionTimestamp, in any phase. The finalizer is
// removed when nothing is left, even with --cascade=orphan: what kept running would use quota
// that Kueue gives to others. What uses none does not keep the AppWrapper, whose quota is held until
// then. Without our finalizer nothing was ever deployed.
func terminating(v *view) Decision {
	const phase = v1beta2.AppWrapperTerminating
	if !v.HasFinalizer {
		return v.stay()
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
