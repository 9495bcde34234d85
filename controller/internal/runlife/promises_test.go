// SPDX-License-Identifier: Apache-2.0

package runlife_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
	"github.com/mlbatch/mlbatch/test/sameseed"
)

// check checks what must be true of every decision.
func (w *world) check(s runlife.Snapshot, d runlife.Decision) {
	was, is := s.Run.Status, d.Status
	writes := !equality.Semantic.DeepEqual(was, is)
	accepted := meta.IsStatusConditionTrue(was.Conditions, v1alpha1.Accepted)
	for _, promise := range []struct {
		sentence string
		kept     bool
	}{
		{"a decision is complete", !d.NeedsPods},
		{"terminal is terminal", !was.Phase.Terminal() || !writes},
		{"no AppWrapper without Accepted", d.Effect != runlife.Create || accepted},
		{"what was recorded is never made again", d.Effect != runlife.Create || was.AppWrapper == nil},
		{"a decision enters a phase or acts, never both", was.Phase == is.Phase || d.Effect == runlife.Nothing},
		{"an event is announced only when something has happened", len(d.Events) == 0 || writes},
		{"startTime is set once", was.StartTime == nil || was.StartTime.Equal(is.StartTime)},
		{"completionTime is there at the end, and only then", (is.CompletionTime != nil) == is.Phase.Terminal()},
		{"retries are never taken back", is.Retries >= was.Retries},
		{"only what the Run owns is deleted", d.Effect != runlife.Delete || runlife.Owns(s.Run, s.AppWrapper)},
		{"the AppWrapper is deleted only after the end", d.Effect != runlife.Delete || was.Phase.Terminal() || !s.Run.DeletionTimestamp.IsZero()},
		{"the Run is deleted only if it has a time to live", d.Effect != runlife.DeleteRun || s.Run.Spec.TTLSecondsAfterFinished != nil},
		{"a Run succeeds with its AppWrapper, or two minutes after its broker", is.Phase != v1alpha1.RunSucceeded || was.Phase.Terminal() ||
			s.AppWrapper.Status.Phase == v1beta2.AppWrapperSucceeded || !w.brokerEnded.IsZero() && !w.now.Before(w.brokerEnded.Add(2*time.Minute))},
		{"the counts of a queue are there only at the end", is.Queue == nil || is.Phase.Terminal()},
		{"the present generation was observed", was.Phase.Terminal() || is.ObservedGeneration == s.Run.Generation},
		{"deciding again decides the same", equality.Semantic.DeepEqual(d, runlife.Decide(s, w.now))},
	} {
		if !promise.kept {
			w.broken(promise.sentence + "\n(-was +is) " + cmp.Diff(was, is) + string(d.Effect))
		}
	}
}

// deeds are what others do, in a random walk.
var deeds = map[string]func(*world){
	"application comes": func(w *world) { w.applies(w.application()) },
	"application goes":  func(w *world) { w.applies(nil) },
	"no right":          refusing(runlife.NamespaceNotEnabled),
	"policy":            refusing(runlife.Refused),
	"right":             refusing(""),
	"suspended":         func(w *world) { w.moves(v1beta2.AppWrapperSuspended) },
	"resuming":          func(w *world) { w.moves(v1beta2.AppWrapperResuming) },
	"running":           func(w *world) { w.moves(v1beta2.AppWrapperRunning) },
	"ready":             (*world).ready,
	"pod fails":         (*world).podFails,
	"broker ends":       (*world).brokerEnds,
	"broker gives up":   (*world).brokerGivesUp,
	"resetting":         func(w *world) { w.moves(v1beta2.AppWrapperResetting) },
	"suspending":        func(w *world) { w.moves(v1beta2.AppWrapperSuspending) },
	"terminating":       func(w *world) { w.moves(v1beta2.AppWrapperTerminating) },
	"unknown":           func(w *world) { w.moves("Levitating") },
	"gone":              (*world).removes,
	"succeeded":         func(w *world) { w.moves(v1beta2.AppWrapperSucceeded) },
	"failed":            func(w *world) { w.moves(v1beta2.AppWrapperFailed) },
	"cancel":            (*world).cancels,
	"a minute":          func(w *world) { w.pass(time.Minute) },
	"an hour":           func(w *world) { w.pass(time.Hour) },
	"late":              func(w *world) { w.late = true },
	"up to date":        func(w *world) { w.late = false; w.settle() },
	"an hour back":      func(w *world) { w.jumps(-time.Hour) },
	"an hour ahead":     func(w *world) { w.jumps(time.Hour) },
	"time to live": func(w *world) {
		w.edits("ttl", func(s *v1alpha1.RunSpec) { s.TTLSecondsAfterFinished = ptr.To(int32(600)) })
	},
}

// refusing lets the API server answer in another way, and waits until that is noticed, because a
// new process asks sooner.
func refusing(reason string) func(*world) {
	return func(w *world) {
		w.refusal = reason
		w.pass(runlife.RefusalPause)
	}
}

func walk(t *rapid.T) []string {
	names := []string{"application comes", "right", "suspended", "resuming", "running", "ready"} // most walks get far
	for name := range deeds {
		names = append(names, name)
	}
	slices.Sort(names)
	return rapid.SliceOfN(rapid.SampledFrom(names), 1, 30).Draw(t, "deeds")
}

func TestMain(m *testing.M) { os.Exit(sameseed.Run(m)) }

func TestPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		deadline := rapid.SampledFrom([]int64{0, 30, 1800}).Draw(t, "deadline")
		queue := rapid.Bool().Draw(t, "queue")
		taken := rapid.IntRange(0, 9).Draw(t, "taken") == 0
		walk := walk(t)
		crashes := rapid.SliceOfN(rapid.Bool(), 200, 200).Draw(t, "crashes")
		calm, rough := newWorld(), newWorld()
		n := 0
		rough.died = func() bool {
			n++
			return crashes[n%len(crashes)] && n%7 != 0
		}
		for _, w := range []*world{calm, rough} {
			w.broken = func(promise string) { t.Fatalf("broken: %s", promise) }
			if queue {
				w.hasQueue()
			}
			if deadline > 0 {
				w.run.Spec.ActiveDeadlineSeconds = &deadline
			}
			if taken {
				w.aw = appWrapper("uid-of-another")
			}
			w.settle()
		}
		for _, deed := range walk {
			deeds[deed](calm)
			deeds[deed](rough)
			calm.settle()
			rough.settle()
			if diff := cmp.Diff(place(calm), place(rough)); diff != "" {
				t.Fatalf("broken: a crash after any save or effect changes nothing; after %q (-calm +rough)\n%s", deed, diff)
			}
		}
		if calm.made > 1 && calm.run != nil && calm.run.Status.AppWrapper == nil {
			t.Fatal("broken: one AppWrapper")
		}
	})
}

// place is what a crash must not change.
func place(w *world) any {
	type all struct {
		Status *v1alpha1.RunStatus
		AW     *v1beta2.AppWrapper
		Made   int
	}
	p := all{AW: w.aw, Made: w.made}
	if w.run != nil {
		p.Status = w.run.Status.DeepCopy()
		for i := range p.Status.Conditions { // a refusal that ends is noticed sooner
			p.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
	}
	return p
}

// A Run that waits once for something, and then is neither tried again nor preempted, costs at
// most six status writes.
func TestALifeCostsAtMostSixStatusWrites(t *testing.T) {
	w := newWorld()
	w.broken = func(promise string) { t.Errorf("broken: %s", promise) }
	w.settle()
	runs(w)
	w.moves(v1beta2.AppWrapperSucceeded)
	w.pass(24 * time.Hour)
	if w.writes > 6 || w.asked != 1 || w.lists != 0 {
		t.Errorf("%d status writes, %d requests for an AppWrapper, %d lists of pods", w.writes, w.asked, w.lists)
	}
	if w.run.Status.Phase != v1alpha1.RunSucceeded {
		t.Errorf("it is %s", w.run.Status.Phase)
	}
}

// While the API server's answer stays the same, nothing is written.
func TestARefusalIsWrittenOnce(t *testing.T) {
	w := newWorld()
	w.broken = func(promise string) { t.Errorf("broken: %s", promise) }
	w.refusal = runlife.Refused
	w.applies(w.application())
	writes, asked := w.writes, w.asked
	w.pass(time.Hour)
	if w.writes != writes {
		t.Errorf("%d writes for one refusal", w.writes-writes)
	}
	if got := w.asked - asked; got != 12 {
		t.Errorf("it asked %d times within an hour, not every five minutes", got)
	}
}

func TestDecidingChangesNoSnapshot(t *testing.T) {
	w := newWorld()
	runs(w)
	s := w.snapshot()
	copied := runlife.Snapshot{Run: s.Run.DeepCopy(), AppWrapper: s.AppWrapper.DeepCopy()}
	w.condition(s.AppWrapper, v1beta2.PodsReady, metav1.ConditionFalse, "X")
	w.condition(copied.AppWrapper, v1beta2.PodsReady, metav1.ConditionFalse, "X")
	runlife.Decide(s, w.now)
	if diff := cmp.Diff(copied, s); diff != "" {
		t.Error(diff)
	}
}

// An API server takes 1,024 bytes. What a Run gets may be longer.
func TestNoEventIsTooLong(t *testing.T) {
	w := newWorld()
	w.run.Spec.Resources = v1alpha1.Resources{}
	for i := range 8 {
		w.run.Spec.Resources[corev1.ResourceName(fmt.Sprintf("%s%d.example.com/gpu", strings.Repeat("a", 200), i))] = v1alpha1.MustParseAmount("1")
	}
	w.app = w.application()
	d := runlife.Decide(w.snapshot(), w.now)
	if len(d.Events) != 1 || len(d.Events[0].Message) > 1024 || !strings.HasPrefix(d.Events[0].Message, "1 worker of 1 cpu") {
		t.Errorf("the events are %v", d.Events)
	}
}
