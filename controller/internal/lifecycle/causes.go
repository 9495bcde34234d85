// SPDX-License-Identifier: Apache-2.0

package lifecycle

// Cause is why the phase changes: a value of the metric appwrapper_transitions_total, and a
// word of the log. docs/lifecycle.md says what each means.
type Cause string

// The causes. There are no others.
const (
	CauseAccepted            Cause = "Accepted"
	CauseInvalidAppWrapper   Cause = "InvalidAppWrapper"
	CauseInvalidComponent    Cause = "InvalidComponent"
	CauseQuotaGiven          Cause = "QuotaGiven"
	CauseComponentsExist     Cause = "ComponentsExist"
	CauseCreationRejected    Cause = "CreationRejected"
	CauseCreationRefused     Cause = "CreationRefused"
	CauseOldComponentRemains Cause = "OldComponentRemains"
	CauseAllSucceeded        Cause = "AllSucceeded"
	CauseSuspended           Cause = "Suspended"
	CauseComponentMissing    Cause = "ComponentMissing"
	CauseComponentFailed     Cause = "ComponentFailed"
	CauseNodeUnhealthy       Cause = "NodeUnhealthy"
	CauseSurplusPods         Cause = "SurplusPods"
	CauseNoProgress          Cause = "NoProgress"
	CausePodsFailed          Cause = "PodsFailed"
	CauseSameFailure         Cause = "SameFailure"
	CauseIdle                Cause = "Idle"
	CausePodsReady           Cause = "PodsReady"
	CauseCrashLoop           Cause = "CrashLoop"
	CauseReadinessLate       Cause = "ReadinessLate"
	CauseRetryPauseOver      Cause = "RetryPauseOver"
	CauseEverythingGone      Cause = "EverythingGone"
	CauseDeleted             Cause = "Deleted"
)

// Causes are all causes of moves, in the order of docs/lifecycle.md. CausePodsReady,
// CauseCrashLoop and CauseIdle are none: they are why an AppWrapper stays Running.
func Causes() []Cause {
	return []Cause{
		CauseAccepted, CauseInvalidAppWrapper, CauseInvalidComponent, CauseQuotaGiven,
		CauseComponentsExist, CauseCreationRejected, CauseCreationRefused, CauseOldComponentRemains,
		CauseAllSucceeded, CauseSuspended, CauseComponentMissing, CauseComponentFailed, CauseNodeUnhealthy,
		CauseSurplusPods, CauseNoProgress, CausePodsFailed, CauseSameFailure, CauseReadinessLate,
		CauseRetryPauseOver, CauseEverythingGone, CauseDeleted,
	}
}
