// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
)

// Report is how far one piece of work is.
type Report struct {
	Item
	// Sentence is the state in words.
	Sentence string `json:"sentence"`
	// Means is the reason in words.
	Means        string                `json:"means,omitempty"`
	RetryLimit   string                `json:"retryLimit,omitempty"`
	AvoidedNodes []v1beta2.AvoidedNode `json:"avoidedNodes,omitempty"`
	LastFailure  *Failure              `json:"lastFailure,omitempty"`
	// LastAttempts are those that ended without success, the latest last.
	LastAttempts []v1beta2.AppWrapperAttempt `json:"lastAttempts,omitempty"`
	Components   []Component                 `json:"components,omitempty"`
	// Application and Size are those of a Run, the size with its workers.
	Application string `json:"application,omitempty"`
	Size        string `json:"size,omitempty"`
	// RunFailure is the last failure as the Run has recorded it.
	RunFailure *v1alpha1.LastFailure `json:"runFailure,omitempty"`
	// Steps are those of the Run's workflow.
	Steps []Step        `json:"steps,omitempty"`
	Pods  []podlogs.Pod `json:"pods"`
	// Unknown is what could not be read.
	Unknown []string `json:"unknown,omitempty"`
}

// Failure is what went wrong the last time, in the words of the controller.
type Failure struct {
	At      metav1.Time `json:"at"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
}

// Component is a wrapped resource.
type Component struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Pods int32  `json:"pods"`
	// State is created, not created, refused or succeeded.
	State string `json:"state"`
}

// Step is a step of a workflow.
type Step struct {
	Name       string `json:"name"`
	State      string `json:"state"`
	AppWrapper string `json:"appWrapper,omitempty"`
	// Reason is the first cause of 'mlbatch why' that is about the step, and Message its first evidence.
	Reason  explain.Code `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
}

// Status reads one piece of work with what belongs to it.
func Status(ctx context.Context, c client.Client, target why.Target, now time.Time) (Report, error) {
	o, err := why.Read(ctx, c, target, now)
	if err != nil {
		return Report{}, err
	}
	return report(o), nil
}

func report(o explain.Objects) Report {
	answer := explain.Explain(o)
	r := Report{Item: summary(o), Sentence: answer.State, Pods: []podlogs.Pod{}, Unknown: o.Unread}
	r.Kind, r.Namespace, r.Name = answer.Kind, answer.Namespace, answer.Name
	for _, c := range answer.Causes {
		if c.Code == r.Reason {
			r.Means = c.Means
		}
	}
	r.Pods = append(r.Pods, podlogs.Sorted(o.Pods)...)
	for _, step := range o.Steps {
		r.Pods = append(r.Pods, podlogs.Sorted(step.Pods, step.Name)...)
	}
	if o.Run != nil {
		r.Application, r.Size, r.RunFailure = o.Run.Spec.Application.Name, runs.Size(o.Run), o.Run.Status.LastFailure
		r.Steps = stepsOf(o.Run.Status.Steps, answer.Causes)
	}
	if o.AppWrapper != nil {
		status := o.AppWrapper.Status
		r.RetryLimit, r.AvoidedNodes = o.AppWrapper.Annotations[v1beta2.RetryLimitAnnotation], status.AvoidedNodes
		r.LastFailure, r.LastAttempts = lastFailure(o.AppWrapper, o.Events), status.LastAttempts
		for _, component := range status.ComponentStatus {
			r.Components = append(r.Components, componentOf(component))
		}
	}
	return r
}

// stepsOf are the steps of a workflow, each with its first cause.
func stepsOf(steps []v1alpha1.StepStatus, causes []explain.Cause) (all []Step) {
	for _, step := range steps {
		one := Step{Name: step.Name, State: string(step.Phase), Message: step.Message}
		if step.AppWrapper != nil {
			one.AppWrapper = step.AppWrapper.Name
		}
		if i := slices.IndexFunc(causes, func(c explain.Cause) bool { return c.Step == step.Name }); i >= 0 {
			one.Reason, one.Message = causes[i].Code, causes[i].Evidence[0].Value
		}
		all = append(all, one)
	}
	return all
}

// summary is what a list has, too.
func summary(o explain.Objects) Item {
	var i Item
	switch {
	case o.AppWrapper != nil:
		i = wrapped(o)
	case o.Job != nil:
		i = bare(o)
	}
	if o.Run != nil && o.AppWrapper == nil {
		i.State, i.Since = string(o.Run.Status.Phase), o.Run.CreationTimestamp
	}
	if o.Run != nil {
		i.Stage = stageOfRun(o.Run, o.AppWrapper)
	}
	return i.withReason(o)
}

// lastFailure is the present one, or else the newest warning about the AppWrapper that the cluster still has.
func lastFailure(aw *v1beta2.AppWrapper, events []corev1.Event) *Failure {
	for _, c := range aw.Status.Conditions {
		if c.Type == string(v1beta2.Unhealthy) && c.Status == metav1.ConditionTrue {
			return &Failure{At: c.LastTransitionTime, Reason: c.Reason, Message: c.Message}
		}
	}
	return newestWarning(aw, events)
}

func newestWarning(aw *v1beta2.AppWrapper, events []corev1.Event) *Failure {
	var newest *Failure
	for _, e := range events {
		if e.InvolvedObject.UID != aw.UID || aw.UID == "" {
			continue
		}
		at := timeOf(e)
		if newest == nil || newest.At.Before(&at) {
			newest = &Failure{At: at, Reason: e.Reason, Message: e.Message}
		}
	}
	return newest
}

func timeOf(e corev1.Event) metav1.Time {
	times := []time.Time{e.EventTime.Time, e.FirstTimestamp.Time, e.LastTimestamp.Time}
	if e.Series != nil {
		times = append(times, e.Series.LastObservedTime.Time)
	}
	return metav1.NewTime(slices.MaxFunc(times, time.Time.Compare))
}

func componentOf(status v1beta2.AppWrapperComponentStatus) Component {
	c := Component{Kind: status.Kind, Name: status.Name, State: "not created"}
	for _, podSet := range status.PodSets {
		c.Pods += podSet.Count()
	}
	told := func(kind v1beta2.AppWrapperCondition) metav1.Condition {
		for _, condition := range status.Conditions {
			if condition.Type == string(kind) {
				return condition
			}
		}
		return metav1.Condition{}
	}
	deployed := told(v1beta2.ResourcesDeployed)
	switch {
	case told(v1beta2.ComponentSucceeded).Status == metav1.ConditionTrue:
		c.State = "succeeded"
	case deployed.Status == metav1.ConditionTrue:
		c.State = "created"
	case slices.Contains([]string{v1beta2.ReasonComponentCreationErrored, v1beta2.ReasonComponentCreationRejected}, deployed.Reason):
		c.State = strings.TrimSuffix("refused: "+deployed.Message, ": ")
	case deployed.Reason == v1beta2.ReasonComponentDeleted:
		c.State = "removed"
	}
	return c
}

// nodes are the nodes of pods that have one, with the number of pods.
func nodes(pods []podlogs.Pod) []node {
	var all []node
	for _, p := range pods {
		i := slices.IndexFunc(all, func(n node) bool { return n.name == p.Node })
		switch {
		case p.Node == "":
		case i >= 0:
			all[i].pods++
		default:
			all = append(all, node{p.Node, 1})
		}
	}
	slices.SortFunc(all, func(a, b node) int { return cmp.Compare(a.name, b.name) })
	return all
}

type node struct {
	name string
	pods int
}
