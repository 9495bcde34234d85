// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// Pace is how often is looked again. A look costs as many requests as Explain.
type Pace struct {
	// Least is the pause between two looks, however much changes.
	Least time.Duration
	// Most is the pause if no watch tells of a change. Queues and events are not watched.
	Most time.Duration
}

// Usual is the pace for people.
func Usual() Pace { return Pace{Least: 2 * time.Second, Most: 30 * time.Second} }

// Screen is where Watch shows what it has found.
type Screen struct {
	// Show is called with each explanation that says something new.
	Show func(explain.Explanation, time.Time) error
	// Unsure is called if the cluster cannot be asked for a while.
	Unsure func(error)
}

// Watch shows the explanation, and again whenever its state or its causes change, until the work has ended or the
// context is canceled, which are no errors. Numbers and evidence alone are no change.
func Watch(ctx context.Context, c client.WithWatch, target Target, pace Pace, screen Screen) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := watcher{client: c, target: target, screen: screen, bells: newBells(c)}
	for {
		if done, err := w.look(ctx); done || ctx.Err() != nil {
			return err
		}
		w.bells.wait(ctx, pace)
	}
}

type watcher struct {
	client client.Client
	target Target
	screen Screen
	bells  *bells
	// shown is what was shown last, and failed the last error.
	shown, failed string
}

// look looks once, and tells whether there is nothing more to see.
func (w *watcher) look(ctx context.Context) (done bool, err error) {
	objects, err := ReadAll(ctx, w.client, w.target, time.Now())
	if ctx.Err() != nil {
		return true, nil
	}
	if err != nil {
		return w.fail(err)
	}
	w.failed, w.target = "", w.target.found(objects)
	if !objects.Ended() {
		w.bells.hang(ctx, w.target.Namespace, objects)
	}
	if e := explain.Explain(objects); keyOf(e) != w.shown {
		w.shown = keyOf(e)
		err = w.screen.Show(e, objects.Now)
	}
	return err != nil || objects.Ended(), err
}

// fail ends the watch if it has not begun, or if the error does not go away by itself.
func (w *watcher) fail(err error) (done bool, told error) {
	none := NotFoundError{}
	switch found := errors.As(err, &none); {
	case w.shown == "":
		return true, err
	case found:
		return true, fmt.Errorf("%s was deleted in namespace %s", none.Target.Name, none.Target.Namespace)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return true, err
	case err.Error() != w.failed:
		w.failed = err.Error()
		w.screen.Unsure(err)
	}
	return false, nil
}

// found is a target whose kind is known, so that later looks ask for nothing else. A bare job may be known by its
// Workload alone.
func (t Target) found(o explain.Objects) Target {
	switch {
	case o.Run != nil:
		t.Kind = "run"
	case o.AppWrapper != nil:
		t.Kind, t.Name = "appwrapper", o.AppWrapper.Name
	}
	return t
}

// keyOf is the same for two explanations that say the same, but for numbers.
func keyOf(e explain.Explanation) string {
	key := e.State
	for _, c := range e.Causes {
		key += " " + string(c.Code)
	}
	return key
}
