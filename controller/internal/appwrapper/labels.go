// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// other is what a label says instead of a value that is not in its set.
const other = "Other"

func among[Text ~string](set []Text, value Text) string {
	if slices.Contains(set, value) {
		return string(value)
	}
	return other
}

// phaseNames are the values of labels that name a phase. A status may have others, for
// whoever may write it may write anything.
var phaseNames = []string{
	noPhase, string(v1beta2.AppWrapperSuspended), string(v1beta2.AppWrapperResuming), string(v1beta2.AppWrapperRunning),
	string(v1beta2.AppWrapperResetting), string(v1beta2.AppWrapperSuspending), string(v1beta2.AppWrapperSucceeded),
	string(v1beta2.AppWrapperFailed), string(v1beta2.AppWrapperTerminating),
}

const noPhase = "(none)"

func phaseName(phase v1beta2.AppWrapperPhase) string {
	if phase == v1beta2.AppWrapperEmpty {
		return noPhase
	}
	return among(phaseNames, string(phase))
}

// resetCauses are the reasons of Unhealthy for which there is another attempt.
var resetCauses = []string{
	v1beta2.ReasonCreateFailed, v1beta2.ReasonFailedComponent, v1beta2.ReasonFoundFailedPods,
	v1beta2.ReasonInsufficientPodsReady, v1beta2.ReasonAutopilotNoExecute, v1beta2.ReasonSurplusPods, v1beta2.ReasonNoProgress,
}

// refusalReasons are why a component was not created: our own, and those with which the
// API server answers a create. What a webhook gives as its reason may be any text.
var refusalReasons = []string{
	causeTemplate, causeOccupied, causeGoing, causeNoKind, causePermission, causeScope,
	string(metav1.StatusReasonUnauthorized), string(metav1.StatusReasonForbidden), string(metav1.StatusReasonNotFound),
	string(metav1.StatusReasonConflict), string(metav1.StatusReasonInvalid), string(metav1.StatusReasonBadRequest),
	string(metav1.StatusReasonServerTimeout), string(metav1.StatusReasonTimeout), string(metav1.StatusReasonTooManyRequests),
	string(metav1.StatusReasonInternalError), string(metav1.StatusReasonServiceUnavailable),
	string(metav1.StatusReasonMethodNotAllowed), string(metav1.StatusReasonRequestEntityTooLarge),
}
