// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Child is what a wrapped resource has made to make pods, such as a ReplicaSet.
type Child struct {
	Kind string    `json:"kind"`
	Name string    `json:"name"`
	UID  types.UID `json:"uid,omitempty"`
}

// Owners are the wrapped resources, or the bare job, and what they have made: their operators warn about them.
func (o Objects) Owners() (all []Child) {
	if o.AppWrapper != nil {
		for _, component := range o.AppWrapper.Status.ComponentStatus {
			all = append(all, Child{Kind: component.Kind, Name: component.Name})
		}
	} else if o.Job != nil {
		all = append(all, Child{Kind: o.Job.GetKind(), Name: o.Job.GetName(), UID: o.Job.GetUID()})
	}
	for _, name := range submitters(all) {
		all = append(all, Child{Kind: "Job", Name: name})
	}
	return append(all, o.Children...)
}

// Submitters are the Jobs with which KubeRay submits RayJobs, by their names: those of the RayJobs. If no template of
// their pods is written, these have no label of the AppWrapper, and no pod set counts them.
func (o Objects) Submitters() []string {
	o.Children = nil
	return submitters(o.Owners())
}

func submitters(owners []Child) (names []string) {
	for _, by := range owners {
		if by.Kind == "RayJob" && by.Name != "" {
			names = append(names, by.Name)
		}
	}
	return names
}

// AddPods adds pods that are not known yet: a Submitter's may have the label of the work, too.
func (o *Objects) AddPods(pods []corev1.Pod) {
	known := map[string]bool{}
	for i := range o.Pods {
		known[o.Pods[i].Name] = true
	}
	for _, p := range pods {
		if !known[p.Name] {
			o.Pods = append(slices.Clip(o.Pods), p)
		}
	}
}

// submits reports whether a pod is a Submitter's.
func (o Objects) submits(pod *corev1.Pod) bool {
	return slices.Contains(o.Submitters(), pod.Labels["batch.kubernetes.io/job-name"])
}

// notSubmitted: without the pod that its Job could not create, a RayJob does not begin, though its cluster is ready.
func (o Objects) notSubmitted() []Cause {
	if slices.ContainsFunc(o.Pods, func(p corev1.Pod) bool { return o.submits(&p) }) {
		return nil
	}
	for _, name := range o.Submitters() {
		if found := o.events("Job", name, "", notMade...); len(found) > 0 {
			last := found[len(found)-1]
			return []Cause{cause(refusal(last.Value), last)}
		}
	}
	return nil
}

// notMade are words with which operators say that they could not make something.
var notMade = []string{"FailedCreate", "FailedToCreate", "CreationFailed"}

// podRefused is about pods that the owners of this work could not create, and that are not there by now: some are
// missing, or none was created since, as when the next wave of a Job is refused.
func (o Objects) podRefused() []Cause {
	if o.complete() {
		var created metav1.Time
		for i := range o.Pods {
			if created.Before(&o.Pods[i].CreationTimestamp) {
				created = o.Pods[i].CreationTimestamp
			}
		}
		o.Events = slices.DeleteFunc(slices.Clone(o.Events), func(e corev1.Event) bool { return !lastSeen(e).After(created.Time) })
	}
	for _, by := range o.Owners() {
		if found := o.events(by.Kind, by.Name, by.UID, notMade...); len(found) > 0 {
			last := found[len(found)-1]
			return []Cause{cause(refusal(last.Value), last)}
		}
	}
	return nil
}

// operators is about what operators say of resources that they cannot use, or of which they cannot make parts. What is
// not valid stays so, whatever the pods do.
func operators(o Objects) []Cause {
	if o.Ended() {
		return nil
	}
	var last []Cause
	for _, by := range o.Owners() {
		for _, e := range o.events(by.Kind, by.Name, by.UID, "") {
			switch {
			case notValid(e):
				return []Cause{cause("ResourceInvalid", e)}
			case !hasAny(e.Field, notMade...) && !o.isWell(): // what was not made may be made by now: see podRefused
				last = []Cause{cause("OperatorWarns", e)}
			}
		}
	}
	return last
}

// notValid: a Service or another part has a name or a field that the API server does not take, or the operator says
// so of the whole, as KubeRay does with the reason InvalidRayClusterSpec.
func notValid(e Evidence) bool {
	reason := strings.TrimPrefix(e.Field, "event ")
	return strings.HasPrefix(reason, "Invalid") || strings.Contains(reason, "Validation") || hasAny(reason, notMade...) && refusal(e.Value) == "ResourceInvalid"
}

// Warned are the objects that a warning of the namespace is about, which may be children of the work by their names.
func (o Objects) Warned() (all []corev1.ObjectReference) {
	seen := map[types.UID]bool{}
	for _, e := range o.Events {
		about := e.InvolvedObject
		if seen[about.UID] || about.UID == "" || about.Kind == "Pod" {
			continue
		}
		for _, by := range o.Owners() {
			if strings.HasPrefix(about.Name, by.Name+"-") && by.Name != "" {
				seen[about.UID] = true
				all = append(all, about)
				break
			}
		}
	}
	return all
}
