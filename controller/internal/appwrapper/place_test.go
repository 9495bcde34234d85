// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// moment is when a life reaches a place.
type moment struct {
	now   time.Time
	notes map[string]time.Time // the times in the status
}

func (l *life) moment() moment {
	m := moment{now: l.now, notes: map[string]time.Time{}}
	aw := l.api.theOne()
	if aw == nil {
		return m
	}
	if began := aw.Status.PhaseTransitionTime; began != nil {
		m.notes["the phase"] = began.Time
	}
	note := func(where string, conditions []metav1.Condition) {
		for _, c := range conditions {
			m.notes[where+c.Type] = c.LastTransitionTime.Time
		}
	}
	note("", aw.Status.Conditions)
	for i, c := range aw.Status.ComponentStatus {
		note(fmt.Sprintf("component %d ", i), c.Conditions)
	}
	return m
}

// checkTimes compares the recorded times with the calm life. They may differ by the possible
// delay of the troubles and by how late the story is. Recorded times are whole seconds.
func (l *life) checkTimes(step int) {
	l.Helper()
	calm, now := l.calm.moments[step], l.moments[step]
	late := now.now.Sub(calm.now).Abs() + delay*time.Duration(len(l.wire.Troubles)) + time.Second
	for what, at := range now.notes {
		if at.Sub(calm.notes[what]).Abs() > late {
			l.broken(fmt.Sprintf("trouble moves no time; after step %d that of %s is %s, calmly %s, and the story is at %s, calmly %s",
				step, what, at, calm.notes[what], now.now, calm.now))
		}
	}
}

// place is the state of a life after a step, without times.
type place struct {
	Gone, Suspend, Quota bool
	Finalizers           []string
	Deleting             bool
	Status               v1beta2.AppWrapperStatus
	Components, Pods     []string
	Creates              map[string]int
	// Waits means that the controller will wake without any event.
	Waits bool
}

func (l *life) place() place {
	p := place{Quota: l.quota, Creates: map[string]int{}}
	for name, n := range l.creates {
		p.Creates[name] = n
	}
	_, p.Waits = l.next()
	if aw := l.api.theOne(); aw == nil {
		p.Gone = true
	} else {
		p.Suspend, p.Deleting, p.Finalizers = aw.Spec.Suspend, !aw.DeletionTimestamp.IsZero(), aw.Finalizers
		p.Status = timeless(aw.Status)
	}
	for i := range l.story.Components {
		if c := l.component(i); c != nil {
			p.Components = append(p.Components, fmt.Sprintf("%s deleting=%t owned=%t verdict=%s", c.GetName(),
				c.GetDeletionTimestamp() != nil, len(c.GetOwnerReferences()) > 0, kinds.For(kindOf(c)).Verdict(c)))
		}
	}
	for _, pod := range l.api.pods() {
		p.Pods = append(p.Pods, fmt.Sprintf("of %s %s deleting=%t", pod.Labels[v1beta2.AppWrapperComponentLabel], pod.Status.Phase, !pod.DeletionTimestamp.IsZero()))
	}
	slices.Sort(p.Pods)
	return p
}

// timeless removes the times and the text of the latest refusal.
func timeless(status v1beta2.AppWrapperStatus) v1beta2.AppWrapperStatus {
	status = *status.DeepCopy()
	status.PhaseTransitionTime, status.Usage = nil, nil // checkBooks looks at it
	for i := range status.AvoidedNodes {
		status.AvoidedNodes[i].Since, status.AvoidedNodes[i].Until = nil, metav1.Time{}
	}
	for i := range status.LastAttempts {
		status.LastAttempts[i].Began, status.LastAttempts[i].Ended, status.LastAttempts[i].RanSeconds = metav1.Time{}, metav1.Time{}, nil
	}
	if status.FailedNode != nil {
		status.FailedNode.Until, status.FailedNode.LastedSeconds = metav1.Time{}, 0
	}
	forget := func(conditions []metav1.Condition) {
		for i := range conditions {
			c := &conditions[i]
			c.LastTransitionTime = metav1.Time{}
			if c.Reason == v1beta2.ReasonComponentCreationErrored {
				c.Message = ""
			}
			if c.Type == string(v1beta2.PodsReady) && c.Status == metav1.ConditionFalse {
				c.Reason, c.Message = "", ""
			}
			c.Message, _, _ = strings.Cut(c.Message, " could not be created: ")
		}
	}
	forget(status.Conditions)
	for _, c := range status.ComponentStatus {
		forget(c.Conditions)
	}
	return status
}
