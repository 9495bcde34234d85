// SPDX-License-Identifier: Apache-2.0

// Package stories has scripts of whole lives of AppWrappers: what everyone but the controller
// does, and when. A script runs in any World: one in memory with only the decisions, or one
// with the real controller and an API server.
package stories

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/quotareason"
)

// Story is the life of one AppWrapper.
type Story struct {
	// Name is a sentence. It also names the story's transcript.
	Name string
	// Annotations are the AppWrapper's; the rest of its policy has the default values.
	Annotations map[string]string
	// MigrationLimit is the configured limit.
	MigrationLimit int32
	// AtOnce means that it need not wait for quota.
	AtOnce bool
	// Components are what the AppWrapper wraps.
	Components []Component
	// Steps run one after the other.
	Steps []Step
}

// Component is one wrapped resource, and how its world behaves.
type Component struct {
	// Kind is Job, PyTorchJob, Service or Custom. The controller does not know Custom.
	Kind string
	// Name of the resource.
	Name string
	// Pods is how many pods its owner creates.
	Pods int32
	// Replaces means that the owner replaces failed pods.
	Replaces bool
	// Held means that another controller's finalizer keeps the resource when it is deleted.
	Held bool
	// Refusal is the API server's answer to the first creates; nil if they succeed.
	Refusal *Refusal
}

// Refusal is an error of the API server.
type Refusal struct {
	// Message is its text.
	Message string
	// Final means that the error is permanent.
	Final bool
	// Denied means that admission forbids it.
	Denied bool
	// Unanswered means that the API server, or a webhook that it asks, did not answer.
	Unanswered bool
}

// Step is something that happens before everything settles again.
type Step struct {
	// Who does What; both are empty if only time passes.
	Who, What string
	happens   func(World)
}

// World is where a story runs. Before Settle, only the passing of time has effects.
type World interface {
	// Note receives a description of the next step.
	Note(who, what string)
	// Settle waits until nothing changes any more.
	Settle()
	// Pass lets time pass.
	Pass(time.Duration)

	// Admit and Evict are what Kueue does.
	Admit()
	Evict()
	// Wait is what Kueue says of an AppWrapper that it does not admit.
	Wait(quotareason.Reason)
	// Delete deletes the AppWrapper; sparing means with --cascade=orphan.
	Delete(sparing bool)

	// StopController ends the controller; StartController starts a new one.
	StopController()
	StartController()

	// Remove removes a component from the world.
	Remove(component int)
	// Free removes the finalizer that holds a component.
	Free(component int)
	// Permit ends the refusals of a component.
	Permit(component int)
	// Report sets the status with which a component reports its end.
	Report(component int, succeeded bool)

	// StartPods starts all pending pods.
	StartPods()
	// EndPods ends the running pods of a component whose kubelet works. EndPod ends the first
	// of them.
	EndPods(component int, how corev1.PodPhase, exitCodes ...int32)
	EndPod(component int, how corev1.PodPhase, exitCodes ...int32)
	// CreateLate: a creation of an attempt that is over reaches the API server now, with its pods.
	CreateLate(component int)
	// AddPod creates a running pod with the AppWrapper's label that no component has made.
	// RemoveAddedPods removes all of them.
	AddPod()
	RemoveAddedPods()
	// Hang: the first running pod of a component that was ready is not ready any more. GoOn: all pods
	// that run are ready.
	Hang(component int)
	GoOn()
	// Idle: the running pods of a component do not use their devices. Busy: all pods do. StopWatcher: nobody
	// says so any more; StartWatcher reverts that.
	Idle(component int)
	Busy()
	StopWatcher()
	StartWatcher()
	// EvictPod lets Kubernetes evict the first pod of a component, because of a taint; its kubelet has to stop it.
	EvictPod(component int)
	// LosePod removes the first pod of a component.
	LosePod(component int)
	// MarkNodeUnhealthy makes the node of the first pod of a component unhealthy, so that the
	// pod must migrate. MarkNodeHealthy reverts that.
	MarkNodeUnhealthy(component int)
	MarkNodeHealthy(component int)
	// LoseNode silences the kubelet of the first pod of a component. ReturnNode reverts that.
	LoseNode(component int)
	// RejectPod: the kubelet of the first pod of a component does not accept it.
	RejectPod(component int)
	// MarkNodeNotReady is the node controller's verdict on that node.
	MarkNodeNotReady(component int)
	ReturnNode(component int)
}

// Live runs the story in a world.
func (s Story) Live(w World) {
	for _, step := range s.Steps {
		if step.What != "" {
			w.Note(step.Who, step.What)
		}
		step.happens(w)
		w.Settle()
	}
}
