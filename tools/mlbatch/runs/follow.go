// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

// ErrInterrupted is returned by Wait if its context is canceled. The Runs continue.
var ErrInterrupted = errors.New("interrupted; the Runs continue: see 'mlbatch list'")

// retryPause is the pause before Wait asks an API server again that ended a watch or did not answer.
const retryPause = 3 * time.Second

// Wait prints a line whenever the phase of one of these Runs changes, until all have ended. It
// returns an error unless all succeed.
func Wait(ctx context.Context, c client.WithWatch, created []client.Object, out io.Writer) error {
	return wait(ctx, c, created, out, retryPause)
}

func wait(ctx context.Context, c client.WithWatch, created []client.Object, out io.Writer, pause time.Duration) error {
	ended := make([]error, len(created))
	lines := printing.NewLines(out)
	var all sync.WaitGroup
	for i, run := range created {
		f := &follower{client: c, key: client.ObjectKeyFromObject(run), uid: run.GetUID(), out: lines, pause: pause}
		all.Go(func() { ended[i] = f.follow(ctx) })
	}
	all.Wait()
	if ctx.Err() != nil && errors.Is(errors.Join(ended...), ErrInterrupted) {
		return ErrInterrupted
	}
	return printing.JoinErrors(ended)
}

// follower follows one Run.
type follower struct {
	client client.WithWatch
	key    client.ObjectKey
	uid    types.UID
	out    *printing.Lines
	pause  time.Duration
	last   string // the phase printed last, which is not repeated
}

// follow returns nil if the Run succeeds.
func (f *follower) follow(ctx context.Context) error {
	for {
		ended, err := f.watch(ctx)
		switch {
		case ended:
			return err
		case ctx.Err() != nil:
			return ErrInterrupted
		case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || notServed(err):
			return failed(err, "cannot follow Run %s, but it continues", f.key.Name)
		case err != nil:
			f.say("unknown", "cannot read the Run: "+printing.OneLine(err.Error()))
		}
		select {
		case <-ctx.Done():
		case <-time.After(f.pause):
		}
	}
}

// watch follows the Run until it ends, or the watch does. The watch begins before the Run is read,
// so that no change is missed.
func (f *follower) watch(ctx context.Context) (ended bool, err error) {
	events, err := f.client.Watch(ctx, &v1alpha1.RunList{}, client.InNamespace(f.key.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", f.key.Name)})
	if err != nil {
		return false, err
	}
	defer events.Stop()
	if ended, err := f.read(ctx); ended || err != nil {
		return ended, err
	}
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case event, open := <-events.ResultChan():
			if !open {
				return false, nil
			}
			if ended, err := f.handle(ctx, event); ended {
				return true, err
			}
		}
	}
}

func (f *follower) read(ctx context.Context) (ended bool, err error) {
	run := &v1alpha1.Run{}
	err = f.client.Get(ctx, f.key, run)
	if apierrors.IsNotFound(err) && !notServed(err) || err == nil && run.UID != f.uid {
		return true, f.deleted()
	}
	if err != nil {
		return false, err
	}
	return f.report(ctx, run)
}

// handle looks at the phase of a deleted Run, too: it may have ended, and been deleted at once.
func (f *follower) handle(ctx context.Context, event watch.Event) (ended bool, err error) {
	run, is := event.Object.(*v1alpha1.Run)
	if !is || run.UID != f.uid {
		return false, nil
	}
	if ended, err := f.report(ctx, run); ended {
		return true, err
	}
	if event.Type == watch.Deleted {
		return true, f.deleted()
	}
	return false, nil
}

func (f *follower) deleted() error {
	return fmt.Errorf("%s %s was deleted before its end was seen", v1alpha1.RunKind, f.key.Name)
}

func (f *follower) report(ctx context.Context, run *v1alpha1.Run) (ended bool, err error) {
	message := printing.OneLine(run.Status.Message)
	f.say(string(run.Status.Phase), message)
	switch run.Status.Phase {
	case v1alpha1.RunFailed:
		return true, fmt.Errorf("%s %s has failed: %s", v1alpha1.RunKind, run.Name, cmp.Or(message, "see 'mlbatch status run/"+run.Name+"'"))
	case v1alpha1.RunCancelled:
		return true, fmt.Errorf("%s %s was cancelled", v1alpha1.RunKind, run.Name)
	case v1alpha1.RunQueued, v1alpha1.RunPreempted:
		return f.abandoned(ctx, run)
	}
	return run.Status.Phase.Terminal(), nil
}

// abandoned ends the wait if nobody starts the work of a Run again. If Workloads cannot be read, nothing is known.
func (f *follower) abandoned(ctx context.Context, run *v1alpha1.Run) (bool, error) {
	made := []*v1alpha1.AppWrapperReference{run.Status.AppWrapper}
	for _, step := range run.Status.Steps {
		if !step.Ended() {
			made = append(made, step.AppWrapper)
		}
	}
	for _, aw := range made {
		if aw == nil {
			continue
		}
		key := client.ObjectKey{Namespace: run.Namespace, Name: aw.Name}
		if abandoned, err := submit.Abandoned(ctx, f.client, key, string(aw.UID)); err == nil && abandoned != nil {
			return true, fmt.Errorf("%s %s is stopped: %w", v1alpha1.RunKind, run.Name, abandoned)
		}
	}
	return false, nil
}

// say prints a phase unless it is the one printed last.
func (f *follower) say(phase, message string) {
	if phase == "" || phase == f.last {
		return
	}
	f.last = phase
	line := fmt.Sprintf("%s %s: %s", time.Now().Format(time.TimeOnly), f.key.Name, phase)
	if message != "" {
		line += ": " + message
	}
	f.out.Printf("%s", line)
}
