// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Event tells the author of an AppWrapper what happened to it.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is the cause, in one word.
	Reason string
	// Action is what the controller did, or the condition that shows the event.
	Action string
	// Message is for humans.
	Message string
}

// The actions of events.
const (
	actionUnhealthy  = "Unhealthy"
	actionSuspending = "Suspending"
	actionWatching   = "Watching"
	actionResuming   = "Resuming"
)

const (
	reasonExternallySuspended = "ExternallySuspended"
	reasonNotWatched          = "ComponentNotWatched"
	reasonNodesAvoided        = "NodesAvoided"
	reasonIdle                = "Idle"
	reasonStrayComponent      = "StrayComponent"
	reasonHangNotConfirmed    = "HangNotConfirmed"
)

// NotWatched is no decision: the shell announces it if the watch of a kind does not begin.
func NotWatched(kind string) *Event {
	return &Event{
		Type:   corev1.EventTypeWarning,
		Reason: reasonNotWatched,
		Action: actionWatching,
		Message: fmt.Sprintf("the API server does not list %s objects, so their end may be noticed up to a minute late. "+
			"The log of the controller has the error. Check the conversion webhook of the CRD", kind),
	}
}

func unhealthyEvent(reason, message string) *Event {
	return &Event{Type: corev1.EventTypeWarning, Reason: reason, Action: actionUnhealthy, Message: message}
}

func avoidingEvent(message string) *Event {
	return &Event{Type: corev1.EventTypeNormal, Reason: reasonNodesAvoided, Action: actionResuming, Message: message}
}

func idleEvent(message string) *Event {
	return &Event{Type: corev1.EventTypeWarning, Reason: reasonIdle, Action: actionSuspending, Message: message}
}

func strayEvent(message string) *Event {
	return &Event{Type: corev1.EventTypeWarning, Reason: reasonStrayComponent, Action: actionSuspending, Message: message}
}

func holdingEvent(message string) *Event {
	return &Event{Type: corev1.EventTypeWarning, Reason: reasonHangNotConfirmed, Action: actionWatching, Message: message}
}

// suspendingEvent says what the suspension costs.
func suspendingEvent(from v1beta2.AppWrapperPhase, lost time.Duration, idle bool) *Event {
	message := "spec.suspend became true while the phase was " + string(from)
	if idle {
		message += "; no pod used its devices"
	}
	if lost > 0 {
		message += fmt.Sprintf("; %s of work since the last known checkpoint are lost", lost)
	}
	return &Event{Type: corev1.EventTypeNormal, Reason: reasonExternallySuspended, Action: actionSuspending, Message: message}
}
