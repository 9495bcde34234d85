// SPDX-License-Identifier: Apache-2.0

package runlife

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// checks is the specification of a Run that has not ended: the first that applies decides.
var checks = []func(*view) (Decision, bool){
	ended,      // what the AppWrapper says at its end stays so, whatever comes at the same moment
	finished,   // likewise if all steps have ended
	cancelled,  // the author wants no more
	overdue,    // the deadline is over
	removed,    // somebody deleted the AppWrapper
	leftBehind, // the work is done, and workers do not know it
	living,     // the phase of the AppWrapper tells that of the Run
	stepping,   // the phases of the steps tell that of the Run
	unplanned,  // there is no AppWrapper yet, and there cannot be one
	frozen,     // the Run is a workflow: from now on its steps count
	refused,    // the API server does not take the AppWrapper
}

// Decide returns what to do next for the Run in the snapshot.
func Decide(s Snapshot, now time.Time) Decision {
	v := &view{Snapshot: s, now: now, status: *s.Run.Status.DeepCopy()}
	if !s.Run.DeletionTimestamp.IsZero() {
		return afterTheRun(v)
	}
	if s.Run.Status.Phase.Terminal() {
		return afterTheEnd(v)
	}
	v.status.ObservedGeneration = s.Run.Generation
	v.record()
	if v.follow(); v.needsPods() {
		return Decision{NeedsPods: true, Steps: v.ofSteps}
	}
	for _, check := range checks {
		if d, applies := check(v); applies {
			return d
		}
	}
	return accept(v)
}

// view is a snapshot while a decision is made; status is the one to be saved.
type view struct {
	Snapshot
	now    time.Time
	status v1alpha1.RunStatus
	// ofSteps are the decisions about the steps of a workflow, and events what they announce.
	ofSteps []Decision
	events  []Event
}

// record copies what the status keeps of the AppWrapper.
func (v *view) record() {
	aw := v.mine()
	if aw == nil {
		return
	}
	v.status.AppWrapper = &v1alpha1.AppWrapperReference{Name: aw.Name, UID: aw.UID}
	v.status.Retries = max(v.status.Retries, aw.Status.Retries)
	if ready := v.ofAppWrapper(v1beta2.PodsReady); v.status.StartTime == nil && isTrue(ready) {
		v.status.StartTime = ready.LastTransitionTime.DeepCopy()
		if v.now.Before(ready.LastTransitionTime.Time) { // by a clock that is ahead
			v.status.StartTime = &metav1.Time{Time: v.now}
		}
	}
}

// starts: the status to be saved has a startTime for the first time.
func (v *view) starts() bool {
	return v.Run.Status.StartTime == nil && v.status.StartTime != nil
}
