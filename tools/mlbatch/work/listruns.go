// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// readRuns reads the Runs. Many clusters do not serve them: there, the API server refuses members before it says so.
func (s *scene) readRuns(ctx context.Context) {
	s.runs = map[types.UID]*v1alpha1.Run{}
	list, err := runs.List(ctx, s.client, s.namespace)
	if err != nil {
		none := apierrors.IsForbidden(err) && !slices.ContainsFunc(s.wrappers, func(aw v1beta2.AppWrapper) bool { return s.runOf(&aw) != "" })
		if !none && !errors.Is(err, runs.ErrNoRuns) {
			s.unknown = append(s.unknown, err.Error()+"; their AppWrappers are listed instead")
		}
		return
	}
	for i := range list {
		s.runs[list[i].UID] = &list[i]
	}
}

// runOf is the Run that has made an AppWrapper, or empty.
func (s *scene) runOf(aw *v1beta2.AppWrapper) types.UID {
	if owner := metav1.GetControllerOf(aw); owner != nil && owner.Kind == v1alpha1.RunKind {
		return owner.UID
	}
	return ""
}

// ofRuns is an item for each Run. Its reason is the first of its AppWrappers, and its GPUs are those of all together.
func (s *scene) ofRuns() (all []Item) {
	made := map[types.UID][]*v1beta2.AppWrapper{}
	for i := range s.wrappers {
		made[s.runOf(&s.wrappers[i])] = append(made[s.runOf(&s.wrappers[i])], &s.wrappers[i])
	}
	for uid, run := range s.runs {
		var only *v1beta2.AppWrapper
		if len(made[uid]) == 1 {
			only = made[uid][0]
		}
		i := ofRun(run, only)
		for _, aw := range made[uid] {
			i.add(s.wrapped(aw))
		}
		if len(made[uid]) == 0 {
			i = i.withReason(explain.Objects{Run: run, Now: s.now, Absent: map[string]string{}})
		}
		all = append(all, i)
	}
	return all
}

// ofRun is a Run without what its AppWrappers know.
func ofRun(run *v1alpha1.Run, aw *v1beta2.AppWrapper) Item {
	return Item{
		Kind: v1alpha1.RunKind, Namespace: run.Namespace, Name: run.Name, Queue: run.Spec.QueueName, State: cmp.Or(string(run.Status.Phase), "New"),
		Since: sinceOfRun(run), Stage: stageOfRun(run, aw), User: admissionrules.UserLabelValue(run.Annotations[v1alpha1.AuthorAnnotation]),
		Created: known(run.CreationTimestamp), labels: run.Labels,
	}
}

// sinceOfRun is when it ended or, as far as that is known, began.
func sinceOfRun(run *v1alpha1.Run) metav1.Time {
	for _, at := range []*metav1.Time{run.Status.CompletionTime, run.Status.StartTime} {
		if at != nil {
			return *at
		}
	}
	return run.CreationTimestamp
}

// add adds what an AppWrapper of a Run knows.
func (i *Item) add(w Item) {
	if i.Reason == "" {
		i.Reason, i.Message = w.Reason, w.Message
	}
	i.Priority, i.Queue = cmp.Or(i.Priority, w.Priority), cmp.Or(i.Queue, w.Queue)
	i.Retries, i.Starts, i.Migrations = i.Retries+w.Retries, i.Starts+w.Starts, i.Migrations+w.Migrations
	if w.GPUs != nil {
		sum := *w.GPUs
		if i.GPUs != nil {
			sum += *i.GPUs
		}
		i.GPUs = &sum
	}
}
