// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "github.com/mlbatch/mlbatch/controller/api/v1beta2"

// terminating is an AppWrapper with a deletionTimestamp, in whatever phase. It is let
// go when nothing of it is left, whatever the deletion was to spare (--cascade=orphan):
// what lived on would use what others get the quota for. Without our finalizer, nothing
// was ever deployed.
func terminating(v *view) Decision {
	const phase = v1beta2.AppWrapperTerminating
	if !v.HasFinalizer {
		return v.stay()
	}
	if v.status.Phase != phase && (v.isTrue(v1beta2.ResourcesDeployed) || v.remains()) {
		v.beginRemoval()
		return v.move(phase).because("deleted")
	}
	if d, gone := v.tearDown(); !gone {
		return d
	}
	if v.LastFinalizer {
		return Decision{Status: v.Status, Effect: RemoveFinalizer}
	}
	v.clear(v1beta2.ResourcesDeployed, string(phase), nothingDeployed)
	v.clear(v1beta2.QuotaReserved, string(phase), nothingDeployed)
	return v.do(RemoveFinalizer, nil)
}
