// SPDX-License-Identifier: Apache-2.0

// Package work answers: which AppWrappers and bare jobs are there, and how far are they? It also ends,
// repeats and follows them.
package work

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
)

// Overview is all work of a namespace, or of the cluster.
type Overview struct {
	Items []Item `json:"items"`
	// Unknown is what could not be read, so that reasons may be missing.
	Unknown []string `json:"unknown,omitempty"`
}

// Item is an AppWrapper, a Run or a bare job.
type Item struct {
	// Kind is AppWrapper, Run or the kind of a bare job. A list has a Run instead of the AppWrappers that it has made.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Queue     string `json:"queue,omitempty"`
	// State is the phase of an AppWrapper or a Run. A bare job is Waiting, Admitted, Succeeded, Failed or Ended.
	State string `json:"state"`
	// Reason is the first cause of 'mlbatch why', if it says more than the state.
	Reason explain.Code `json:"reason,omitempty"`
	// Message is the first evidence of the reason.
	Message string `json:"message,omitempty"`
	// Since is when the state began.
	Since      metav1.Time `json:"since"`
	Priority   *int32      `json:"priority,omitempty"`
	Retries    int32       `json:"retries,omitempty"`
	Starts     int32       `json:"startupRetries,omitempty"`
	Migrations int32       `json:"migrations,omitempty"`
	// Stage is the state in words that are the same for all kinds: Queued, Starting, Running, Retrying, Preempted,
	// Stopping, Succeeded, Failed; a Run may be Cancelled, and a bare job Ended.
	Stage string `json:"stage,omitempty"`
	// User has created it, as its label says: in the characters of a label, of which there are 63 at most. A bare job has
	// this label only if somebody has set it.
	User string `json:"user,omitempty"`
	// GPUs is how many of the device that it requests most of; absent if that is not known.
	GPUs    *int64       `json:"gpus,omitempty"`
	Created *metav1.Time `json:"created,omitempty"`

	labels map[string]string
}

// List reads the work of a namespace, or of all if it is empty, with one list for each kind of object. The newest comes
// first. A Run stands for its AppWrappers. The pods that are read are those that wait or crash, so it does not know why
// others fail.
func List(ctx context.Context, c client.Client, namespace string, now time.Time) (Overview, error) {
	s := &scene{client: c, namespace: namespace, now: now}
	if err := s.read(ctx); err != nil {
		return Overview{}, err
	}
	overview := Overview{Items: []Item{}, Unknown: s.unknown}
	for i := range s.wrappers {
		if aw := &s.wrappers[i]; s.runs[s.runOf(aw)] == nil {
			overview.Items = append(overview.Items, s.wrapped(aw))
		}
	}
	overview.Items = append(overview.Items, s.ofRuns()...)
	for i := range s.workloads {
		if o := bareOwner(&s.workloads[i]); o != nil && s.byOwner[o.UID] == &s.workloads[i] {
			overview.Items = append(overview.Items, s.bare(&s.workloads[i], *o))
		}
	}
	slices.SortFunc(overview.Items, newestFirst)
	return overview, nil
}

func newestFirst(a, b Item) int {
	return cmp.Or(b.created().Compare(a.created().Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
}

func (i Item) created() metav1.Time {
	if i.Created == nil {
		return metav1.Time{}
	}
	return *i.Created
}

// known is nil for the time of an object of which only the name is known.
func known(at metav1.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func (s *scene) wrapped(aw *v1beta2.AppWrapper) Item {
	o := s.objects(aw.Namespace, aw.Labels[v1beta2.QueueNameLabel])
	o.AppWrapper, o.Workload = aw, s.byOwner[aw.UID]
	if o.Workload == nil && s.counted {
		o.Absent["Workload"] = "of AppWrapper " + aw.Name
	}
	s.addPodsTo(&o, podsOf{aw.Namespace, v1beta2.AppWrapperLabel, aw.Name})
	return wrapped(o).withReason(o)
}

// wrapped is an AppWrapper without the reason.
func wrapped(o explain.Objects) Item {
	aw := o.AppWrapper
	i := Item{
		Kind: "AppWrapper", Namespace: aw.Namespace, Name: aw.Name, Queue: aw.Labels[v1beta2.QueueNameLabel], State: phase(aw),
		Since: aw.CreationTimestamp, Retries: aw.Status.Retries, Starts: aw.Status.StartupRetries, Migrations: aw.Status.Migrations, Priority: priority(o),
		Stage: stageOf(aw), User: aw.Labels[v1beta2.UserLabel], GPUs: gpus(o.Workload), Created: known(aw.CreationTimestamp), labels: aw.Labels,
	}
	if at := aw.Status.PhaseTransitionTime; at != nil {
		i.Since = *at
	}
	if aw.DeletionTimestamp != nil {
		i.Since = *aw.DeletionTimestamp
	}
	return i
}

// gpus is nil if the Workload is not known.
func gpus(w *kueue.Workload) *int64 {
	if w == nil {
		return nil
	}
	most := quota.MostDevices(w)
	return &most
}

func priority(o explain.Objects) *int32 {
	if o.Workload == nil {
		return nil
	}
	return o.Workload.Spec.Priority
}

func phase(aw *v1beta2.AppWrapper) string {
	if aw.DeletionTimestamp != nil {
		return string(v1beta2.AppWrapperTerminating)
	}
	return cmp.Or(string(aw.Status.Phase), "New")
}

func (s *scene) bare(w *kueue.Workload, owner metav1.OwnerReference) Item {
	o := s.objects(w.Namespace, string(w.Spec.QueueName))
	o.Workload, o.Job = w, why.BareJob(*w, owner)
	s.addPodsTo(&o, podsOf{w.Namespace, why.PodLabel(owner.Kind), owner.Name})
	return bare(o).withReason(o)
}

// bare is a bare job without the reason.
func bare(o explain.Objects) Item {
	created := o.Job.GetCreationTimestamp()
	i := Item{
		Kind: o.Job.GetKind(), Namespace: o.Job.GetNamespace(), Name: o.Job.GetName(), Queue: o.Job.GetLabels()[v1beta2.QueueNameLabel], Priority: priority(o),
		GPUs: gpus(o.Workload), Created: known(created), labels: o.Job.GetLabels(),
	}
	i.State, i.Since = "NotQueued", created
	if o.Workload != nil {
		i.State, i.Since = admission(o.Workload)
		if created.IsZero() { // of the job, only its name is known
			i.Created, i.labels = known(o.Workload.CreationTimestamp), o.Workload.Labels
		}
		i.Stage = stageOfBare(o, i.State)
	}
	i.User = i.labels[v1beta2.UserLabel]
	return i
}

// withReason adds the reason in short. A reason that repeats the state adds only its message.
func (i Item) withReason(o explain.Objects) Item {
	for _, c := range explain.Explain(o).Causes {
		message := c.Evidence[0].Value
		if c.Evidence[0].Field == "" { // it does not exist
			message = c.Evidence[0].String()
		} else if _, err := strconv.Atoi(message); err == nil { // a number alone says nothing
			message = c.Evidence[0].Field + " " + message
		}
		if string(c.Code) != i.State {
			i.Reason, i.Message = c.Code, message
			return i
		}
		if message != i.State {
			i.Message = message
		}
	}
	return i
}

// States of a bare job that has not ended, as Kueue knows it.
const waiting, reserved, admitted = "Waiting", "Reserved", "Admitted"

// admission is the state of a bare job, as Kueue knows it.
func admission(w *kueue.Workload) (string, metav1.Time) {
	for _, row := range []struct{ condition, state string }{
		{kueue.WorkloadFinished, Ended}, {kueue.WorkloadAdmitted, admitted}, {kueue.WorkloadQuotaReserved, reserved},
	} {
		for _, c := range w.Status.Conditions {
			if c.Type != row.condition || c.Status != metav1.ConditionTrue {
				continue
			}
			if c.Reason == kueue.WorkloadFinishedReasonSucceeded || c.Reason == kueue.WorkloadFinishedReasonFailed {
				row.state = c.Reason
			}
			return row.state, c.LastTransitionTime
		}
	}
	return waiting, w.CreationTimestamp
}
