// SPDX-License-Identifier: Apache-2.0

// Package runlife answers one question: what should this Run do next?
//
// Decide takes a Snapshot of the cluster and the time. It returns a Decision: the status to save
// and, once that is saved, one effect. It may not talk to anything, and it may not look at a
// clock.
//
// What must stay true:
//
//   - The status is saved, with the resourceVersion that was observed, before the effect. So a
//     crash at any point is harmless: the next look finds the intent and carries it out.
//   - A decision either enters another phase or has an effect, never both.
//   - Every effect may be repeated.
//   - An AppWrapper that is recorded in the status is never made again.
package runlife

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// Snapshot is everything that the next decision depends on, besides the time.
type Snapshot struct {
	// Run is the Run as it is stored. Decide does not change it.
	Run *v1alpha1.Run
	// Step is set in the snapshot of a step. Run is then the Run as the step sees it.
	Step *v1alpha1.Step
	// AppWrapper is the one that has the name of the Run's, nil if there is none. It may
	// belong to another owner. That a recorded AppWrapper is gone cannot be taken back, so it must
	// have been read from the API server, not only from a cache.
	AppWrapper *v1beta2.AppWrapper
	// Plan is what would be created for the Run. It is needed only if NeedsPlan says so.
	Plan Plan
	// Answer is the API server's last answer to Create or Try, nil if there was none.
	Answer *Answer
	// Pods are those of the Run that failed or, if the AppWrapper has succeeded, that succeeded; and
	// the broker's, whatever their phase. They are needed only if a Decision says so, and are nil until then.
	Pods *[]corev1.Pod
	// Steps are the snapshots of the steps in the status of a workflow, begun by OfStep.
	Steps []Snapshot
	// Idle steps need nothing else: the steps before them have not ended, or they are skipped.
	Idle bool
}

// Plan is what would be created for a Run, or why there is nothing.
type Plan struct {
	// Planned has one AppWrapper, or that of each step of a workflow.
	Planned  []*runplan.Planned
	Problems []runplan.Problem
}

// Answer is what the API server said to an AppWrapper.
type Answer struct {
	// Reason is why the API server refuses it, empty if it would accept it.
	Reason string
	// Message has the API server's words.
	Message string
	// At is when it said so.
	At time.Time
}

// NeedsPlan tells whether a decision about the snapshot depends on its Plan.
func NeedsPlan(s Snapshot) bool {
	return s.Run.DeletionTimestamp.IsZero() && !s.Run.Status.Phase.Terminal() && !s.Run.Spec.Cancel &&
		s.Run.Status.AppWrapper == nil && s.mine() == nil && len(s.Run.Status.Steps) == 0 && !s.Idle
}

// AppWrapperName is the name of the AppWrapper of a Run or a step.
func (s Snapshot) AppWrapperName() string {
	if recorded := s.Run.Status.AppWrapper; recorded != nil {
		return recorded.Name
	}
	return runplan.AppWrapperName(s.Run.Name, s.StepName())
}

// StepName is empty in the snapshot of a Run.
func (s Snapshot) StepName() string {
	if s.Step == nil {
		return ""
	}
	return s.Step.Name
}

// Owns tells whether an AppWrapper was made for a Run.
func Owns(run *v1alpha1.Run, aw *v1beta2.AppWrapper) bool {
	for _, owner := range aw.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return owner.UID == run.UID
		}
	}
	return false
}

// mine is the AppWrapper if it is the Run's, and the one that was recorded. A workflow has none
// beside those of its steps.
func (s Snapshot) mine() *v1beta2.AppWrapper {
	if s.AppWrapper == nil || !Owns(s.Run, s.AppWrapper) || len(s.Run.Status.Steps) > 0 {
		return nil
	}
	if recorded := s.Run.Status.AppWrapper; recorded != nil && recorded.UID != s.AppWrapper.UID {
		return nil
	}
	return s.AppWrapper
}
