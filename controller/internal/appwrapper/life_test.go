// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/test/stories"
)

// life is a story that the real reconciler lives before an API server in memory, while
// everybody else is played.
type life struct {
	*testing.T
	story stories.Story
	now   time.Time
	api   *apiServer
	wire  *wire

	process  *process  // nil when none runs
	startsAt time.Time // when the next begins

	quota   bool // as Kueue sees it
	permits map[int]bool
	silent  map[string]bool // pods whose kubelet does not answer
	made    int             // pods made so far
	creates map[string]int  // components created so far
	told    announcements
	over    manner   // why the story has ended before its end, if it has
	places  []place  // where the story has come to, step by step
	moments []moment // when, by the clock and by what was written down
	calm    *life    // the same without trouble, nil in that itself
}

// live lives a story. Where a calm life tells what places it has to come to, it waits for
// them.
func live(t *testing.T, story stories.Story, w *wire, calm *life) *life {
	t.Helper()
	born := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	l := &life{
		T: t, story: story, now: born, startsAt: born, calm: calm,
		wire:    w,
		permits: map[int]bool{}, silent: map[string]bool{}, creates: map[string]int{}, told: announcements{},
	}
	l.wire.outrun = l.outrun
	clock := func() time.Time { return l.now }
	l.api = &apiServer{now: clock, refuse: l.refuse, heard: l.hear}
	builder := given.AppWrapper("a")
	for _, c := range story.Components {
		builder.With(componentOf(c))
	}
	aw := builder.Build()
	aw.Annotations = story.Annotations
	if err := l.api.Create(context.Background(), aw); err != nil {
		t.Fatal(err)
	}
	l.tell()
	for reason, times := range l.told {
		if calm != nil && l.over == "" && times > calm.told[reason] {
			l.broken(fmt.Sprintf("users are told once: of %s %d times, calmly %d", reason, times, calm.told[reason]))
		}
	}
	return l
}

// tell lets the story happen, and what is to happen when it is over before its end.
func (l *life) tell() {
	l.Helper()
	defer func() {
		reason := recover()
		if _, over := reason.(storyIsOver); over {
			l.endAsItMust()
		} else if reason != nil {
			panic(reason)
		}
	}()
	l.Settle()
	l.story.Live(l)
}

type storyIsOver struct{}

// outrun is somebody who is faster than the controller. Who only touches the AppWrapper
// writes what concerns nobody.
func (l *life) outrun(how manner) {
	switch how {
	case evicted:
		l.over = how
		l.Evict()
	case deleted:
		l.over = how
		l.Delete(false)
	default:
		if aw := l.api.theOne(); aw != nil {
			l.api.change(aw, func(o client.Object) { o.SetLabels(map[string]string{"touched": "true"}) })
		}
	}
}

// restingPlaces are the phases in which somebody who was evicted may stay.
var restingPlaces = []v1beta2.AppWrapperPhase{v1beta2.AppWrapperSuspended, v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperFailed}

// endAsItMust: an hour after an eviction or a deletion nothing is left, whatever was
// going on, but what has succeeded may be kept.
func (l *life) endAsItMust() {
	l.Helper()
	for i, c := range l.story.Components {
		if c.Held {
			l.Free(i)
		}
	}
	l.Pass(time.Hour)
	p := l.place()
	kept := l.over == evicted && p.Status.Phase == v1beta2.AppWrapperSucceeded
	if p.Quota || !kept && len(p.Components)+len(p.Pods) > 0 {
		l.broken(fmt.Sprintf("an hour after it was %s nothing is left; but there is %+v", l.over, p))
	}
	if l.over == evicted && !p.Gone && !slices.Contains(restingPlaces, p.Status.Phase) {
		l.broken(fmt.Sprintf("an hour after it was evicted the AppWrapper rests; it is %s", p.Status.Phase))
	}
	if l.over == deleted && !p.Gone {
		l.broken(fmt.Sprintf("an hour after it was deleted the AppWrapper is gone; it is %s", p.Status.Phase))
	}
}

// The clock, and what it wakes.
const (
	// delay is how long one trouble may delay a story: longer than the longest pause
	// between two attempts to create something, and shorter than any grace.
	delay = 20 * time.Second
	// downtime is how long nobody controls after a process has died.
	downtime = 2 * time.Second
	// manySteps are more than a step of a story ever needs.
	manySteps = 200
)

// react lets everybody react to each other until all rest. Caches lag behind, if they do,
// for as long as something else happens.
func (l *life) react() {
	l.Helper()
	for range manySteps {
		moved := l.others()
		moved = l.control() || moved
		if !moved && (l.process == nil || !l.process.catchUp(never)) {
			return
		}
	}
	l.broken("all come to rest")
}

// control is the controller's turn.
func (l *life) control() (moved bool) {
	if l.process == nil {
		if l.now.Before(l.startsAt) {
			return false
		}
		l.process, moved = startProcess(l.api, l.wire, l.told, l.story.MigrationLimit, func() time.Time { return l.now }), true
	}
	moved = l.process.catchUp(l.wire.lags) || moved
	moved = l.process.informers.begin(l.process.seen.objects) || moved
	if !l.process.queue.ready() {
		return moved
	}
	if died := l.process.reconcile(); died {
		l.process, l.startsAt = nil, l.now.Add(downtime)
	}
	return true
}

// next is when the controller wakes by itself.
func (l *life) next() (at time.Time, ever bool) {
	if l.process == nil {
		return l.startsAt, true
	}
	return l.process.queue.at, !l.process.queue.at.IsZero()
}

// Settle writes down where the story has come to or, where that is known from a calm
// life, waits until it has come there. A calm life waits for what is only polled for.
func (l *life) Settle() {
	l.Helper()
	l.react()
	for range manySteps {
		if at, ever := l.next(); l.calm == nil && ever && !at.After(l.now.Add(pollInterval)) {
			l.passTo(at)
		}
	}
	step, limit := len(l.places), l.now.Add(delay*time.Duration(max(1, len(l.wire.troubles))))
	for l.calm != nil && l.over == "" && !reflect.DeepEqual(l.place(), l.calm.places[step]) {
		at, ever := l.next()
		if !ever || at.After(limit) {
			l.broken(fmt.Sprintf("trouble leads nowhere else; after step %d (-calm +troubled)\n%s", step, cmp.Diff(l.calm.places[step], l.place())))
		}
		l.passTo(at)
	}
	if l.over != "" {
		panic(storyIsOver{})
	}
	l.places, l.moments = append(l.places, l.place()), append(l.moments, l.moment())
	if l.calm != nil {
		l.checkTimes(step)
	}
}

func (l *life) passTo(at time.Time) {
	l.Helper()
	if at.After(l.now) {
		l.now = at
	}
	l.react()
}

// Pass lets time go by; the controller looks again whenever it asked to.
func (l *life) Pass(d time.Duration) {
	l.Helper()
	until := l.now.Add(d)
	for at, ever := l.next(); ever && !at.After(until); at, ever = l.next() {
		l.passTo(at)
	}
	l.passTo(until)
}

// broken ends the life and says how to live it again.
func (l *life) broken(promise string) {
	l.Helper()
	l.Fatalf("broken: %s\nafter the calls:\n%s\nto live it again: %s", promise, l.wire, replay(l.Name()))
}
