// SPDX-License-Identifier: Apache-2.0

// Package explain answers: why is this work not running, or how did it end? It only judges
// objects that were read before: it calls no API and reads no clock.
//
// It repeats what Kueue, the controllers, the scheduler and the kubelet wrote, and adds numbers and
// a remedy. There is no cause without its evidence: a value of an object that was read, or that the
// object was looked for and is not there. What was not read is no evidence for anything.
package explain

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Objects are what was read. Each may be missing: see Absent and Unread.
type Objects struct {
	Run        *v1alpha1.Run
	AppWrapper *v1beta2.AppWrapper
	// Job is a bare job, which is not wrapped.
	Job        *unstructured.Unstructured
	Workload   *kueue.Workload
	LocalQueue *kueue.LocalQueue
	// ClusterQueues, with Cohorts, are all of the cluster, or none.
	ClusterQueues []kueue.ClusterQueue
	Cohorts       []kueue.Cohort
	Pods          []corev1.Pod
	Events        []corev1.Event // warnings
	// Children are what wrapped resources, or the bare job, have made, as far as warnings are about it.
	Children []Child
	// Steps are those of the Run's workflow that have begun and not ended, or the first of them.
	Steps []Step
	// Nodes are all of the cluster, and Placed the pods on them that have not ended; Placed is nil if that is not known.
	Nodes  []corev1.Node
	Placed []corev1.Pod
	// Flavor is that which work with quota got for what it waits for.
	Flavor   *kueue.ResourceFlavor
	Position *Position
	// Absent has the names of objects that do not exist, by kind.
	Absent map[string]string
	// Unread says in sentences what could not be read.
	Unread []string
	Now    time.Time
}

// Step is a step of a workflow. Its objects have no Run.
type Step struct {
	Name string
	Objects
}

// Explanation is the answer.
type Explanation struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// State is one sentence.
	State string `json:"state"`
	// Well is set if it runs, all its pods are ready, and all their containers run.
	Well bool `json:"well,omitempty"`
	// Causes begin with the one that matters most.
	Causes []Cause `json:"causes"`
	// Unknown is what could not be read.
	Unknown []string `json:"unknown,omitempty"`
}

// Cause is one reason for the state.
type Cause struct {
	Code Code `json:"code"`
	// Step is the step of a workflow that it is about.
	Step string `json:"step,omitempty"`
	// Means is the cause in one sentence, which is the same for all work.
	Means string `json:"means"`
	// Evidence has the values that show the cause. It is never empty.
	Evidence []Evidence `json:"evidence"`
	Numbers  []Number   `json:"numbers,omitempty"`
	// Who are those ahead, those who borrowed and those who preempted this work.
	Who   []string     `json:"who,omitempty"`
	Since *metav1.Time `json:"since,omitempty"`
	Next  *Next        `json:"next,omitempty"`
	// Remedy is what can be done.
	Remedy string `json:"remedy"`
}

// Evidence is a value of an object. Without a field the object does not exist.
type Evidence struct {
	Object string `json:"object"`
	Field  string `json:"field,omitempty"`
	Value  string `json:"value"`
}

// Number is what is missing of one resource in one flavor. A value that is not known is empty.
type Number struct {
	Resource string `json:"resource"`
	Flavor   string `json:"flavor,omitempty"`
	// Missing is how much more has to be free.
	Missing string `json:"missing,omitempty"`
	// Own is the nominal quota of the ClusterQueue, of which, and beyond which, it has Used.
	Own  string `json:"own,omitempty"`
	Used string `json:"used,omitempty"`
	// Requested is more than Most, which is all that the queue can ever have, with what it can borrow.
	Requested string `json:"requested,omitempty"`
	Most      string `json:"most,omitempty"`
}

// Next is what happens without anyone's help, and when, if that is known.
type Next struct {
	What string       `json:"what"`
	At   *metav1.Time `json:"at,omitempty"`
}

// rule finds causes of one sort.
type rule func(Objects) []Cause

// rules are in the order in which causes are printed: what forbids all progress comes first.
var rules = []rule{
	deletion, removal,
	foreign, silent,
	runRefused, runEnded, steps,
	ended,
	retrying, lost, past,
	deactivated,
	evicted,
	queueMissing, queueStopped,
	unmanaged,
	behind, waiting,
	checks,
	refused,
	schedulers, pods, room, operators,
	notReady, unhealthy,
	neverEnds,
}

// general are causes that add nothing to another one.
var general = map[Code]bool{"NotAdmitted": true, "OperatorWarns": true, "PodNotReady": true}

// Explain judges objects.
func Explain(o Objects) Explanation {
	e := Explanation{Causes: []Cause{}, Unknown: o.Unread}
	e.Kind, e.Namespace, e.Name = o.subject()
	e.State, e.Well = o.state(), o.runsWell()
	seen := map[Code]bool{}
	for _, find := range rules {
		for _, c := range find(o) {
			if seen[c.Code] && c.Step == "" || general[c.Code] && len(e.Causes) > 0 {
				continue
			}
			seen[c.Code] = true
			e.Causes = append(e.Causes, c)
		}
	}
	e.Causes = append(e.Causes, o.ofSteps()...)
	return e
}

// subject is what the question is about: the Run, and without one what it would have made.
func (o Objects) subject() (kind, namespace, name string) {
	switch {
	case o.Run != nil:
		return "Run", o.Run.Namespace, o.Run.Name
	case o.AppWrapper != nil:
		return "AppWrapper", o.AppWrapper.Namespace, o.AppWrapper.Name
	case o.Job != nil:
		return o.Job.GetKind(), o.Job.GetNamespace(), o.Job.GetName()
	case o.Workload != nil:
		return "Workload", o.Workload.Namespace, o.Workload.Name
	}
	return "", "", ""
}

// Ended reports whether nothing more happens to the work but its removal.
func (o Objects) Ended() bool {
	switch {
	case o.Run != nil:
		return o.Run.Status.Phase.Terminal()
	case o.AppWrapper != nil:
		phase := o.AppWrapper.Status.Phase
		return phase == v1beta2.AppWrapperSucceeded || phase == v1beta2.AppWrapperFailed
	case o.Workload != nil:
		return isTrue(o.Workload.Status.Conditions, kueue.WorkloadFinished)
	}
	return false
}

// state is the state in a sentence.
func (o Objects) state() string {
	kind, namespace, name := o.subject()
	return fmt.Sprintf("%s %s in namespace %s %s", kind, name, namespace, o.verb())
}

func (o Objects) verb() string {
	switch {
	case o.Run != nil && o.Run.Status.Phase != "":
		return "is " + string(o.Run.Status.Phase) + o.progress()
	case o.AppWrapper != nil && o.AppWrapper.Status.Phase != "":
		return "is " + string(o.AppWrapper.Status.Phase) + o.ready()
	case o.Workload != nil:
		return admission(o.Workload)
	}
	return "is new: nothing has been done about it"
}

// ready tells the states of the phase Running apart. What is known of the pods counts more than the condition.
func (o Objects) ready() string {
	c := condition(o.AppWrapper.Status.Conditions, string(v1beta2.PodsReady))
	if o.AppWrapper.Status.Phase != v1beta2.AppWrapperRunning || c == nil {
		return ""
	}
	living := o.living()
	switch {
	case c.Status != metav1.ConditionTrue, slices.ContainsFunc(living, func(p *corev1.Pod) bool { return !isReady(p) }):
		return ", but not all its pods are ready"
	case len(living) > 0 || len(o.Pods) == 0:
		return ", and its pods are ready"
	case slices.ContainsFunc(o.Pods, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }):
		return ", and its pods are ending"
	}
	return ", and its pods have ended"
}

func admission(w *kueue.Workload) string {
	switch {
	case isTrue(w.Status.Conditions, kueue.WorkloadFinished):
		return "has ended"
	case isTrue(w.Status.Conditions, kueue.WorkloadAdmitted):
		return "is admitted"
	case isTrue(w.Status.Conditions, kueue.WorkloadQuotaReserved):
		return "has quota, but is not admitted yet"
	}
	return "waits for admission"
}
