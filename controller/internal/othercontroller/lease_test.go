// SPDX-License-Identifier: Apache-2.0

package othercontroller

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

const id = "f134c674.codeflare.dev"

// The holder's clock sets the renew time, and may differ from ours. The second look is 20
// seconds after the first, and a Lease lasts 15 seconds.
func TestWhoHoldsALease(t *testing.T) {
	start := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	lease := func(namespace, holder string, renewed time.Duration) coordinationv1.Lease {
		return coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: id},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: start.Add(renewed)},
			},
		}
	}
	waiting := lease("appwrapper-system", "ours_1", 0)
	waiting.Annotations = map[string]string{waits: "ours_1"}
	restarted := lease("appwrapper-system", "old_1", 0)
	restarted.Annotations = map[string]string{waits: "ours_1"}
	const other = "old_1, which holds the Lease " + id + " in namespace appwrapper-system"
	const within = "us, which holds the Lease " + id + " in namespace own"
	type look = []coordinationv1.Lease
	for name, tc := range map[string]struct {
		alone         bool // we elect no leader
		first, second look
		want          [2]string
	}{
		"nobody":                         {alone: true},
		"we ourselves":                   {first: look{lease("own", "us", 0)}, second: look{lease("own", "us", 20*time.Second)}},
		"one beside us, who elect none":  {true, look{lease("own", "us", 0)}, look{lease("own", "us", 20*time.Second)}, [2]string{within, within}},
		"one that goes on":               {true, look{lease("appwrapper-system", "old_1", 0)}, look{lease("appwrapper-system", "old_1", 18*time.Second)}, [2]string{other, other}},
		"one whose clock is behind ours": {true, look{lease("appwrapper-system", "old_1", -time.Minute)}, look{lease("appwrapper-system", "old_1", -40*time.Second)}, [2]string{other, other}},
		"one that has been killed":       {true, look{lease("appwrapper-system", "old_1", 0)}, look{lease("appwrapper-system", "old_1", 0)}, [2]string{other, ""}},
		"one that has given it back":     {true, look{lease("appwrapper-system", "old_1", 0)}, look{lease("appwrapper-system", "", time.Second)}, [2]string{other, ""}},
		"one that was removed":           {true, look{lease("appwrapper-system", "old_1", 0)}, nil, [2]string{other, ""}},
		"one that ended last week":       {alone: true, first: look{lease("appwrapper-system", "old_1", -7*24*time.Hour)}},
		"one that never renewed it":      {alone: true, first: look{{ObjectMeta: metav1.ObjectMeta{Namespace: "appwrapper-system", Name: id}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("old_1")}}}},
		"one of ours that waits":         {alone: true, first: look{waiting}},
		"one after one of ours":          {alone: true, first: look{restarted}, want: [2]string{other, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			now := start
			l := &leases{own: "own", elects: !tc.alone, now: func() time.Time { return now }, seen: map[types.NamespacedName]sighting{}}
			for i, look := range []look{tc.first, tc.second} {
				now = start.Add(time.Duration(i) * 20 * time.Second)
				l.list = func(context.Context) ([]coordinationv1.Lease, error) { return look, nil }
				if got, err := l.look(t.Context()); err != nil || got.other() != tc.want[i] {
					t.Errorf("look %d: %q, %v; want %q", i+1, got.other(), err, tc.want[i])
				}
			}
		})
	}
}

func TestAForgedLeaseHoldsNobodyUpForLong(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	forged := coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: id},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("mallory"), LeaseDurationSeconds: ptr.To[int32](math.MaxInt32),
			RenewTime: &metav1.MicroTime{Time: now.AddDate(100, 0, 0)},
		},
	}
	l := &leases{own: "own", now: func() time.Time { return now }, seen: map[types.NamespacedName]sighting{}}
	l.list = func(context.Context) ([]coordinationv1.Lease, error) { return []coordinationv1.Lease{forged}, nil }
	for _, other := range []string{"mallory, which holds the Lease " + id + " in namespace blue", ""} {
		if got, err := l.look(t.Context()); err != nil || got.other() != other {
			t.Errorf("at %v: %q, %v; want %q", now, got.other(), err, other)
		}
		now = now.Add(longestLease + time.Second)
	}
}

// The test also draws what one controller does while another is in the middle of a look.
func TestOfOursInManyNamespacesOneWorks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &rivals{t: t, now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), all: map[string]*rival{}}
		for _, namespace := range []string{"a", "b", "c"} {
			w.all[namespace] = &rival{}
		}
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			w.step()
		}
		w.calm = true
		for namespace, r := range w.all {
			if r.process == nil {
				w.start(namespace)
			}
		}
		for range 6 {
			for namespace, r := range w.all {
				w.look(namespace, r.process)
			}
		}
		if got := w.atWork(); len(got) != 1 {
			t.Errorf("three run, and %q do the work", got)
		}
	})
}

// rivals are controllers of ours, one in each namespace.
type rivals struct {
	t    *rapid.T
	now  time.Time
	all  map[string]*rival
	runs int
	// busy is how many looks are in progress. calm means that nothing interrupts them.
	busy int
	calm bool
}

type rival struct {
	// lease outlives the process that holds it.
	lease   *coordinationv1.Lease
	process *process
}

type process struct {
	signs signs
	works bool
	looks bool
}

var errEnded = errors.New("the process has ended")

// step starts, stops or runs one controller. Time passes, and running controllers renew their
// Leases.
func (w *rivals) step() {
	namespace := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.t, "who")
	r := w.all[namespace]
	switch {
	case r.process == nil:
		w.start(namespace)
	case rapid.IntRange(0, 7).Draw(w.t, "ends") == 0:
		r.process, r.lease.Spec.HolderIdentity = nil, ptr.To("")
	default:
		w.look(namespace, r.process)
	}
}

func (w *rivals) start(namespace string) {
	w.runs++
	r := w.all[namespace]
	if r.lease == nil {
		r.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: id}}
	}
	r.lease.Spec.HolderIdentity = ptr.To(fmt.Sprintf("%s_%d", namespace, w.runs))
	p := &process{}
	p.signs = signs{
		&leases{
			list: func(context.Context) ([]coordinationv1.Lease, error) { return w.list(r, p) }, own: namespace, elects: true,
			annotate: func(_ context.Context, _ *coordinationv1.Lease, holder *string) error {
				return w.annotate(r, p, holder)
			},
			now: func() time.Time { return w.now }, seen: map[types.NamespacedName]sighting{},
		},
		&webhooks{list: noConfigurations, now: func() time.Time { return w.now }},
	}
	r.process = p
}

// look starts the controller's work if it sees no other controller.
func (w *rivals) look(namespace string, p *process) {
	if p.works || p.looks {
		return
	}
	w.busy++
	p.looks = true
	who, err := p.signs.other(w.t.Context())
	p.looks = false
	w.busy--
	if w.all[namespace].process != p || who != "" {
		return
	}
	if err != nil {
		w.t.Fatal(err)
	}
	p.works = true
	if got := w.atWork(); len(got) > 1 {
		w.t.Fatalf("%q do the work", got)
	}
}

func (w *rivals) atWork() []string {
	var all []string
	for namespace, r := range w.all {
		if r.process != nil && r.process.works {
			all = append(all, namespace)
		}
	}
	slices.Sort(all)
	return all
}

func (w *rivals) interrupt() {
	for !w.calm && w.busy < 4 && rapid.Bool().Draw(w.t, "in the middle") {
		w.step()
	}
}

func (w *rivals) list(r *rival, p *process) ([]coordinationv1.Lease, error) {
	w.interrupt()
	if r.process != p {
		return nil, errEnded
	}
	w.now = w.now.Add(time.Second)
	var all []coordinationv1.Lease
	for _, r := range w.all {
		if r.lease != nil {
			r.lease.Spec.RenewTime = &metav1.MicroTime{Time: w.now}
			all = append(all, *r.lease.DeepCopy())
		}
	}
	w.interrupt()
	return all, nil
}

func (w *rivals) annotate(r *rival, p *process, holder *string) error {
	w.interrupt()
	if r.process != p {
		return errEnded
	}
	r.lease.Annotations = map[string]string{waits: ptr.Deref(holder, "")}
	w.interrupt()
	return nil
}

// Otherwise all controllers might give up their claims at the same time, again and again.
func TestTheFirstByNameKeepsItsClaim(t *testing.T) {
	for own, gives := range map[string]bool{"a": false, "c": true} {
		t.Run(own, func(t *testing.T) {
			lease := func(namespace string) coordinationv1.Lease {
				return coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: id},
					Spec:       coordinationv1.LeaseSpec{HolderIdentity: &namespace, RenewTime: ptr.To(metav1.NowMicro())},
				}
			}
			waiting := false
			l := &leases{
				own: own, elects: true, now: time.Now, seen: map[types.NamespacedName]sighting{},
				list: func(context.Context) ([]coordinationv1.Lease, error) {
					return []coordinationv1.Lease{lease("b"), lease(own)}, nil
				},
				annotate: func(_ context.Context, _ *coordinationv1.Lease, holder *string) error {
					waiting = *holder == own
					return nil
				},
			}
			who, err := signs{l, &webhooks{list: noConfigurations, now: time.Now}}.other(t.Context())
			if err != nil || who == "" || waiting != gives {
				t.Errorf("other %q, %v; it gives up its claim: %t", who, err, waiting)
			}
		})
	}
}

func TestWithoutItsLeaseNobodyBegins(t *testing.T) {
	l := &leases{own: "own", elects: true}
	if _, err := l.giveWay(t.Context(), view{}, false); err == nil {
		t.Error("it would start although others cannot see it")
	}
}
