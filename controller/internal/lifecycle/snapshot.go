// SPDX-License-Identifier: Apache-2.0

// Package lifecycle answers one question: what should this AppWrapper do next?
//
// Decide takes a Snapshot of the world and the time, and returns a Decision: the
// status to save and, once that is saved, one effect on the world. It may not talk
// to anything and it may not look at a clock.
//
//	observe ──Snapshot──▶ Decide ──Decision──▶ save Status ──▶ announce ──▶ act
//	   ▲                                                                   │
//	   └────────────── the world changes, or Requeue is due ───────────────┘
//
// What must stay true:
//
//   - Status is saved, with the resourceVersion that was observed, before the
//     effect. So a crash at any point is harmless: the next look finds the intent
//     and carries it out.
//   - A decision either moves to another phase or acts in the present one.
//   - Every effect may be repeated. Whether it is complete is observed at the next
//     look and never returned.
//   - QuotaReserved turns False only when no pod is Pending or Running.
package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/quotareason"
)

// Snapshot is everything that the next decision depends on, besides the time.
//
// What a snapshot lacks counts as absent from the cluster: quota is given back and a
// workload fails because of it. A stale cache must not be the only source of that. Before
// a decision that no later one can take back, the observer reads live what it rests on,
// and calls Decide again.
type Snapshot struct {
	// Suspend is spec.suspend, or Kueue wants the quota back and has not set spec.suspend yet.
	Suspend bool
	// Waits is why Kueue does not give the AppWrapper quota; empty if nothing is known.
	Waits quotareason.Reason
	// Kueue is what it says of the work's quota.
	Kueue quotareason.Word
	// Deleting: the AppWrapper has a deletionTimestamp.
	Deleting bool
	// DeletedAt is its deletionTimestamp, by the clock of the API server.
	DeletedAt time.Time
	// HasFinalizer: the AppWrapper has our finalizer.
	HasFinalizer bool
	// LastFinalizer: ours is the only finalizer. Once it is removed the AppWrapper is gone, and
	// nobody would read a status written just before.
	LastFinalizer bool
	// Status is the status as it is stored. Decide does not change it.
	Status v1beta2.AppWrapperStatus
	// Policy holds the AppWrapper's timers and limits.
	Policy Policy
	// Problem says why the AppWrapper as a whole can never be deployed. It is empty if there
	// is no problem, or if webhooks check for problems at admission.
	Problem string
	// Components has one entry for each of spec.components, in that order.
	Components []Component
	// DryRun is what is known of the creation of components before there is quota; nil if nobody asks.
	DryRun *DryRun
	// Devices are how many of each device the pod sets ask for. Those with 0 count, too; devices
	// that are not here do not, because add-ons of the cluster inject such.
	Devices map[string]int64
	// NodesAssigned: Kueue assigns pods to nodes, so that only Kueue can avoid nodes.
	NodesAssigned bool
	// Suspects are nodes that failed other AppWrappers. They are only known before an attempt, and
	// during one that is not the first.
	Suspects []nodehealth.Suspect
	// Activity is what the second sign says. It is only asked about a decision to Confirm.
	Activity Activity
	// Pods are all pods in the namespace that carry the AppWrapper's label.
	Pods []Pod
	// LastGone is when a pod of this attempt went that had not ended by itself before; zero if none is known.
	LastGone time.Time
	// Interrupted is when the first pod of this attempt that is gone was interrupted, as in Pod; zero if none is known.
	Interrupted time.Time
	// WatchedSince is since when this process knows of pods that are gone; zero is always.
	WatchedSince time.Time
	// Evictions are pods that Kubernetes evicts or has evicted from their nodes. Most of them are gone,
	// and some are of earlier attempts.
	Evictions []Eviction
}

// Disliked are the suspects that new pods prefer other nodes to: of many, those that most blame are enough.
func (s *Snapshot) Disliked() []nodehealth.Suspect {
	return s.Suspects[:min(len(s.Suspects), int(s.Policy.Avoid.Nodes))]
}

// Component is one wrapped resource: what the spec says and what was observed.
type Component struct {
	// Name, Kind and APIVersion identify the resource. Name is kinds.ObjectName.
	Name, Kind, APIVersion string
	// PodSets is kinds.PodSets of the spec. It is used once, when the status is first
	// written; from then on the pod sets in the status count.
	PodSets []v1beta2.AppWrapperPodSet
	// PodSetInfos is how many podSetInfos the spec has for it.
	PodSetInfos int
	// Problem says why the component can never be deployed (its template does not decode,
	// its pod sets cannot be found); empty if there is no problem.
	Problem string

	// ReportsEnd: resources of this kind report their success or failure.
	ReportsEnd bool
	// Exists: the resource exists and this AppWrapper controls it.
	Exists bool
	// Unreadable: the resource was created, and the controller has lost the permission to get
	// it. It counts as one that Exists.
	Unreadable bool
	// Terminating: the resource exists and has a deletionTimestamp.
	Terminating bool
	// Finalizers are those of the resource.
	Finalizers []string
	// Turns says when pods come, by the path of their pod set, where they do not come with the resource.
	Turns map[string]kinds.Turn
	// Ends says how pods end, by the path of their pod set, where they do not just succeed once each.
	Ends map[string]kinds.Ends
	// Ended are pods that need not run any more, as the resource reports.
	Ended kinds.Ended
	// Gone is how many pods of each pod set have succeeded in this attempt and are gone, as far as the observer knows.
	Gone []int
	// GoneUntil is the resourceVersion with which the last of them went.
	GoneUntil string
	// Final is why the resource would fail again, in the words of its operator; empty if that is not certain.
	Final string
	// Verdict is what the resource reports about its progress, or has reported last if it is
	// gone.
	Verdict kinds.Verdict
}

// Pod is one pod of the AppWrapper.
type Pod struct {
	// Name of the pod.
	Name string
	// Component is the index of the component that the pod belongs to, by its label or
	// because the component controls it; UnknownComponent if neither tells.
	Component int
	// PodSet is the index of its pod set among those of its component, by its label; UnknownPodSet if
	// that does not tell.
	PodSet int
	// Rank is its number in the pod set; empty if that is not known, as of what caches have.
	Rank string
	// Foreign: an earlier AppWrapper of the same name made the pod. It may still use quota, and is
	// none of those that are expected.
	Foreign bool
	// Phase of the pod.
	Phase corev1.PodPhase
	// Terminating: the pod has a deletionTimestamp.
	Terminating bool
	// Node of the pod; empty if it has none, or the cache does not keep it.
	Node string
	// Created is when the pod was created; zero if that is not known.
	Created time.Time
	// EndsBy is until when a pod that is being deleted may take to end.
	EndsBy time.Time
	// Interrupted is from when on something else than its program may have ended it: Kubernetes says that it
	// disrupts the pod, or somebody has deleted it; zero if not.
	Interrupted time.Time
	// Ended is when the last container of a pod that has ended did so; zero if that is not known.
	Ended time.Time
	// Started is when the kubelet began with the pod; zero if it has not.
	Started time.Time
	// InitSince is when the init container of a pending pod was first started that has to end next, or no later than
	// that; zero if there is none. InitEnded is when the last one ended that has succeeded.
	InitSince, InitEnded time.Time
	// NotReadySince is since when a pod with a readiness probe runs and is not ready; zero if it is ready,
	// does not run, or has no such probe.
	NotReadySince time.Time
	// IdleSince is since when whoever watches the devices of the nodes says that the pod does not use its
	// own; zero if they do not say so. IdleSeen is when they said so last.
	IdleSince, IdleSeen time.Time
	// Devices are how many of each device the pod asks for.
	Devices map[string]int64
	// MigrateFrom is the node of the pod if the pod must migrate, because it uses a resource
	// that is unhealthy there; empty if it may stay. If the pod has ended, or is being deleted,
	// this is the node that is to blame.
	MigrateFrom string
	// MigrateAt is when it must, if its node does not recover until then; zero is at once.
	MigrateAt time.Time
	// MigrateBecause is what is wrong with that node.
	MigrateBecause []nodehealth.Cause
	// Finalizers are those of the pod.
	Finalizers []string
	// ExitCodes are the exit codes, other than 0, of its terminated regular containers.
	ExitCodes []int32
	// CrashLoop is the container of a running pod, or the init container of a pending one, whose program has crashed,
	// and that its kubelet starts again; empty if there is none. RunsSince is since when it runs again; zero if it
	// waits for that.
	CrashLoop string
	RunsSince time.Time
	// Failures are those of its containers, or of the pod as a whole, if the pod has failed.
	Failures []Failure
}

// UnknownComponent is the component of a pod that another AppWrapper controller made and
// that its component controls only through something in between.
const UnknownComponent = -1

// UnknownPodSet is the pod set of a pod that an older release made, or another AppWrapper controller.
const UnknownPodSet = -1
