// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Event is something that happened to an AppWrapper and that its author should know.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is the detailed cause.
	Reason string
	// Action is what was done about it, or the condition that it shows in.
	Action string
	// Message is for humans.
	Message string
}

// The actions of events.
const (
	actionUnhealthy  = "Unhealthy"
	actionSuspending = "Suspending"
)

const reasonExternallySuspended = "ExternallySuspended"

func unhealthyEvent(reason, message string) *Event {
	return &Event{Type: corev1.EventTypeWarning, Reason: reason, Action: actionUnhealthy, Message: message}
}

func suspendingEvent(from v1beta2.AppWrapperPhase) *Event {
	return &Event{
		Type:    corev1.EventTypeNormal,
		Reason:  reasonExternallySuspended,
		Action:  actionSuspending,
		Message: "spec.suspend became true while the phase was " + string(from),
	}
}
