// SPDX-License-Identifier: Apache-2.0

package runlife

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Event tells the author of a Run what happened to it.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is what happened, in one word.
	Reason string
	// Action is what the controller did.
	Action string
	// Message is for humans.
	Message string
}

// The reasons of events. Planned, Succeeded and Cancelled are those of conditions, too.
const (
	reasonStarted = "Started"
	reasonFailed  = "Failed"
	reasonSkipped = "StepSkipped"
	// reasonCommitsDiffer: the pods ran different code.
	reasonCommitsDiffer = "CommitsDiffer"
)

// The actions of events.
const (
	actionPlan   = "Plan"
	actionFollow = "Follow"
	actionEnd    = "End"
)

func normal(reason, action, message string) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: reason, Action: action, Message: note(message)}
}

// longestNote is the most that events.k8s.io takes.
const longestNote = 1024

func failedEvent(reason, message string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reasonFailed, Action: actionEnd, Message: note(reason + ": " + message)}
}

// ofStep says whose event it is.
func (e Event) ofStep(name string) Event {
	e.Message = note("step " + name + ": " + e.Message)
	return e
}

func note(text string) string {
	if len(text) <= longestNote {
		return text
	}
	return strings.ToValidUTF8(text[:longestNote], "")
}
