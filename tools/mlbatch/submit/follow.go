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
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

// ErrInterrupted is returned by Wait if its context is canceled. The job continues.
var ErrInterrupted = errors.New("interrupted; the job continues: see 'kubectl get appwrappers'")

// follow prints the progress of a job until it ends. It returns an error unless the job
// succeeds. If the API server does not answer, follow retries after the given pause.
func follow(ctx context.Context, c client.WithWatch, aw *v1beta2.AppWrapper, out io.Writer, pause time.Duration) error {
	f := &follower{client: c, uid: string(aw.UID), job: aw.DeepCopy(), out: out}
	defer f.stopWatches()
	for {
		ended, err := f.step(ctx)
		switch {
		case ended:
			return err
		case ctx.Err() != nil:
			return ErrInterrupted
		case err != nil && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)):
			return fmt.Errorf("cannot follow AppWrapper %s, but the job continues: %w", aw.Name, err)
		case err != nil:
			f.printPhase("unknown", "cannot read the job: "+err.Error())
			f.stopWatches()
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

// follower follows one AppWrapper.
type follower struct {
	client client.WithWatch
	uid    string
	job    *v1beta2.AppWrapper // as last read
	out    io.Writer
	last   string // the last line printed, which is not repeated
	// workloadsForbidden is set if the user lacks the right to watch Workloads.
	workloadsForbidden bool
	// seen is set once the job was read under the current watch, so that its deletion is
	// an event of that watch.
	seen bool
	// jobs and workloads are nil while they are not watched.
	jobs, workloads watch.Interface
}

// step reads the job and, unless it ended, waits for a change. The watches start before
// the read, so that no change is missed.
func (f *follower) step(ctx context.Context) (ended bool, err error) {
	if err := f.startWatches(ctx); err != nil {
		return false, err
	}
	if ended, err := f.readJob(ctx); ended || err != nil {
		return ended, err
	}
	var workloads <-chan watch.Event
	if f.workloads != nil {
		workloads = f.workloads.ResultChan()
	}
	open := true
	select {
	case <-ctx.Done():
	case event, ok := <-f.jobs.ResultChan():
		if ended, err := f.handle(ctx, event); ended {
			return true, err
		}
		open = ok
	case _, open = <-workloads:
	}
	if !open { // the API server closes every watch after some minutes
		f.stopWatches()
	}
	return false, nil
}

// handle reports whether an event shows that the job ended. It reports the final phase from
// the event itself, because the job may be deleted before it can be read.
func (f *follower) handle(ctx context.Context, event watch.Event) (ended bool, err error) {
	aw, ok := event.Object.(*v1beta2.AppWrapper)
	if !ok || string(aw.UID) != f.uid {
		return false, nil
	}
	if phase := aw.Status.Phase; phase == v1beta2.AppWrapperSucceeded || phase == v1beta2.AppWrapperFailed {
		f.job = aw
		return f.report(ctx)
	}
	if event.Type == watch.Deleted {
		return true, f.deletedError()
	}
	return false, nil
}

// handleDeleted drains the watch of a job that no longer exists: the job may have ended
// before it was deleted.
func (f *follower) handleDeleted(ctx context.Context) (ended bool, err error) {
	for f.seen { // otherwise the watch may have no event of the job, and this would block
		select {
		case <-ctx.Done():
			return false, nil
		case event, open := <-f.jobs.ResultChan():
			if ended, err := f.handle(ctx, event); ended {
				return true, err
			}
			f.seen = open
		}
	}
	return true, f.deletedError()
}

func (f *follower) deletedError() error {
	return fmt.Errorf("AppWrapper %s was deleted before it ended", f.job.Name)
}

// readJob reads the job and prints its phase if it changed.
func (f *follower) readJob(ctx context.Context) (ended bool, err error) {
	err = f.client.Get(ctx, client.ObjectKeyFromObject(f.job), f.job)
	if apierrors.IsNotFound(err) || err == nil && string(f.job.UID) != f.uid {
		return f.handleDeleted(ctx)
	}
	if err != nil {
		return false, err
	}
	f.seen = true
	return f.report(ctx)
}

// report prints the job's phase and its reason. The error of a job that failed has the
// reason.
func (f *follower) report(ctx context.Context) (ended bool, err error) {
	reason, err := f.reason(ctx)
	if err != nil {
		return false, err
	}
	phase := f.job.Status.Phase
	f.printPhase(string(phase), reason)
	if c := meta.FindStatusCondition(f.job.Status.Conditions, string(v1beta2.Deactivated)); c != nil && c.Status == "True" && f.workloadsForbidden {
		return true, fmt.Errorf("nobody starts AppWrapper %s again: %s", f.job.Name, c.Message)
	}
	if phase == v1beta2.AppWrapperSuspended && !f.workloadsForbidden {
		if abandoned, err := Abandoned(ctx, f.client, client.ObjectKeyFromObject(f.job), f.uid); abandoned != nil || err != nil {
			return abandoned != nil, errors.Join(abandoned, err)
		}
	}
	if phase == v1beta2.AppWrapperFailed {
		return true, fmt.Errorf("AppWrapper %s has failed: %s", f.job.Name, reason)
	}
	return phase == v1beta2.AppWrapperSucceeded, nil
}

// printPhase prints a phase and its reason, unless they are what it printed last.
func (f *follower) printPhase(phase, reason string) {
	line := fmt.Sprintf("%-10s %s", phase, reason)
	if phase == "" || line == f.last {
		return
	}
	f.last = line
	fmt.Fprintln(f.out, time.Now().Format(time.TimeOnly), line)
}

// reason says why the job is in its phase: it is unhealthy, it waits for quota, or it waits
// for its pods. It is empty if there is nothing to say.
func (f *follower) reason(ctx context.Context) (string, error) {
	conditions := f.job.Status.Conditions
	if c := meta.FindStatusCondition(conditions, string(v1beta2.Unhealthy)); c != nil && c.Status == "True" {
		return c.Message, nil
	}
	if f.job.Status.Phase == v1beta2.AppWrapperSuspended {
		return f.quotaReason(ctx)
	}
	if c := meta.FindStatusCondition(conditions, string(v1beta2.PodsReady)); c != nil && f.job.Status.Phase == v1beta2.AppWrapperRunning {
		return c.Message, nil
	}
	return "", nil
}

// quotaReason is the QuotaReserved message that Kueue wrote to the job's Workload.
func (f *follower) quotaReason(ctx context.Context) (string, error) {
	if f.workloadsForbidden {
		return "the reason is unknown without the right to watch Workloads", nil
	}
	return QuotaReason(ctx, f.client, f.job.Namespace, f.uid)
}

// QuotaReason says in Kueue's words why the AppWrapper with this UID has no quota, or that nobody starts it again. It
// is empty if Kueue has not said anything yet.
func QuotaReason(ctx context.Context, c client.Reader, namespace, uid string) (string, error) {
	w, err := workloadOf(ctx, c, namespace, uid)
	if err != nil || w == nil {
		return "", err
	}
	if why, is := explain.Abandoned(w); is {
		return "nobody starts it again: " + why.Sentence(), nil
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); c != nil {
		return c.Message, nil
	}
	return "", nil
}

// Abandoned is an error if nobody starts the AppWrapper with this UID again, because its Workload was deactivated.
func Abandoned(ctx context.Context, c client.Reader, aw client.ObjectKey, uid string) (abandoned, err error) {
	w, err := workloadOf(ctx, c, aw.Namespace, uid)
	if err != nil {
		return nil, err
	}
	if why, is := explain.Abandoned(w); is {
		return fmt.Errorf("nobody starts AppWrapper %s again: %s", aw.Name, why.Sentence()), nil
	}
	return nil, nil
}

// workloadOf is the Workload of the AppWrapper with a UID, or nil.
func workloadOf(ctx context.Context, c client.Reader, namespace, uid string) (*kueue.Workload, error) {
	all, err := clusterstate.List[kueue.Workload](ctx, c, &kueue.WorkloadList{}, client.InNamespace(namespace), workloadsOf(uid))
	for i, w := range all {
		if len(w.OwnerReferences) > 0 && string(w.OwnerReferences[0].UID) == uid {
			return &all[i], nil
		}
	}
	return nil, err
}

// workloadsOf selects the Workloads of an AppWrapper with this UID. Kueue labels them. In a namespace with thousands
// that wait, Kueue writes each of them again and again.
func workloadsOf(uid string) client.MatchingLabels {
	return client.MatchingLabels{"kueue.x-k8s.io/job-uid": uid}
}

// startWatches starts the watches that are not running. It does without Workloads if the
// user may not watch them.
func (f *follower) startWatches(ctx context.Context) (err error) {
	if f.jobs == nil {
		if f.jobs, err = f.client.Watch(ctx, &v1beta2.AppWrapperList{}, client.InNamespace(f.job.Namespace), client.MatchingFields{"metadata.name": f.job.Name}); err != nil {
			f.jobs = nil
			return err
		}
	}
	if f.workloads == nil && !f.workloadsForbidden {
		if f.workloads, err = f.client.Watch(ctx, &kueue.WorkloadList{}, client.InNamespace(f.job.Namespace), workloadsOf(f.uid)); err != nil {
			f.workloads = nil
			f.workloadsForbidden = apierrors.IsForbidden(err)
		}
	}
	if f.workloadsForbidden {
		return nil
	}
	return err
}

func (f *follower) stopWatches() {
	for _, w := range []watch.Interface{f.jobs, f.workloads} {
		if w != nil {
			w.Stop()
		}
	}
	f.jobs, f.workloads, f.seen = nil, nil, false
}
