// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func condition(all []metav1.Condition, kind string) *metav1.Condition {
	return meta.FindStatusCondition(all, kind)
}

func isTrue(all []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(all, kind)
}

// told is a condition as evidence: its message, and without one its reason or status.
func told(object string, c metav1.Condition) Evidence {
	value := cmp.Or(c.Message, c.Reason, string(c.Status))
	return Evidence{Object: object, Field: "condition " + c.Type + " is " + string(c.Status) + ", " + c.Reason, Value: value}
}

// missing is an object that was looked for.
func (o Objects) missing(kind string) (Evidence, bool) {
	name, looked := o.Absent[kind]
	return Evidence{Object: strings.TrimSpace(kind + " " + name), Value: "does not exist"}, looked
}

func (o Objects) workload() string { return "Workload " + o.Workload.Name }

func (o Objects) wrapper() string { return "AppWrapper " + o.AppWrapper.Name }

// queue is the ClusterQueue of the work, if it was read.
func (o Objects) queue() *kueue.ClusterQueue {
	if o.LocalQueue == nil {
		return nil
	}
	for i, q := range o.ClusterQueues {
		if q.Name == string(o.LocalQueue.Spec.ClusterQueue) {
			return &o.ClusterQueues[i]
		}
	}
	return nil
}

// podEvents are warnings about a pod. One that had its name in an earlier attempt has another UID.
func (o Objects) podEvents(pod *corev1.Pod, words ...string) []Evidence {
	return o.events("Pod", pod.Name, pod.UID, words...)
}

// events are warnings about an object whose reason or message has one of the words. Its UID may not be known.
func (o Objects) events(kind, name string, uid types.UID, words ...string) (found []Evidence) {
	for _, e := range o.Events {
		if !isAbout(e.InvolvedObject, kind, name, uid) || e.Type != corev1.EventTypeWarning || o.isPast(e) {
			continue
		}
		if e.Message != "" && hasAny(e.Reason+" "+e.Message, words...) {
			found = append(found, Evidence{Object: kind + " " + name, Field: "event " + e.Reason, Value: e.Message})
		}
	}
	return found
}

func isAbout(about corev1.ObjectReference, kind, name string, uid types.UID) bool {
	return about.Kind == kind && about.Name == name && (uid == "" || about.UID == "" || about.UID == uid)
}

// lastSeen is when a warning came last; zero if it does not tell.
func lastSeen(e corev1.Event) time.Time {
	last := e.LastTimestamp.Time
	if e.EventTime.After(last) {
		last = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	return last
}

// isPast: a warning is older than the AppWrapper, or the bare job, so that it is about another one of this name.
func (o Objects) isPast(e corev1.Event) bool {
	last := lastSeen(e)
	switch {
	case last.IsZero():
		return false
	case o.AppWrapper != nil:
		return last.Before(o.AppWrapper.CreationTimestamp.Time)
	case o.Job != nil:
		created := o.Job.GetCreationTimestamp()
		return last.Before(created.Time)
	}
	return false
}

func hasAny(text string, words ...string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
