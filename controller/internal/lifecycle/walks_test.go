// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/quotareason"
	"github.com/mlbatch/mlbatch/test/sameseed"
)

// walks is how many random walks a test takes, unless -rapid.checks says otherwise. A walk is
// one life of an AppWrapper. One that fails is printed with the flag that repeats it.
const walks = "2000"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", walks); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := sameseed.Run(m)
	if missing := untakenSteps(); code == 0 && everythingRan() && len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "no row, story or walk takes this way (see ways): %v\n", missing)
		code = 1
	}
	os.Exit(code)
}

// everythingRan reports whether no test was skipped or filtered.
func everythingRan() bool {
	for _, filter := range []string{"test.run", "test.skip", "test.list", "test.bench", "test.fuzz"} {
		if flag.Lookup(filter).Value.String() != "" {
			return false
		}
	}
	return true
}

// TestPromises takes each random walk twice: in a calm world, and in a rough one where the
// controller crashes after saves and effects and reads stale caches. After every event both
// must be in the same place.
func TestPromises(t *testing.T) {
	t.Parallel()
	sum := tally{}
	rapid.Check(t, func(t *rapid.T) {
		policy, makeResources := drawLife(t)
		calm, rough := newWorld(policy, makeResources()...), newWorld(policy, makeResources()...)
		atOnce, guarded := drawBeginning(t)
		for _, w := range []*world{calm, rough} {
			begin(w, atOnce, guarded)
			w.broken = func(promise string) { t.Fatalf("broken: %s", promise) }
		}
		rough.crash = often(t, "crash")
		rough.stale = often(t, "stale")
		t.Repeat(eventsIn(calm, rough))
		sum.count(calm)
		for _, w := range []*world{calm, rough} {
			bringToAnEnd(w)
			sum.add(w)
		}
	})
	sum.expect(t, idles)
}

// TestPromisesOfTheShell takes random walks behind a shell. It compares nothing, because a
// controller that was down may be late.
func TestPromisesOfTheShell(t *testing.T) {
	t.Parallel()
	sum := tally{}
	rapid.Check(t, func(t *rapid.T) {
		policy, makeResources := drawLife(t)
		w := newWorld(policy, makeResources()...)
		atOnce, guarded := drawBeginning(t)
		begin(w, atOnce, guarded)
		w.broken = func(promise string) { t.Fatalf("broken: %s", promise) }
		downtime := rapid.IntRange(0, 300)
		newShell(w, often(t, "crash"), often(t, "lag"), func() time.Duration {
			return time.Duration(max(0, downtime.Draw(t, "downtime")-100)) * time.Second
		})
		t.Repeat(eventsIn(w))
		sum.count(w)
		bringToAnEnd(w)
		sum.add(w)
	})
	sum.expect(t, compares)
}

// long is more than all timers of a policy together, and the longest downtime.
const long = 20 * time.Minute

// bringToAnEnd lets Kueue take the quota back, and then deletes everything.
func bringToAnEnd(w *world) {
	for _, r := range w.resources {
		r.stubborn = false
	}
	w.evict()
	w.pass(long)
	w.witness(recalls, moment{})
	w.remove()
	w.settle()
	w.pass(long)
	w.witness(farewells, moment{})
}

// phases are all phases but the first.
var phases = []v1beta2.AppWrapperPhase{
	v1beta2.AppWrapperSuspended, v1beta2.AppWrapperResuming, v1beta2.AppWrapperRunning, v1beta2.AppWrapperResetting,
	v1beta2.AppWrapperSuspending, v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperFailed, v1beta2.AppWrapperTerminating,
}

// tally counts what the walks of a test reached.
type tally struct {
	walks   int
	visited map[v1beta2.AppWrapperPhase]int
	tested  map[string]int
}

// count adds the phases that a walk visited.
func (s *tally) count(w *world) {
	if s.visited == nil {
		s.visited, s.tested = map[v1beta2.AppWrapperPhase]int{}, map[string]int{}
	}
	s.walks++
	for phase := range w.visited {
		s.visited[phase]++
	}
}

func (s *tally) add(w *world) {
	for sentence, n := range w.tested {
		s.tested[sentence] += n
	}
}

// expect makes sure that the walks lead everywhere: at least one in 250 reaches each phase but
// the first (usually one in twenty or more), and each promise is checked, except on an
// occasion that the test does not have.
func (s *tally) expect(t *testing.T, except occasion) {
	t.Helper()
	t.Logf("%d walks came to %v", s.walks, s.visited)
	for _, phase := range phases {
		if s.visited[phase] < s.walks/250 {
			t.Errorf("only %d of %d walks reached %s", s.visited[phase], s.walks, phase)
		}
	}
	for i, p := range promises {
		t.Logf("%2d. %8d times: %s", i+1, s.tested[p.sentence], p.sentence)
		if s.tested[p.sentence] < s.walks/250 && p.on != except {
			t.Errorf("%d walks checked a promise only %d times: %s", s.walks, s.tested[p.sentence], p.sentence)
		}
	}
}

func drawLife(t *rapid.T) (lifecycle.Policy, func() []*resource) {
	minutes := rapid.SampledFrom([]int{1, 2, 3, 0})
	draw := func(what string) time.Duration { return time.Duration(minutes.Draw(t, what)) * time.Minute }
	policy := lifecycle.Policy{
		AdmissionGrace:        draw("admission grace"),
		SurplusGrace:          draw("surplus grace"),
		ResetSurplus:          rapid.IntRange(0, 3).Draw(t, "spare surplus") != 1,
		FailureGrace:          draw("failure grace"),
		RetryPause:            draw("retry pause"),
		RetryLimit:            int32(rapid.IntRange(0, 2).Draw(t, "retry limit")),
		MigrationLimit:        int32(rapid.IntRange(0, 2).Draw(t, "migration limit")),
		ForcefulDeletionGrace: draw("forceful deletion grace"),
		KeptGrace:             2 * time.Minute, // sometimes less than the others
		DeletionOnFailureHold: draw("hold"),
		SuccessTTL:            time.Minute + draw("success TTL"),
		TerminalExitCodes:     []int32{13},
		NoProgressGrace:       draw("no-progress grace"),
		IdleGrace:             2 * draw("idle grace"),
		LastCheckpoint:        born.Add(4 * draw("checkpoint")),
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

// drawBeginning tells whether an AppWrapper need not wait for quota, and whether others guard it, too.
func drawBeginning(t *rapid.T) (atOnce, guarded bool) {
	return rapid.IntRange(0, 4).Draw(t, "at once") == 1, rapid.IntRange(0, 4).Draw(t, "guarded") == 1
}

func begin(w *world, atOnce, guarded bool) {
	w.guarded = guarded
	if atOnce {
		w.atOnce()
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

// often returns true from time to time.
func often(t *rapid.T, what string) func() bool {
	pattern := rapid.SliceOfN(rapid.IntRange(0, 2), 1, 20).Draw(t, what)
	next := 0
	return func() bool {
		next++
		return pattern[next%len(pattern)] == 0
	}
}

// eventsIn has the events that may happen, each in all worlds. rapid runs the empty key after
// each of them, as a check.
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
		"":                          func(*rapid.T) { areInTheSamePlace(worlds) },
		"Kueue admits":              simple((*world).admit),
		"Kueue admits again":        simple((*world).admit),
		"Kueue evicts":              simple((*world).evict),
		"Kueue says why it waits":   simple(func(w *world) { w.Wait(quotareason.WaitingForQuota) }),
		"Kueue says something else": simple(func(w *world) { w.Wait(quotareason.Preempted) }),
		"Kueue evicts and admits":   simple(func(w *world) { w.evict(); w.admit() }),
		"pods start":                toOne((*world).starts),
		"all pods start":            simple((*world).allStart),
		"a pod succeeds":            toOne(func(w *world, i int) { w.onePod(i, corev1.PodSucceeded) }),
		"a wave of pods ends":       toOne(func(w *world, i int) { w.phase(i, corev1.PodRunning, corev1.PodSucceeded) }),
		"a pod fails":               toOne(func(w *world, i int) { w.onePod(i, corev1.PodFailed, 1) }),
		"a pod fails for good":      toOne(func(w *world, i int) { w.onePod(i, corev1.PodFailed, 13) }),
		"a pod is lost":             toOne((*world).loses),
		"a pod hangs":               toOne((*world).hangs),
		"a pod hangs for long":      toOne(func(w *world, i int) { w.allStart(); w.hangs(i); w.pass(200 * time.Second) }),
		"all pods go on":            simple(func(w *world) { w.GoOn(); w.settle() }),
		"all pods are idle":         simple(func(w *world) { w.allStart(); w.allIdle() }),
		"all are idle for long":     simple(func(w *world) { w.allStart(); w.allIdle(); w.pass(100 * time.Second); w.pass(100 * time.Second) }),
		"some pods are idle":        toOne(func(w *world, i int) { w.Idle(i); w.settle() }),
		"all pods use devices":      simple(func(w *world) { w.Busy(); w.settle() }),
		"nobody watches devices":    simple(func(w *world) { w.StopWatcher(); w.settle() }),
		"somebody watches devices":  simple(func(w *world) { w.StartWatcher(); w.settle() }),
		"a creation arrives late":   toOne(func(w *world, i int) { w.CreateLate(i); w.settle(); w.allStart() }),
		"somebody adds a pod":       simple((*world).AddPod),
		"somebody adds too many":    simple(func(w *world) { w.allStart(); w.AddPod() }),
		"the added pods go":         simple((*world).RemoveAddedPods),
		"a component succeeds":      toOne(func(w *world, i int) { w.ends(i, kinds.Succeeded) }),
		"all work succeeds again":   simple((*world).succeeds),
		"all work succeeds":         simple((*world).succeeds),
		"a component fails":         toOne(func(w *world, i int) { w.ends(i, kinds.Failed) }),
		"a component is removed":    toOne(vanishes),
		"a component is refused":    toOne(refuses(&lifecycle.Refusal{Message: "try later"})),
		"a component is impossible": toOne(refuses(&lifecycle.Refusal{Message: "never", Final: true})),
		"a component is denied":     toOne(refuses(&lifecycle.Refusal{Message: "not so", Denied: true})),
		"a component is unanswered": toOne(refuses(&lifecycle.Refusal{Message: "nobody there", Unanswered: true})),
		"a component is possible":   toOne(refuses(nil)),
		"a component is held":       toOne(func(w *world, i int) { w.resources[i].stubborn = true }),
		"a component is let go":     toOne(func(w *world, i int) { w.resources[i].stubborn = false }),
		"a user deletes it":         seldom(func() { inAll(worlds, (*world).remove) }),
		"a node is lost":            toOne(func(w *world, i int) { w.sticks(i, true) }),
		"a node is back":            toOne(func(w *world, i int) { w.sticks(i, false) }),
		"a node has to be left":     toOne((*world).MarkNodeUnhealthy),
		"a node is not ready":       toOne((*world).MarkNodeNotReady),
		"a node rejects a pod":      toOne((*world).RejectPod),
		"a node is well again":      toOne((*world).MarkNodeHealthy),
		"seconds pass":              simple(func(w *world) { w.pass(7 * time.Second) }),
		"minutes pass":              simple(func(w *world) { w.pass(100 * time.Second) }),
		"all timers run down":       simple(func(w *world) { w.pass(10 * time.Minute) }),
	}
}

func areInTheSamePlace(worlds []*world) {
	for _, other := range worlds[1:] {
		worlds[0].witness(compares, moment{other: other})
	}
}

// seldom makes an event rare, so that most walks do not end early.
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

// ends lets a component report its end, if its kind does.
func (w *world) ends(i int, verdict kinds.Verdict) {
	if r := w.resources[i]; r.exists && r.reportsEnd && !r.terminating && r.verdict == kinds.Unknown {
		r.verdict = verdict
	}
}

// succeeds lets everything that is deployed succeed.
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

func (w *world) allIdle() {
	for i := range w.resources {
		w.Idle(i)
	}
	w.settle()
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
	w.goes(w.resources[i])
}

func refuses(refusal *lifecycle.Refusal) func(*world, int) {
	return func(w *world, i int) { w.resources[i].refusal = refusal }
}

// place is the state in which two worlds must be equal.
type place struct {
	Suspend, HasFinalizer, Gone, Quota bool
	Status                             v1beta2.AppWrapperStatus
	Resources                          []string
	Pods                               []string
	Wake                               time.Time
}

func (w *world) place() place {
	p := place{Suspend: w.suspend, HasFinalizer: w.hasFinalizer, Gone: w.gone, Quota: w.quota, Status: w.status, Wake: w.wake}
	for _, r := range w.resources {
		p.Resources = append(p.Resources, fmt.Sprintf("%s exists=%t terminating=%t verdict=%s", r.name, r.exists, r.terminating, r.verdict))
	}
	for _, pod := range w.pods {
		p.Pods = append(p.Pods, fmt.Sprintf("of %d %s terminating=%t", pod.Component, pod.Phase, pod.Terminating))
	}
	return p
}
