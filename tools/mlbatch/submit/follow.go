// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// ErrInterrupted is the error of a Wait that was interrupted: the job was not.
var ErrInterrupted = errors.New("interrupted; the job continues: see 'kubectl get appwrappers'")

// follow prints what becomes of a job until it has ended. An end other than success
// is an error. An API server that does not answer is asked again after the pause.
func follow(ctx context.Context, c client.WithWatch, aw *v1beta2.AppWrapper, out io.Writer, pause time.Duration) error {
	f := &follower{client: c, uid: string(aw.UID), job: aw.DeepCopy(), out: out}
	defer f.unwatch()
	for {
		ended, err := f.step(ctx)
		switch {
		case ended:
			return err
		case ctx.Err() != nil:
			return ErrInterrupted
		case err != nil && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)):
			return fmt.Errorf("cannot follow AppWrapper %s, which continues: %w", aw.Name, err)
		case err != nil:
			f.say("unknown", "cannot see the job: "+err.Error())
			f.unwatch()
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

// follower knows what it has said last.
type follower struct {
	client client.WithWatch
	uid    string
	job    *v1beta2.AppWrapper
	out    io.Writer
	said   string
	// alone is so for who may not watch Workloads, seen once the job was there while watched.
	alone, seen bool
	// jobs and workloads tell of changes; nil while nobody watches.
	jobs, workloads watch.Interface
}

// step looks at the job, and unless it has ended waits for a change. Watches begin before
// the look, so that nothing is missed in between.
func (f *follower) step(ctx context.Context) (ended bool, err error) {
	if err := f.watch(ctx); err != nil {
		return false, err
	}
	if ended, err := f.look(ctx); ended || err != nil {
		return ended, err
	}
	var workloads <-chan watch.Event
	if f.workloads != nil {
		workloads = f.workloads.ResultChan()
	}
	open := true
	select {
	case <-ctx.Done():
	case event, is := <-f.jobs.ResultChan():
		if ended, err := f.hear(ctx, event); ended {
			return true, err
		}
		open = is
	case _, open = <-workloads:
	}
	if !open { // the API server ends each watch after some minutes
		f.unwatch()
	}
	return false, nil
}

// hear looks whether an event is of the job's end, which may be deleted right after it.
func (f *follower) hear(ctx context.Context, event watch.Event) (ended bool, err error) {
	aw, is := event.Object.(*v1beta2.AppWrapper)
	if !is || string(aw.UID) != f.uid {
		return false, nil
	}
	if phase := aw.Status.Phase; phase == v1beta2.AppWrapperSucceeded || phase == v1beta2.AppWrapperFailed {
		f.job = aw
		return f.tell(ctx)
	}
	if event.Type == watch.Deleted {
		return true, f.deleted()
	}
	return false, nil
}

// gone hears what was last said of a job that is there no more.
func (f *follower) gone(ctx context.Context) (ended bool, err error) {
	for f.seen { // so that its deletion will be heard
		select {
		case <-ctx.Done():
			return false, nil
		case event, open := <-f.jobs.ResultChan():
			if ended, err := f.hear(ctx, event); ended {
				return true, err
			}
			f.seen = open
		}
	}
	return true, f.deleted()
}

func (f *follower) deleted() error {
	return fmt.Errorf("AppWrapper %s was deleted before it ended", f.job.Name)
}

// look reads the job and says what is new.
func (f *follower) look(ctx context.Context) (ended bool, err error) {
	err = f.client.Get(ctx, client.ObjectKeyFromObject(f.job), f.job)
	if apierrors.IsNotFound(err) || err == nil && string(f.job.UID) != f.uid {
		return f.gone(ctx)
	}
	if err != nil {
		return false, err
	}
	f.seen = true
	return f.tell(ctx)
}

// tell says what is new.
func (f *follower) tell(ctx context.Context) (ended bool, err error) {
	why, err := f.why(ctx)
	if err != nil {
		return false, err
	}
	phase := f.job.Status.Phase
	f.say(string(phase), why)
	if phase == v1beta2.AppWrapperFailed {
		return true, fmt.Errorf("AppWrapper %s has failed: %s", f.job.Name, why)
	}
	return phase == v1beta2.AppWrapperSucceeded, nil
}

// say prints a phase and its reason, once.
func (f *follower) say(phase, why string) {
	line := fmt.Sprintf("%-10s %s", phase, why)
	if phase == "" || line == f.said {
		return
	}
	f.said = line
	fmt.Fprintln(f.out, time.Now().Format(time.TimeOnly), line)
}

// why is what keeps the job where it is: its own trouble, its pods, or its quota.
func (f *follower) why(ctx context.Context) (string, error) {
	conditions := f.job.Status.Conditions
	if c := meta.FindStatusCondition(conditions, string(v1beta2.Unhealthy)); c != nil && c.Status == "True" {
		return c.Message, nil
	}
	if f.job.Status.Phase == v1beta2.AppWrapperSuspended {
		return f.queue(ctx)
	}
	if c := meta.FindStatusCondition(conditions, string(v1beta2.PodsReady)); c != nil && f.job.Status.Phase == v1beta2.AppWrapperRunning {
		return c.Message, nil
	}
	return "", nil
}

// queue is what Kueue says about the job.
func (f *follower) queue(ctx context.Context) (string, error) {
	if f.alone {
		return "what for cannot be seen without the right to watch Workloads", nil
	}
	var all kueue.WorkloadList
	if err := f.client.List(ctx, &all, client.InNamespace(f.job.Namespace)); err != nil {
		return "", err
	}
	for _, w := range all.Items {
		if len(w.OwnerReferences) == 0 || string(w.OwnerReferences[0].UID) != f.uid {
			continue
		}
		if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); c != nil {
			return c.Message, nil
		}
	}
	return "", nil
}

func (f *follower) watch(ctx context.Context) (err error) {
	if f.jobs == nil {
		if f.jobs, err = f.client.Watch(ctx, &v1beta2.AppWrapperList{}, client.InNamespace(f.job.Namespace)); err != nil {
			f.jobs = nil
			return err
		}
	}
	if f.workloads == nil && !f.alone {
		if f.workloads, err = f.client.Watch(ctx, &kueue.WorkloadList{}, client.InNamespace(f.job.Namespace)); err != nil {
			f.workloads = nil
			f.alone = apierrors.IsForbidden(err)
		}
	}
	if f.alone {
		return nil
	}
	return err
}

func (f *follower) unwatch() {
	for _, w := range []watch.Interface{f.jobs, f.workloads} {
		if w != nil {
			w.Stop()
		}
	}
	f.jobs, f.workloads, f.seen = nil, nil, false
}
