// SPDX-License-Identifier: Apache-2.0

// Package stories has whole lives of AppWrappers as scripts: what everybody but the
// controller does, and when. A script is lived in any World: one in memory that only has
// decisions in it, and one with the real controller before an API server.
package stories

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Story is the life of one AppWrapper.
type Story struct {
	// Name is a sentence, and that of the story's transcript.
	Name string
	// Annotations are the AppWrapper's; the rest of its policy is the standard.
	Annotations map[string]string
	// MigrationLimit is the configured one.
	MigrationLimit int32
	// Components are what the AppWrapper wraps.
	Components []Component
	// Steps follow each other.
	Steps []Step
}

// Component is one wrapped resource, and what is special about those around it.
type Component struct {
	// Kind is Job, PyTorchJob, Service or Custom, which the controller does not know.
	Kind string
	// Name of the resource.
	Name string
	// Pods is how many its owner makes.
	Pods int32
	// Replaces: the owner makes a new pod for one that has failed.
	Replaces bool
	// Held: a finalizer of somebody else keeps it when it is deleted.
	Held bool
	// Refusal is what the API server says to its creation at first; nil where it agrees.
	Refusal *Refusal
}

// Refusal is an answer of the API server.
type Refusal struct {
	// Message is what it says.
	Message string
	// Final: it will always say so.
	Final bool
}

// Step is something that happens before everybody comes to rest again.
type Step struct {
	// Who does What; both are empty where only time passes.
	Who, What string
	happens   func(World)
}

// World is where a story happens. Nobody reacts before Settle, except to time.
type World interface {
	// Note receives what is about to happen.
	Note(who, what string)
	// Settle lets all react to each other until they rest.
	Settle()
	// Pass lets time go by.
	Pass(time.Duration)

	// Admit and Evict are Kueue's.
	Admit()
	Evict()
	// Delete deletes the AppWrapper; sparing is with --cascade=orphan.
	Delete(sparing bool)

	// Remove makes a component vanish.
	Remove(component int)
	// Free takes away the finalizer that holds a component.
	Free(component int)
	// Permit ends the refusals of a component.
	Permit(component int)
	// Report makes a component say itself how it has ended.
	Report(component int, succeeded bool)

	// StartPods starts all pods that are pending.
	StartPods()
	// EndPods ends the running pods of a component whose kubelet is there to say so, EndPod
	// the first of them.
	EndPods(component int, how corev1.PodPhase, exitCodes ...int32)
	EndPod(component int, how corev1.PodPhase, exitCodes ...int32)
	// EvictPod deletes the first pod of a component; its kubelet has to stop it.
	EvictPod(component int)
	// LosePod makes the first pod of a component vanish.
	LosePod(component int)
	// MarkNodeUnhealthy makes the node of the first pod of a component unhealthy, so that the pod
	// must migrate. MarkNodeHealthy ends that.
	MarkNodeUnhealthy(component int)
	MarkNodeHealthy(component int)
	// LoseNode silences the kubelet of the first pod of a component, ReturnNode ends that.
	LoseNode(component int)
	ReturnNode(component int)
}

// Live lets the story happen in a world.
func (s Story) Live(w World) {
	for _, step := range s.Steps {
		if step.What != "" {
			w.Note(step.Who, step.What)
		}
		step.happens(w)
		w.Settle()
	}
}
