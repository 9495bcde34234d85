// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// walks is how many random lives are lived; -rapid.checks on the command line wins.
const walks = "500"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", walks); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// TestPromises lives random lives. Each is lived twice: in a calm world, and in one
// where the controller crashes after saves and effects and reads from caches that lag
// behind. In both the promises that world checks must hold, after every event both
// must be in the same place, and a deletion must come to its end.
func TestPromises(t *testing.T) {
	lived := map[v1beta2.AppWrapperPhase]int{}
	rapid.Check(t, func(t *rapid.T) {
		policy, makeResources := drawLife(t)
		calm, rough := newWorld(policy, makeResources()...), newWorld(policy, makeResources()...)
		for _, w := range []*world{calm, rough} {
			w.broken = func(promise string) { t.Fatalf("broken: %s", promise) }
		}
		rough.crash = often(t, "crash")
		rough.stale = often(t, "stale")
		t.Repeat(eventsIn(calm, rough))
		for phase := range calm.lives {
			lived[phase]++
		}
		for _, w := range []*world{calm, rough} {
			endsWhenDeleted(t, w)
		}
	})
	expectLives(t, lived)
}

// expectLives makes sure that the walks go somewhere: every phase but the first is
// reached by at least one life in 250. Usually it is one in twenty or more.
func expectLives(t *testing.T, lived map[v1beta2.AppWrapperPhase]int) {
	t.Helper()
	phases := []v1beta2.AppWrapperPhase{
		v1beta2.AppWrapperSuspended, v1beta2.AppWrapperResuming, v1beta2.AppWrapperRunning, v1beta2.AppWrapperResetting,
		v1beta2.AppWrapperSuspending, v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperFailed, v1beta2.AppWrapperTerminating,
	}
	checks := flag.Lookup("rapid.checks").Value.(flag.Getter).Get().(int)
	t.Log(lived)
	for _, phase := range phases {
		if lived[phase] < checks/250 {
			t.Errorf("only %d of %d lives came to %s", lived[phase], checks, phase)
		}
	}
}

func drawLife(t *rapid.T) (lifecycle.Policy, func() []*resource) {
	minutes := rapid.SampledFrom([]int{1, 2, 3, 0})
	draw := func(what string) time.Duration { return time.Duration(minutes.Draw(t, what)) * time.Minute }
	policy := lifecycle.Policy{
		AdmissionGrace:        draw("admission grace"),
		FailureGrace:          draw("failure grace"),
		RetryPause:            draw("retry pause"),
		RetryLimit:            int32(rapid.IntRange(0, 2).Draw(t, "retry limit")),
		ForcefulDeletionGrace: draw("forceful deletion grace"),
		DeletionOnFailureHold: draw("hold"),
		SuccessTTL:            time.Minute + draw("success TTL"),
		TerminalExitCodes:     []int32{13},
	}
	policy.WarmupGrace = policy.AdmissionGrace + draw("warmup grace")
	chosen := rapid.SliceOfN(rapid.SampledFrom([]string{"job", "pytorchjob", "custom", "unlabelled", "service"}), 1, 3).Draw(t, "components")
	return policy, func() []*resource {
		resources := make([]*resource, len(chosen))
		for i, kind := range chosen {
			resources[i] = makeResource(kind, fmt.Sprintf("r%d", i))
		}
		return resources
	}
}

func makeResource(kind, name string) *resource {
	switch kind {
	case "job":
		r := job(name, 2)
		r.replaces = true
		return r
	case "pytorchjob":
		return pyTorchJob(name, 2)
	case "custom":
		return custom(name, 2)
	case "unlabelled":
		r := custom(name, 2)
		r.unlabelled = true
		return r
	}
	return service(name)
}

// often is true now and then.
func often(t *rapid.T, what string) func() bool {
	pattern := rapid.SliceOfN(rapid.IntRange(0, 2), 1, 20).Draw(t, what)
	next := 0
	return func() bool {
		next++
		return pattern[next%len(pattern)] == 0
	}
}

// eventsIn are the things that may happen, each in all worlds. The empty key is
// checked after each of them.
func eventsIn(worlds ...*world) map[string]func(*rapid.T) {
	anyone := rapid.IntRange(0, len(worlds[0].resources)-1)
	simple := func(happens func(*world)) func(*rapid.T) {
		return func(*rapid.T) { inAll(worlds, happens) }
	}
	toOne := func(happens func(w *world, i int)) func(*rapid.T) {
		return func(t *rapid.T) {
			i := anyone.Draw(t, "component")
			inAll(worlds, func(w *world) { happens(w, i) })
		}
	}
	return map[string]func(*rapid.T){
		"":                          func(t *rapid.T) { inTheSamePlace(t, worlds[0], worlds[len(worlds)-1]) },
		"Kueue admits":              simple((*world).admit),
		"Kueue admits again":        simple((*world).admit),
		"Kueue evicts":              simple((*world).evict),
		"Kueue evicts and admits":   simple(func(w *world) { w.evict(); w.admit() }),
		"pods start":                toOne((*world).starts),
		"all pods start":            simple((*world).allStart),
		"a pod succeeds":            toOne(func(w *world, i int) { w.onePod(i, corev1.PodSucceeded) }),
		"a pod fails":               toOne(func(w *world, i int) { w.onePod(i, corev1.PodFailed, 1) }),
		"a pod fails for good":      toOne(func(w *world, i int) { w.onePod(i, corev1.PodFailed, 13) }),
		"a pod is lost":             toOne((*world).loses),
		"a component succeeds":      toOne(func(w *world, i int) { w.ends(i, kinds.Succeeded) }),
		"all work succeeds again":   simple((*world).succeeds),
		"all work succeeds":         simple((*world).succeeds),
		"a component fails":         toOne(func(w *world, i int) { w.ends(i, kinds.Failed) }),
		"a component is removed":    toOne(vanishes),
		"a component is refused":    toOne(refuses(&lifecycle.Refusal{Message: "try later"})),
		"a component is impossible": toOne(refuses(&lifecycle.Refusal{Message: "never", Final: true})),
		"a component is possible":   toOne(refuses(nil)),
		"a component is held":       toOne(func(w *world, i int) { w.resources[i].stubborn = true }),
		"a component is let go":     toOne(func(w *world, i int) { w.resources[i].stubborn = false }),
		"a user deletes it":         seldom(func() { inAll(worlds, (*world).remove) }),
		"a node is lost":            toOne(func(w *world, i int) { w.sticks(i, true) }),
		"a node is back":            toOne(func(w *world, i int) { w.sticks(i, false) }),
		"seconds pass":              simple(func(w *world) { w.pass(7 * time.Second) }),
		"minutes pass":              simple(func(w *world) { w.pass(100 * time.Second) }),
	}
}

// seldom spares most lives an early end.
func seldom(happens func()) func(*rapid.T) {
	return func(t *rapid.T) {
		if rapid.IntRange(0, 5).Draw(t, "die") == 0 {
			happens()
		}
	}
}

func inAll(worlds []*world, happens func(*world)) {
	for _, w := range worlds {
		happens(w)
		w.settle()
	}
}

// ends makes a component report its end, if it is of a kind that does.
func (w *world) ends(i int, verdict kinds.Verdict) {
	if r := w.resources[i]; r.exists && r.reportsEnd && !r.terminating && r.verdict == kinds.Unknown {
		r.verdict = verdict
	}
}

// succeeds is a good end of all that is deployed.
func (w *world) succeeds() {
	w.allStart()
	for i, r := range w.resources {
		w.ends(i, kinds.Succeeded)
		if !r.reportsEnd {
			w.phase(i, corev1.PodRunning, corev1.PodSucceeded)
		}
	}
}

func (w *world) allStart() {
	for i := range w.resources {
		w.starts(i)
	}
}

func (w *world) sticks(i int, stuck bool) {
	for _, p := range w.pods {
		if p.Component == i {
			p.stuck = stuck
		}
	}
}

func vanishes(w *world, i int) {
	w.removed = w.removed || w.resources[i].exists
	w.resources[i].exists, w.resources[i].terminating = false, false
	if w.shell != nil && !w.resources[i].reportsEnd {
		w.shell.woken = true // a known gap: nobody hears of what is not watched
	}
}

func refuses(refusal *lifecycle.Refusal) func(*world, int) {
	return func(w *world, i int) { w.resources[i].refusal = refusal }
}

// place is what two worlds must agree on.
type place struct {
	Suspend, Guarded, Gone, Quota bool
	Status                        v1beta2.AppWrapperStatus
	Resources                     []string
	Pods                          []string
	Wake                          time.Time
}

func (w *world) place() place {
	p := place{Suspend: w.suspend, Guarded: w.guarded, Gone: w.gone, Quota: w.quota, Status: w.status, Wake: w.wake}
	for _, r := range w.resources {
		p.Resources = append(p.Resources, fmt.Sprintf("%s exists=%t terminating=%t verdict=%s", r.name, r.exists, r.terminating, r.verdict))
	}
	for _, pod := range w.pods {
		p.Pods = append(p.Pods, fmt.Sprintf("of %d %s terminating=%t", pod.Component, pod.Phase, pod.Terminating))
	}
	return p
}

func inTheSamePlace(t *rapid.T, calm, rough *world) {
	here, there := calm.place(), rough.place()
	if !reflect.DeepEqual(here, there) {
		t.Fatalf("crashes lead to another place (-calm +rough):\n%s", cmp.Diff(here, there))
	}
}

func endsWhenDeleted(t *rapid.T, w *world) {
	for _, r := range w.resources {
		r.stubborn = false
	}
	w.remove()
	w.settle()
	w.pass(time.Hour)
	if !w.gone {
		t.Fatalf("an hour after its deletion the AppWrapper is still %s", w.status.Phase)
	}
	for _, r := range w.resources {
		if r.exists {
			t.Fatalf("the deleted AppWrapper left %s behind", r.name)
		}
	}
	if len(w.pods) > 0 {
		t.Fatalf("the deleted AppWrapper left %d pods behind", len(w.pods))
	}
}
