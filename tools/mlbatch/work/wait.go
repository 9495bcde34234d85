// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
)

// ErrInterrupted is returned by Wait if its context is canceled. The work continues.
var ErrInterrupted = errors.New("interrupted; the work continues: see 'mlbatch list'")

// pollPause is the pause between two looks at the Workload of a bare job.
const pollPause = 5 * time.Second

// Wait prints the progress of work until it ends. It returns an error unless it succeeds.
func Wait(ctx context.Context, c client.WithWatch, o explain.Objects, progress io.Writer) error {
	return wait(ctx, c, o, progress, pollPause)
}

func wait(ctx context.Context, c client.WithWatch, o explain.Objects, progress io.Writer, pause time.Duration) error {
	switch {
	case o.Run != nil:
		return runs.Wait(ctx, c, []client.Object{o.Run}, progress)
	case o.AppWrapper != nil:
		return submit.Follow(ctx, c, o.AppWrapper, progress)
	case o.Workload == nil:
		return fmt.Errorf("%s %s is in no queue, so nothing says when it ends: use 'kubectl wait'", o.Job.GetKind(), o.Job.GetName())
	}
	f := follower{client: c, objects: o, progress: progress}
	for {
		if ended, err := f.look(ctx); ended {
			return err
		}
		select {
		case <-ctx.Done():
			return ErrInterrupted
		case <-time.After(pause):
		}
	}
}

// follower follows a bare job by its Workload, because jobs of different kinds end in different ways.
type follower struct {
	client   client.Client
	objects  explain.Objects
	progress io.Writer
	last     string // the state printed last
}

func (f *follower) look(ctx context.Context) (ended bool, err error) {
	i, w := bare(f.objects), &kueue.Workload{}
	err = f.client.Get(ctx, client.ObjectKeyFromObject(f.objects.Workload), w)
	switch {
	case apierrors.IsNotFound(err) || err == nil && w.UID != f.objects.Workload.UID:
		return f.another(ctx)
	case apierrors.IsForbidden(err):
		return true, clusterstate.Failed(err, clusterstate.Request{Verb: "get", Resource: "workloads", Namespace: i.Namespace})
	case err != nil:
		f.say("unknown: " + printing.OneLine(err.Error()))
		return false, nil
	}
	f.objects.Workload = w
	i = bare(f.objects)
	if i.State == Ended {
		return f.another(ctx)
	}
	f.say(i.State)
	if stopped, is := explain.Abandoned(w); is {
		return true, fmt.Errorf("nobody starts %s %s again: %s", i.Kind, i.Name, stopped.Sentence())
	}
	if i.State == kueue.WorkloadFinishedReasonFailed {
		return true, fmt.Errorf("%s %s has failed: see 'mlbatch why %s'", i.Kind, i.Name, i.Name)
	}
	return i.State == kueue.WorkloadFinishedReasonSucceeded, nil
}

// another goes on with the Workload that has replaced that of the job. While the job is there, there may be one soon.
func (f *follower) another(ctx context.Context) (ended bool, err error) {
	i := bare(f.objects)
	next, err := f.successor(ctx)
	if err != nil {
		return true, clusterstate.Failed(err, clusterstate.Request{Verb: "list", Resource: "workloads", Namespace: i.Namespace})
	}
	if next != nil {
		f.objects.Workload = next
		return f.look(ctx)
	}
	target := why.Target{Kind: strings.ToLower(i.Kind), Namespace: i.Namespace, Name: i.Name}
	if there, err := why.Find(ctx, f.client, target); err != nil || there.Job == nil || there.Job.GetUID() != f.objects.Job.GetUID() {
		return true, fmt.Errorf("%s %s was deleted before its end was seen", i.Kind, i.Name)
	}
	f.say("Waiting: Kueue has ended its Workload, and has not made another one")
	return false, nil
}

// successor is the Workload that has replaced that of the job, or nil: Kueue makes another if the job changes, and for
// each slice of an elastic job.
func (f *follower) successor(ctx context.Context) (next *kueue.Workload, err error) {
	old := f.objects.Workload
	err = clusterstate.Each(ctx, f.client, &kueue.WorkloadList{}, func(w *kueue.Workload) {
		if w.UID != old.UID && ownedBy(w, f.objects.Job.GetUID()) && why.Replaces(w, cmp.Or(next, old)) {
			next = w
		}
	}, client.InNamespace(old.Namespace))
	return next, err
}

func ownedBy(w *kueue.Workload, owner types.UID) bool {
	return slices.ContainsFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner })
}

// say prints a state unless it is the one printed last.
func (f *follower) say(state string) {
	if state != f.last {
		fmt.Fprintln(f.progress, time.Now().Format(time.TimeOnly), state)
	}
	f.last = state
}
