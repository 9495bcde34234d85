// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// silence is how long a controller says nothing before that is a cause: longer than it takes to replace it.
const silence = 2 * time.Minute

// longAgo tells whether something should have happened since.
func (o Objects) longAgo(at metav1.Time) bool {
	return !at.IsZero() && !o.Now.IsZero() && o.Now.Sub(at.Time) >= silence
}

// silent is about controllers that do not do what is theirs.
func silent(o Objects) []Cause {
	if o.Run != nil && o.Run.Status.Phase == "" {
		return o.unseenSince("Run "+o.Run.Name, o.Run.CreationTimestamp)
	}
	aw := o.AppWrapper
	if aw == nil || !aw.ManagedByThisController() || aw.DeletionTimestamp != nil {
		return nil
	}
	switch aw.Status.Phase {
	case v1beta2.AppWrapperEmpty:
		return o.unseenSince(o.wrapper(), aw.CreationTimestamp)
	case v1beta2.AppWrapperSuspended:
		return o.notResumed()
	case v1beta2.AppWrapperRunning:
		return o.noPods()
	}
	return nil
}

// unseenSince: an object was created long ago, and has no status.
func (o Objects) unseenSince(object string, at metav1.Time) []Cause {
	if !o.longAgo(at) {
		return nil
	}
	return []Cause{cause("ControllerSilent", Evidence{object, "metadata.creationTimestamp, and nothing in its status", at.UTC().Format(time.RFC3339)})}
}

// notResumed: Kueue has admitted an AppWrapper, and has not started it; or it has, and its controller does nothing.
func (o Objects) notResumed() []Cause {
	if o.Workload == nil || isTrue(o.Workload.Status.Conditions, kueue.WorkloadEvicted) || isTrue(o.Workload.Status.Conditions, kueue.WorkloadFinished) {
		return nil
	}
	c := condition(o.Workload.Status.Conditions, kueue.WorkloadAdmitted)
	if c == nil || c.Status != metav1.ConditionTrue || !o.longAgo(c.LastTransitionTime) {
		return nil
	}
	code, seen := Code("ControllerSilent"), Evidence{o.wrapper(), "status.phase", string(v1beta2.AppWrapperSuspended)}
	if o.AppWrapper.Spec.Suspend {
		code, seen = "NotStarted", Evidence{o.wrapper(), "spec.suspend", "true"}
	}
	return []Cause{cause(code, told(o.workload(), *c), also(seen), since(c.LastTransitionTime))}
}

// noPods: a resource was created that makes pods, and there are none. If making them was refused, a warning says so.
func (o Objects) noPods() []Cause {
	e, none := o.missing("Pod")
	if !none || len(o.Pods) > 0 || o.isWell() || len(o.podRefused()) > 0 {
		return nil
	}
	for _, component := range o.AppWrapper.Status.ComponentStatus {
		c := condition(component.Conditions, string(v1beta2.ResourcesDeployed))
		if makesPods(component) && c != nil && c.Status == metav1.ConditionTrue && o.longAgo(c.LastTransitionTime) {
			return []Cause{cause("OperatorSilent", told(component.Kind+" "+component.Name, *c), also(e), since(c.LastTransitionTime))}
		}
	}
	return nil
}

// makesPods: a component has pods to make, and has not said that it is done.
func makesPods(component v1beta2.AppWrapperComponentStatus) bool {
	return expected(component) > 0 && !isTrue(component.Conditions, string(v1beta2.ComponentSucceeded))
}

// expected is how many pods a component makes.
func expected(component v1beta2.AppWrapperComponentStatus) (pods int32) {
	for _, podSet := range component.PodSets {
		pods += podSet.Count()
	}
	return pods
}
