// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

func foreign(o Objects) []Cause {
	if o.AppWrapper == nil || o.AppWrapper.ManagedByThisController() {
		return nil
	}
	return []Cause{cause("OtherController", Evidence{o.wrapper(), "spec.managedBy", *o.AppWrapper.Spec.ManagedBy})}
}

func runRefused(o Objects) []Cause {
	if o.Run == nil || o.Run.Status.Phase == v1alpha1.RunCancelled { // nothing comes of it in any case
		return nil
	}
	c := condition(o.Run.Status.Conditions, v1alpha1.Accepted)
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	return []Cause{cause("RunRefused", told("Run "+o.Run.Name, *c), since(c.LastTransitionTime))}
}

func runEnded(o Objects) []Cause {
	if o.Run == nil {
		return nil
	}
	var all []Cause
	phase := o.Run.Status.Phase // a failure before the present attempt says nothing
	if failure := o.Run.Status.LastFailure; failure != nil && (phase == v1alpha1.RunFailed || phase == v1alpha1.RunRetrying) {
		all = append(all, lastFailure(o.Run.Name, *failure))
	}
	if phase == v1alpha1.RunCancelled { // its condition Failed says no more
		return []Cause{cause("RunCancelled", Evidence{"Run " + o.Run.Name, "status.phase", string(phase)})}
	}
	if c := condition(o.Run.Status.Conditions, v1alpha1.Failed); c != nil && c.Status == metav1.ConditionTrue {
		all = append(all, cause("RunFailed", told("Run "+o.Run.Name, *c), since(c.LastTransitionTime)))
	}
	return all
}

// lastFailure has the exit code and the last lines of the log.
func lastFailure(run string, f v1alpha1.LastFailure) Cause {
	exitCode := int32(1)
	if f.ExitCode != nil {
		exitCode = *f.ExitCode
	}
	code := endedWith(exitCode, f.Reason, f.Message)
	where := func(field, value string) Evidence {
		return Evidence{"Run " + run, "status.lastFailure." + field, value}
	}
	c := cause(code, where("attempt", strconv.Itoa(int(f.Attempt))))
	if f.ExitCode != nil {
		also(where("exitCode", strconv.Itoa(int(*f.ExitCode))))(&c)
	}
	for _, told := range []Evidence{where("pod", f.Pod), where("reason", f.Reason), where("message", f.Message)} {
		if told.Value != "" {
			also(told)(&c)
		}
	}
	return c
}

// ended is about AppWrappers in a final phase.
func ended(o Objects) []Cause {
	if o.AppWrapper == nil {
		return o.finished()
	}
	switch o.AppWrapper.Status.Phase {
	case v1beta2.AppWrapperSucceeded:
		return o.succeeded()
	case v1beta2.AppWrapperFailed:
		return o.failed()
	}
	return nil
}

// finished is about bare jobs, whose end Kueue has seen.
func (o Objects) finished() []Cause {
	if o.Workload == nil || o.Run != nil {
		return nil
	}
	c := condition(o.Workload.Status.Conditions, kueue.WorkloadFinished)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	switch c.Reason {
	case kueue.WorkloadFinishedReasonSucceeded:
		return []Cause{cause("Succeeded", told(o.workload(), *c), since(c.LastTransitionTime))}
	case kueue.WorkloadFinishedReasonFailed:
		return []Cause{cause("Failed", told(o.workload(), *c), since(c.LastTransitionTime))}
	}
	return []Cause{cause("EndUnknown", told(o.workload(), *c), since(c.LastTransitionTime))}
}

func (o Objects) succeeded() []Cause {
	status := o.AppWrapper.Status
	all := []Cause{cause("Succeeded", Evidence{o.wrapper(), "status.phase", string(status.Phase)}, began(status))}
	ttl := o.AppWrapper.Annotations[v1beta2.SuccessTTLAnnotation]
	if kept, err := parseDuration(ttl); err == nil && status.PhaseTransitionTime != nil && isTrue(status.Conditions, string(v1beta2.ResourcesDeployed)) {
		at := metav1.NewTime(status.PhaseTransitionTime.Add(kept))
		all = append(all, cause("SuccessKept", Evidence{o.wrapper(), "annotation " + v1beta2.SuccessTTLAnnotation, ttl},
			next("its resources are removed, unless the configuration sets a shorter time", &at)))
	}
	return all
}

// parseDuration reads a duration as the controller does: 7d are seven days.
func parseDuration(text string) (time.Duration, error) {
	if digits, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.ParseInt(digits, 10, 16); err == nil && days >= 0 {
			return time.Duration(days) * 24 * time.Hour, nil
		}
	}
	return time.ParseDuration(text)
}

func (o Objects) failed() []Cause {
	status := o.AppWrapper.Status
	var all []Cause
	all = append(all, o.tooSlow()...)
	if forbidden := o.terminalExitCode(); len(forbidden) > 0 {
		all = append(all, forbidden...)
	} else {
		all = append(all, o.retryLimit()...)
	}
	if c := condition(status.Conditions, string(v1beta2.Unhealthy)); c != nil && c.Status == metav1.ConditionTrue && c.Reason != v1beta2.ReasonMissingComponent {
		all = append(all, cause(failedBecause(status), told(o.wrapper(), *c), since(c.LastTransitionTime), o.lastWords()))
	}
	if c := condition(status.Conditions, string(v1beta2.DeletingResources)); c != nil && c.Reason == v1beta2.ReasonDeletionPaused {
		all = append(all, cause("HeldForDebugging", told(o.wrapper(), *c), o.released(), since(c.LastTransitionTime)))
	}
	return all
}

// retryLimit: there are as many retries as the annotation allows. Without one, the default of the controller counts. If
// an administrator has lowered that, nothing that the author may read tells it.
func (o Objects) retryLimit() []Cause {
	status := o.AppWrapper.Status
	limit, err := strconv.Atoi(o.AppWrapper.Annotations[v1beta2.RetryLimitAnnotation])
	if err != nil {
		limit = v1beta2.DefaultRetryLimit
	}
	if limit <= 0 || usedUp(status) < limit {
		return nil
	}
	n := o.retries()
	return []Cause{cause("RetryLimit", n[0], also(n[1:]...), o.ofAnnotation(v1beta2.RetryLimitAnnotation), began(status))}
}

// failedBecause tells the end that the controller has chosen for a mistake of the program from all others.
func failedBecause(status v1beta2.AppWrapperStatus) Code {
	if n := len(status.LastAttempts); n > 0 && status.LastAttempts[n-1].Cause == "SameFailure" {
		return "SameFailure"
	}
	return "Failed"
}

// usedUp is how much is used of the budget of retries that is used most: late starts have one of their own.
func usedUp(status v1beta2.AppWrapperStatus) int {
	return int(max(status.Retries-status.StartupRetries, status.StartupRetries))
}

// retries are how many there were, and how many of them because of late starts.
func (o Objects) retries() []Evidence {
	all := []Evidence{{o.wrapper(), "status.resettingCount", strconv.Itoa(int(o.AppWrapper.Status.Retries))}}
	if starts := o.AppWrapper.Status.StartupRetries; starts > 0 {
		all = append(all, Evidence{o.wrapper(), "status.startupRetries", strconv.Itoa(int(starts))})
	}
	return all
}

// released is when what is held for debugging is removed.
func (o Objects) released() change {
	status := o.AppWrapper.Status
	hold, err := parseDuration(o.AppWrapper.Annotations[v1beta2.DeletionOnFailureGracePeriodAnnotation])
	if err != nil || status.PhaseTransitionTime == nil {
		return next("its resources are removed, and the quota becomes free", nil)
	}
	at := metav1.NewTime(status.PhaseTransitionTime.Add(hold))
	return next("its resources are removed, and the quota becomes free, unless the configuration sets a shorter time", &at)
}

func began(status v1beta2.AppWrapperStatus) change {
	if status.PhaseTransitionTime == nil {
		return func(*Cause) {}
	}
	return since(*status.PhaseTransitionTime)
}

func retrying(o Objects) []Cause {
	if o.AppWrapper == nil || o.AppWrapper.Status.Phase != v1beta2.AppWrapperResetting {
		return nil
	}
	status := o.AppWrapper.Status
	c := condition(status.Conditions, string(v1beta2.Unhealthy))
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason == v1beta2.ReasonAutopilotNoExecute {
		return nil
	}
	changes := []change{began(status), also(o.retries()...), o.lastWords()}
	text := o.AppWrapper.Annotations[v1beta2.RetryPausePeriodDurationAnnotation]
	if text != "" {
		changes = append(changes, next("it is started again "+text+" after its last pod has stopped", nil))
	}
	return append(o.tooSlow(), cause("Retrying", told(o.wrapper(), *c), changes...))
}

// tooSlow is about an attempt that ended because its pods were not ready, or did not make room, in time.
func (o Objects) tooSlow() []Cause {
	c := condition(o.AppWrapper.Status.Conditions, string(v1beta2.Unhealthy))
	switch {
	case c == nil || c.Status != metav1.ConditionTrue:
	case c.Reason == v1beta2.ReasonInsufficientPodsReady:
		return []Cause{cause("StartedTooSlowly", told(o.wrapper(), *c), o.ofAnnotation(v1beta2.WarmupGracePeriodDurationAnnotation), since(c.LastTransitionTime))}
	case c.Reason == v1beta2.ReasonCreateFailed && hasAny(c.Message, oldRemains...):
		return []Cause{cause("OldComponentRemains", told(o.wrapper(), *c), since(c.LastTransitionTime))}
	}
	return nil
}

// oldRemains is what our controller says if a resource of the last attempt does not go.
var oldRemains = []string{"is being deleted and does not go away", "the components cannot be created again: "}

// ofAnnotation adds an annotation that is set.
func (o Objects) ofAnnotation(name string) change {
	return func(c *Cause) {
		if value := o.AppWrapper.Annotations[name]; value != "" {
			also(Evidence{o.wrapper(), "annotation " + name, value})(c)
		}
	}
}

// lost is about wrapped resources that failed or were removed.
func lost(o Objects) []Cause {
	if o.AppWrapper == nil {
		return nil
	}
	c := condition(o.AppWrapper.Status.Conditions, string(v1beta2.Unhealthy))
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	switch c.Reason {
	case v1beta2.ReasonMissingComponent:
		return []Cause{cause("ComponentMissing", told(o.wrapper(), *c), since(c.LastTransitionTime))}
	case v1beta2.ReasonFailedComponent:
		return []Cause{cause("ComponentFailed", told(o.wrapper(), *c), since(c.LastTransitionTime))}
	}
	return nil
}

// refused is about wrapped resources that were not created.
func refused(o Objects) (all []Cause) {
	if o.AppWrapper == nil {
		return nil
	}
	for _, component := range o.AppWrapper.Status.ComponentStatus {
		c := condition(component.Conditions, string(v1beta2.ResourcesDeployed))
		if c == nil || c.Status != metav1.ConditionFalse ||
			c.Reason != v1beta2.ReasonComponentCreationErrored && c.Reason != v1beta2.ReasonComponentCreationRejected {
			continue
		}
		evidence := told(strings.TrimSpace(component.Kind+" "+component.Name)+" of "+o.wrapper(), *c)
		found := cause(refusal(c.Message), evidence, since(c.LastTransitionTime))
		if c.Reason == v1beta2.ReasonComponentCreationErrored && o.AppWrapper.Status.Phase == v1beta2.AppWrapperResuming {
			next("its creation is tried again within 15 seconds", nil)(&found)
		}
		all = append(all, found)
	}
	if len(all) == 0 {
		return o.couldNotCreate()
	}
	return all
}

// couldNotCreate is about an attempt that has ended, because a wrapped resource was not created. By then the status of
// the resource only says that it is gone.
func (o Objects) couldNotCreate() []Cause {
	c := condition(o.AppWrapper.Status.Conditions, string(v1beta2.Unhealthy))
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1beta2.ReasonCreateFailed || c.Message == "" || hasAny(c.Message, oldRemains...) {
		return nil
	}
	code := refusal(c.Message)
	if code == "CreationRefused" { // others have repeated the message
		return nil
	}
	return []Cause{cause(code, told(o.wrapper(), *c), since(c.LastTransitionTime))}
}

// unhealthy is about nodes, surplus pods and pods that are not ready.
func unhealthy(o Objects) (all []Cause) {
	if o.AppWrapper == nil {
		return nil
	}
	status := o.AppWrapper.Status
	for _, row := range []struct {
		code   Code
		kind   v1beta2.AppWrapperCondition
		status metav1.ConditionStatus
		reason string
		phase  v1beta2.AppWrapperPhase
	}{
		{"BadNode", v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonAutopilotNoExecute, ""},
		{"BadNodeStays", v1beta2.OnUnhealthyNodes, metav1.ConditionTrue, v1beta2.ReasonMigrationLimitReached, ""},
		{"WaitsForReplacement", v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonFoundFailedPods, v1beta2.AppWrapperRunning},
		{"CrashLoop", v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonCrashLoop, v1beta2.AppWrapperRunning},
		{"NoProgress", v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonNoProgress, ""},
		{"ComputesWithoutProgress", v1beta2.ComputesWithoutProgress, metav1.ConditionTrue, v1beta2.ReasonDevicesCompute, v1beta2.AppWrapperRunning},
		{"DevicesIdle", v1beta2.Idle, metav1.ConditionTrue, v1beta2.ReasonDevicesIdle, v1beta2.AppWrapperRunning},
		{"SurplusPods", v1beta2.SurplusPods, metav1.ConditionTrue, v1beta2.ReasonSurplusPods, ""},
		{"PodsNotReady", v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonInsufficientPodsReady, v1beta2.AppWrapperRunning},
	} {
		c := condition(status.Conditions, string(row.kind))
		if c == nil || c.Status != row.status || c.Reason != row.reason || row.phase != "" && row.phase != status.Phase {
			continue
		}
		if row.code == "PodsNotReady" && o.crashLoops() { // it is not started again for that
			continue
		}
		all = append(all, cause(row.code, told(o.wrapper(), *c), since(c.LastTransitionTime)))
	}
	return all
}
