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
const walks = "2000"

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
	rapid.Check(t, func(t *rapid.T) {
		policy, makeResources := drawLife(t)
		calm, rough := newWorld(policy, makeResources()...), newWorld(policy, makeResources()...)
		for _, w := range []*world{calm, rough} {
			w.broken = func(promise string) { t.Fatalf("broken: %s", promise) }
		}
		rough.crash = often(t, "crash")
		rough.stale = often(t, "stale")
		t.Repeat(eventsIn(calm, rough))
		for _, w := range []*world{calm, rough} {
			endsWhenDeleted(t, w)
		}
	})
}

func drawLife(t *rapid.T) (lifecycle.Policy, func() []*resource) {
	minutes := rapid.IntRange(0, 3)
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
	chosen := rapid.SliceOfN(rapid.SampledFrom([]string{"job", "pytorchjob", "custom", "service"}), 1, 3).Draw(t, "components")
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
		"":                          func(t *rapid.T) { inTheSamePlace(t, worlds[0], worlds[1]) },
		"Kueue admits":              simple((*world).admit),
		"Kueue admits again":        simple((*world).admit),
		"Kueue evicts":              simple((*world).evict),
		"Kueue evicts and admits":   simple(func(w *world) { w.evict(); w.admit() }),
		"pods start":                toOne((*world).starts),
		"a pod succeeds":            toOne(func(w *world, i int) { w.onePod(i, corev1.PodSucceeded) }),
		"a pod fails":               toOne(func(w *world, i int) { w.onePod(i, corev1.PodFailed, 1) }),
		"a pod fails for good":      toOne(func(w *world, i int) { w.onePod(i, corev1.PodFailed, 13) }),
		"a pod is lost":             toOne((*world).loses),
		"a component succeeds":      toOne(func(w *world, i int) { w.ends(i, kinds.Succeeded) }),
		"a component fails":         toOne(func(w *world, i int) { w.ends(i, kinds.Failed) }),
		"a component is removed":    toOne(vanishes),
		"a component is refused":    toOne(refuses(&lifecycle.Refusal{Message: "try later"})),
		"a component is impossible": toOne(refuses(&lifecycle.Refusal{Message: "never", Final: true})),
		"a component is possible":   toOne(refuses(nil)),
		"a node is lost":            toOne(func(w *world, i int) { w.sticks(i, true) }),
		"a node is back":            toOne(func(w *world, i int) { w.sticks(i, false) }),
		"seconds pass":              simple(func(w *world) { w.pass(7 * time.Second) }),
		"minutes pass":              simple(func(w *world) { w.pass(100 * time.Second) }),
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

func (w *world) sticks(i int, stuck bool) {
	for _, p := range w.pods {
		if p.Component == i {
			p.stuck = stuck
		}
	}
}

func vanishes(w *world, i int) {
	w.resources[i].exists, w.resources[i].terminating = false, false
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
	w.remove()
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
