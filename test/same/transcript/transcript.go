// SPDX-License-Identifier: Apache-2.0

// Package transcript says what happened to the pods of one object, in a form in which two runs of the object can be
// compared: pods, container starts, what came after what, and how the object ended.
package transcript

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/test/same/slot"
)

// Transcript is what was seen of one object, alone in its namespace.
type Transcript struct {
	began, last time.Time
	race        time.Duration
	lines       []string
	pods        map[types.UID]*life
	order       []*life // in which the pods were seen, without those that came after the end of the object
	turn        int
	// final is what the object said last.
	final []string
	// short: the object wants more pods than it has made, because they come in turn.
	short bool
	// gone: there is no object.
	gone bool
	// wrapper is what its AppWrapper said last.
	wrapper string
}

// life is what was seen of a pod. Turns are places in the order of all that was seen; 0 is never.
type life struct {
	slot                         slot.Slot
	name                         string
	created, ready, ended, going int
	starts                       int
	restarts                     int32
	started                      time.Time // last
	isReady, runs                bool
	// uncounted are starts that nothing is compared with.
	uncounted int
	// alone is a pod that nothing made; failed is how one has ended.
	alone, failed bool
	shape         map[string]string
}

// New begins a transcript. Within the time of a race of each other, two things may come in either order.
func New(at time.Time, race time.Duration) *Transcript {
	return &Transcript{began: at, last: at, race: race, pods: map[types.UID]*life{}}
}

// Pod takes note of a pod, after each of its changes and once it is gone.
func (t *Transcript) Pod(pod *corev1.Pod, gone bool, at time.Time) {
	l, known := t.pods[pod.UID]
	if !known {
		l = &life{slot: slot.Of(pod), name: pod.Name, shape: shapeOf(pod), alone: metav1.GetControllerOf(pod) == nil}
		t.pods[pod.UID] = l
		if t.Ended() == "" && !t.gone { // else an operator has not seen the end yet
			t.order = append(t.order, l)
		}
		l.created = t.say(at, "pod %s is created", l.slot)
	}
	t.started(l, pod, at)
	t.readiness(l, pod, gone, at)
	if over := pod.Status.Phase; l.ended == 0 && (over == corev1.PodSucceeded || over == corev1.PodFailed) {
		l.failed = over == corev1.PodFailed
		l.ended = t.say(at, "pod %s %s", l.slot, howItEnded(pod))
	}
	if l.going == 0 && (pod.DeletionTimestamp != nil || gone) {
		t.discount(l, at)
		l.going = t.say(at, "pod %s is deleted", l.slot)
	}
}

func howItEnded(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if end := c.State.Terminated; end != nil && end.ExitCode != 0 {
			return fmt.Sprintf("%s with exit code %d", pod.Status.Phase, end.ExitCode)
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s", pod.Status.Phase, pod.Status.Reason))
}

// started counts starts of containers.
func (t *Transcript) started(l *life, pod *corev1.Pod, at time.Time) {
	starts, restarts := 0, int32(0)
	l.runs = len(pod.Status.ContainerStatuses) > 0
	for _, c := range pod.Status.ContainerStatuses {
		l.runs = l.runs && c.State.Running != nil
		starts += int(c.RestartCount)
		if c.State.Running != nil || c.State.Terminated != nil {
			starts++
		} else if c.RestartCount > 0 || c.LastTerminationState.Terminated != nil {
			starts++ // it waits for its next start
		}
		restarts = max(restarts, c.RestartCount)
	}
	if starts > l.starts+l.uncounted {
		l.starts, l.restarts, l.started = starts-l.uncounted, restarts, at
		if t.Ended() != "" {
			t.discount(l, at) // what goes on after the end of the object is not its work
		}
		t.say(at, "pod %s runs%s", l.slot, strings.Repeat(" again", min(1, int(restarts))))
	}
}

// Race is the time of a race on a machine that does nothing else.
const Race = 3 * time.Second

// discount does not count the last start of a container if it was started again just now and has not ended by itself
// when its pod or the object ends: a moment earlier or later, it would have been another number.
func (t *Transcript) discount(l *life, at time.Time) {
	if l.ended == 0 && l.restarts > 0 && at.Sub(l.started) < t.race {
		l.starts, l.uncounted, l.started = l.starts-1, l.uncounted+1, time.Time{}
	}
}

func (t *Transcript) readiness(l *life, pod *corev1.Pod, gone bool, at time.Time) {
	l.isReady = false
	for _, c := range pod.Status.Conditions {
		l.isReady = l.isReady || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	l.isReady = l.isReady && !gone && pod.DeletionTimestamp == nil
	if l.isReady && l.ready == 0 {
		l.ready = t.say(at, "pod %s is ready", l.slot)
	}
}

// Object takes note of the object.
func (t *Transcript) Object(o *unstructured.Unstructured, gone bool, at time.Time) {
	if t.gone = gone; gone {
		t.say(at, "%s is gone", o.GetKind())
		return
	}
	t.short = isShort(o)
	if final := finalOf(o); !slices.Equal(final, t.final) {
		before := t.Ended()
		t.final = final
		for _, l := range t.order {
			if before == "" && t.Ended() != "" {
				t.discount(l, at)
			}
		}
		t.say(at, "%s says: %s", o.GetKind(), cmp.Or(strings.Join(final, ", "), "nothing"))
	}
}

// isShort compares the replicas that an object wants, 1 by default, with those that it has made.
func isShort(o *unstructured.Unstructured) bool {
	made, counts, _ := unstructured.NestedInt64(o.Object, "status", "replicas")
	wanted, says, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	return counts && (says && made < wanted || !says && made < 1)
}

// Wrapper takes note of the AppWrapper: a phase, or what else is short and says how it is.
func (t *Transcript) Wrapper(says, because string, at time.Time) {
	if says != t.wrapper {
		t.wrapper = says
		t.say(at, "AppWrapper %s", strings.TrimSpace(says+" "+because))
	}
}

// Note takes note of what somebody did.
func (t *Transcript) Note(text string, at time.Time) { t.say(at, "%s", text) }

func (t *Transcript) say(at time.Time, format string, args ...any) (turn int) {
	t.last = at
	t.lines = append(t.lines, fmt.Sprintf("%4.0fs  ", at.Sub(t.began).Seconds())+fmt.Sprintf(format, args...))
	t.turn++
	return t.turn
}

// Quiet is how long nothing has happened.
func (t *Transcript) Quiet(at time.Time) time.Duration { return at.Sub(t.last) }

// Restarts is how often the containers of one pod have been started again at most.
func (t *Transcript) Restarts() (most int32) {
	for _, l := range t.order {
		most = max(most, l.restarts)
	}
	return most
}

// String is the whole transcript.
func (t *Transcript) String() string { return strings.Join(t.lines, "\n") + "\n" }

// said are fields of a status that say how an object ends, besides its conditions.
var said = []string{"succeeded", "completedIndexes", "failedIndexes", "restarts", "state", "jobStatus", "jobDeploymentStatus", "readyReplicas"}

// finalOf is what an object says of itself: conditions that hold, with their reasons, and the fields of said.
func finalOf(o *unstructured.Unstructured) (final []string) {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		fields, _ := c.(map[string]any)
		if fields["status"] == "True" {
			reason, _ := fields["reason"].(string)
			final = append(final, strings.TrimSuffix(fmt.Sprintf("%s/%s", fields["type"], reason), "/"))
		}
	}
	slices.Sort(final)
	for _, field := range said {
		if value, found, _ := unstructured.NestedFieldNoCopy(o.Object, "status", field); found && fmt.Sprint(value) != "" {
			final = append(final, fmt.Sprintf("%s=%v", field, value))
		}
	}
	return final
}
