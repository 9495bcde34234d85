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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/quotareason"
	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/test/stories"
	"github.com/mlbatch/mlbatch/test/troubles"
)

// life runs a story with the real reconciler and an API server in memory. It plays everything
// else.
type life struct {
	*testing.T
	story stories.Story
	now   time.Time
	api   *apiServer
	wire  *troubles.Wire

	process  *process  // nil while none runs
	startsAt time.Time // when the next one starts
	// standby is what the replica hears that waits to be the leader.
	standby *Heard

	waits    quotareason.Reason
	quota    bool      // according to Kueue
	reserved time.Time // since when
	// claims is how often the AppWrapper has claimed quota, and claimed for how long Kueue has reserved
	// it until it was given back.
	claims  int
	claimed time.Duration

	permits map[int]bool
	silent  map[string]bool // pods whose kubelet does not respond
	rests   map[string]bool // pods that do not use their devices
	blind   bool            // nobody says so
	late    bool            // another process creates something just now
	strays  map[types.UID]bool
	made    int            // pods created so far
	creates map[string]int // components created so far
	told    announcements
	over    troubles.Manner // why the story ended early, if it did
	places  []place         // the place after each step
	moments []moment        // the time of each step, by the clock and in the status
	calm    *life           // the same story without trouble; nil in that life itself
}

// live runs a story. With a calm life, it waits after each step until the story reaches the
// same place.
func live(t *testing.T, story stories.Story, w *troubles.Wire, calm *life) *life {
	t.Helper()
	born := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	l := &life{
		T: t, story: story, now: born, startsAt: born, calm: calm,
		wire:    w,
		permits: map[int]bool{}, silent: map[string]bool{}, rests: map[string]bool{}, creates: map[string]int{}, told: announcements{}, strays: map[types.UID]bool{},
	}
	l.wire.Outrun = l.outrun
	clock := func() time.Time { return l.now }
	l.standby = newHeard(clock)
	l.api = &apiServer{now: clock, refuse: l.refuse, heard: l.hear}
	builder := given.AppWrapper("a")
	for _, c := range story.Components {
		builder.With(componentOf(c))
	}
	if story.AtOnce {
		builder.Unsuspended()
		l.quota, l.reserved = true, l.now
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

// tell runs the story. If the story is over early, it checks that it ends as it must.
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

// outrun plays another client that is faster than the controller. By default it only changes
// labels, which nobody reads.
func (l *life) outrun(how troubles.Manner) {
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

// restingPlaces are the phases in which an evicted AppWrapper may stay.
var restingPlaces = []v1beta2.AppWrapperPhase{v1beta2.AppWrapperSuspended, v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperFailed}

// endAsItMust checks that an hour after an eviction or a deletion nothing is left, except that
// a succeeded AppWrapper may be kept.
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

// Times and limits of a life.
const (
	// delay is how long one trouble may delay a story: longer than the longest pause between
	// two attempts to create something, and shorter than any grace period.
	delay = 20 * time.Second
	// downtime is how long no controller runs after a process has died.
	downtime = 2 * time.Second
	// manySteps is more than any step of a story needs.
	manySteps = 200
)

// react lets everyone react until nothing changes. Stale caches, if any, catch up only when
// nothing else happens.
func (l *life) react() {
	l.Helper()
	for range manySteps {
		moved := l.others()
		moved = l.control() || moved
		if !moved && (l.process == nil || !l.process.catchUp(troubles.Never)) {
			return
		}
	}
	l.broken("all come to rest")
}

// control gives the controller its turn.
func (l *life) control() (moved bool) {
	if l.process == nil {
		if l.now.Before(l.startsAt) {
			return false
		}
		l.process, moved = startProcess(l.api, l.wire, l.told, l.standby, l.story.MigrationLimit, func() time.Time { return l.now }), true
		l.process.reconciler.waits = func(context.Context, types.UID) (quotareason.Reason, error) { return l.waits, nil }
		l.process.reconciler.giveBack = func(context.Context, types.UID, string) error { l.Evict(); return nil }
		l.process.reconciler.reassign = func(context.Context, types.UID, []v1beta2.AvoidedNode) error { l.Evict(); return nil }
		l.process.reconciler.reserved = func(context.Context, types.UID) (time.Time, error) { return l.reserved, nil }
	}
	moved = l.process.catchUp(l.wire.Lags) || moved
	moved = l.process.informers.begin(l.process.seen.objects) || moved
	if !l.process.queue.ready() {
		return moved
	}
	if died := l.process.reconcile(); died {
		l.process, l.startsAt = nil, l.now.Add(downtime)
	}
	return true
}

// next returns when the controller will wake by itself.
func (l *life) next() (at time.Time, ever bool) {
	if l.process == nil {
		return l.startsAt, true
	}
	return l.process.queue.at, !l.process.queue.at.IsZero()
}

// Settle records the place that the story has reached. With a calm life, it waits until the
// story reaches the same place. Without one, it waits for what is only polled; but not until work has waited long
// enough for a dry run, unless the story says so.
func (l *life) Settle() {
	l.Helper()
	l.react()
	for range manySteps {
		if at, ever := l.next(); l.calm == nil && ever && !at.After(l.now.Add(pollInterval)) && !l.isSuspended() {
			l.passTo(at)
		}
	}
	step, limit := len(l.places), l.now.Add(delay*time.Duration(max(1, len(l.wire.Troubles))))
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

func (l *life) isSuspended() bool {
	aw := l.api.theOne()
	return aw != nil && aw.Status.Phase == v1beta2.AppWrapperSuspended
}

func (l *life) passTo(at time.Time) {
	l.Helper()
	if at.After(l.now) {
		l.now = at
	}
	l.react()
}

// Pass lets time pass. The controller reconciles whenever it has asked to.
func (l *life) Pass(d time.Duration) {
	l.Helper()
	until := l.now.Add(d)
	for at, ever := l.next(); ever && !at.After(until); at, ever = l.next() {
		l.passTo(at)
	}
	l.passTo(until)
}

// broken fails the test and prints how to repeat it.
func (l *life) broken(promise string) {
	l.Helper()
	l.Fatalf("broken: %s\nafter the calls:\n%s\nto live it again: %s", promise, l.wire, replay(l.Name()))
}
