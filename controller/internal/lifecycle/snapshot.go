// SPDX-License-Identifier: Apache-2.0

// Package lifecycle answers one question: what should this AppWrapper do next?
//
// Decide takes a Snapshot of the world and the time, and returns a Decision: the
// status to save and, once that is saved, one effect on the world. It may not talk
// to anything and it may not look at a clock.
//
//	observe ──Snapshot──▶ Decide ──Decision──▶ save Status ──▶ announce ──▶ act
//	   ▲                                                                   │
//	   └────────────── the world changes, or Requeue is over ──────────────┘
//
// What must stay true:
//
//   - Status is saved, with the resourceVersion that was observed, before the
//     effect. So a crash at any point is harmless: the next look finds the promise
//     and keeps it.
//   - A decision either moves to another phase or acts in the present one.
//   - Every effect may be repeated. Whether it is complete is observed at a later
//     look and never returned.
//   - QuotaReserved turns False only when no pod is Pending or Running.
package lifecycle

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// Snapshot is everything that the next decision depends on, besides the time.
//
// What is absent from a snapshot is believed to be absent from the cluster: quota is
// given back and verdicts are passed on the strength of it. A cache that lags behind
// must therefore not be the only witness. Before a decision that no later one takes
// back, the observer reads what it rests on from the API server, and asks Decide again.
type Snapshot struct {
	// Suspend is spec.suspend.
	Suspend bool
	// Deleting: the AppWrapper has a deletionTimestamp.
	Deleting bool
	// Guarded: the AppWrapper has our finalizer.
	Guarded bool
	// Alone: it has no other. When ours goes it is gone, and nobody would read what was
	// written just before.
	Alone bool
	// Status is the status as it is stored. Decide does not change it.
	Status v1beta2.AppWrapperStatus
	// Policy holds the AppWrapper's timers and limits.
	Policy Policy
	// Problem says why the AppWrapper as a whole can never be deployed; empty where
	// admission had no objection, or could have said so.
	Problem string
	// Components has one entry for each of spec.components, in that order.
	Components []Component
	// Pods are all pods in the namespace that carry the AppWrapper's label.
	Pods []Pod
}

// Component is one wrapped resource: what the spec says and what was observed.
type Component struct {
	// Name, Kind and APIVersion identify the resource. Name is kinds.ObjectName.
	Name, Kind, APIVersion string
	// PodSets is kinds.PodSets of the spec. It is used once, when the status is first
	// written; afterwards the status is the authority.
	PodSets []v1beta2.AppWrapperPodSet
	// PodSetInfos is how many podSetInfos the spec has for it.
	PodSetInfos int
	// Problem says why the component can never be deployed (its template does not
	// decode, its pod sets cannot be found); empty where there is no problem.
	Problem string

	// ReportsEnd: the kind says itself when it has succeeded or failed.
	ReportsEnd bool
	// Exists: there is such a resource and it belongs to this AppWrapper.
	Exists bool
	// Unseen: the resource was created, and the controller may not see any more whether it
	// is still there. It counts as one that Exists.
	Unseen bool
	// Terminating: the resource exists and has a deletionTimestamp.
	Terminating bool
	// Finalizers are those of the resource.
	Finalizers []string
	// Verdict is what the resource says about its own progress.
	Verdict kinds.Verdict
}

// Pod is one pod of the AppWrapper.
type Pod struct {
	// Name of the pod.
	Name string
	// Component is the index of the component that the pod belongs to, by its label or
	// because the component controls it; UnknownComponent where neither tells.
	Component int
	// Phase of the pod.
	Phase corev1.PodPhase
	// Terminating: the pod has a deletionTimestamp.
	Terminating bool
	// MustLeave is the node that the pod is on and has to leave, because something that it
	// uses there is unhealthy; empty where it may stay.
	MustLeave string
	// Finalizers are those of the pod.
	Finalizers []string
	// ExitCodes are the exit codes, other than 0, of its terminated regular containers.
	ExitCodes []int32
}

// UnknownComponent is the component of a pod that another AppWrapper controller made and
// that its component controls only through something in between.
const UnknownComponent = -1
