// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// promises hold in every life of an AppWrapper. Every story and every random walk checks
// them, and for each there is a mutant in test/mutants that breaks it.
var promises = []promise{
	// Quota.
	{"nothing is created without quota", creates, always, func(m moment) bool { return m.quota }},
	{"nothing is created that a deletion could leave behind", creates, always, func(m moment) bool { return m.hasFinalizer }},
	{"quota is given back only when no pod is Pending or Running", frees, always, func(m moment) bool { return !slices.ContainsFunc(m.pods, usesQuota) }},
	{"quota is not held for long when only what makes no pods is left", settles, holdsForNothing, func(m moment) bool { return !m.waited(m.past.useful, m.removalGrace()+pollInterval) }},
	{"quota that Kueue wants back is given back", recalls, notDeleted, func(m moment) bool { return !m.quota }},
	{"an attempt begins when nothing is left of the one before", saves, entering(v1beta2.AppWrapperResuming), func(m moment) bool { return !m.occupied() }},

	// Phases.
	{"a decision either moves to another phase or acts, never both", decides, moves, func(m moment) bool { return m.decision.Effect == lifecycle.Nothing }},
	{"each phase has its own effects and no others", decides, acts, hasEffect},
	{"what has succeeded or failed stays so until it is deleted", decides, hasEnded, func(m moment) bool { return !m.decision.Moved(m.seen.Snapshot) }},
	{"it moves on the documented ways, of which Resuming and Resetting are writes of their own", decides, moves, func(m moment) bool { return isListed(m.seen.Status.Phase, m.decision) }},
	{"Finished is True when it has succeeded or failed, and only then", saves, isNotTerminating, finishedIsTrue},
	{"what is created after its attempt has ended does not run on", settles, deploysNothing, func(m moment) bool {
		return !slices.ContainsFunc(m.pods, func(p *pod) bool {
			return p.stray && p.Phase == corev1.PodRunning && !p.Terminating && !m.resources[p.Component].terminating
		})
	}},
	{"every deletion ends, and leaves nothing behind", farewells, always, func(m moment) bool { return m.gone && !m.occupied() }},

	// Verdicts.
	{"it succeeds only when all that can report success has done so, and something was done", saves, entering(v1beta2.AppWrapperSucceeded), achieved},
	{"a creation fails only when something was refused or does not go away", saves, blames(v1beta2.ReasonCreateFailed), func(m moment) bool { return m.refused || m.removed || m.onlyKept() }},
	{"a component is missing only when somebody removed it", saves, blames(v1beta2.ReasonMissingComponent), func(m moment) bool { return m.removed }},
	{"retries stay within the limit", saves, always, func(m moment) bool { return m.status.Retries-m.status.StartupRetries <= m.policy.RetryLimit }},
	{"a retry is counted once, with the move to Resetting", saves, always, countsRetries},
	{"retries of late starts stay within a limit of their own", saves, always, func(m moment) bool { return m.status.StartupRetries <= m.policy.RetryLimit }},
	{"a retry is one of a late start only when no pods were ready in its attempt", saves, always, countsStarts},
	{"migrations stay within their own limit", saves, always, func(m moment) bool { return m.status.Migrations <= m.policy.MigrationLimit }},
	{"a migration is counted once, with the move to Resetting, and is no retry", saves, always, countsMigrations},
	{"a workload migrates only when a pod was on an unhealthy node, or is late since a migration", saves, blames(v1beta2.ReasonAutopilotNoExecute), hadToMigrate},
	{"who is late after a migration loses no retry while a migration is left", saves, blames(v1beta2.ReasonInsufficientPodsReady), func(m moment) bool {
		return !m.past.migrated || m.past.ready || m.was.Migrations >= m.policy.MigrationLimit
	}},
	{"a failure that a node is to blame for costs no retry while a migration is left", decides, failsAgain, noNodeIsToBlame},
	{"no pod stays on an unhealthy node while a migration is left", settles, mayMigrate, hasMigrated},
	{"pods that exceed the pod sets for longer than their grace end the attempt", settles, mayHaveNoSurplus, func(m moment) bool { return !m.surplusFor(m.policy.SurplusGrace) }},
	{"a pod that has not been ready for its grace ends the attempt", settles, mayNotHang, func(m moment) bool { return !m.hangsFor(m.status, m.policy.NoProgressGrace) }},
	{"an attempt ends for want of progress only when a pod was not ready for the grace", saves, blames(v1beta2.ReasonNoProgress), func(m moment) bool { return m.hangsFor(m.was, m.policy.NoProgressGrace) }},
	{"quota goes back for idleness only when no pod has used its devices for the grace, and half of it after the notice", decides, givesBack, func(m moment) bool {
		return m.isIdleFor(m.policy.IdleGrace) && m.waited(m.past.idleTold, m.policy.IdleGrace/2)
	}},
	{"whoever is idle for half of the grace is told, and after all of it the quota goes back", settles, mayNotRest, hasGivenBack},
	{"an attempt ends for surplus pods only when there were any for the grace", saves, blames(v1beta2.ReasonSurplusPods), func(m moment) bool { return m.surplusFor(m.policy.SurplusGrace) }},

	// Timers.
	{"the pause between two attempts counts from when nothing was left of the first", saves, retries, func(m moment) bool { return m.waited(m.past.occupied, m.policy.RetryPause) }},
	{"success is kept for its time to live, counted from the success", saves, beginsRemoval(v1beta2.AppWrapperSucceeded), func(m moment) bool { return m.waited(m.past.entered, m.policy.SuccessTTL) }},
	{"a failure is held as long as was asked, counted from the failure", saves, beginsRemoval(v1beta2.AppWrapperFailed), func(m moment) bool {
		return m.suspend || m.hasStrays() || m.waited(m.past.entered, m.policy.DeletionOnFailureHold)
	}},
	{"failed and lost pods have a grace, counted from when they were noticed", saves, blames(v1beta2.ReasonFoundFailedPods, v1beta2.ReasonInsufficientPodsReady), graceIsOver},
	{"a refusal is a failure only when it is final or the admission grace is over", saves, blames(v1beta2.ReasonCreateFailed), func(m moment) bool {
		return m.past.rejected || m.waited(m.past.attempt, m.policy.AdmissionGrace) || gaveUp(m)
	}},
	{"no retry is spent while nobody answers", saves, isRefused, func(m moment) bool { return m.past.rejected || !m.past.refused.IsZero() }},
	{"no retry is spent on time in which nobody tried to create anything", saves, isRefused, func(m moment) bool { return m.past.rejected || m.past.triedUntil(m.now) >= m.policy.AdmissionGrace }},
	{"force is used only when an ordinary deletion has had its grace", forces, always, func(m moment) bool { return m.waited(m.past.removal, m.policy.ForcefulDeletionGrace) }},
	{"no pod is removed by force while its owner would replace it", forces, hasPods, func(m moment) bool { return !slices.ContainsFunc(m.resources, (*resource).makesPods) }},

	// The books.
	{"each second for which quota was reserved is in one class of the books", saves, always, booksBalance},
	{"no sum of the books falls, except what is in flight", saves, always, noSumFalls},
	{"nothing is in flight when no attempt is under way", saves, func(m moment) bool { return m.status.Usage != nil }, func(m moment) bool {
		return m.status.Usage.InFlightSeconds == 0 || m.status.Phase == v1beta2.AppWrapperRunning
	}},

	// Saves, events and wake-ups.
	{"a crash after any save or effect ends in the same place", compares, always, func(m moment) bool { return reflect.DeepEqual(m.place(), m.other.place()) }},
	{"deciding changes nothing, and deciding again decides the same", decides, nowAndThen, isPure},
	{"what has been written about a world is not written again and again", decides, staysAndWrites, isStable},
	{"a condition carries the time at which its status changed", decides, always, conditionsAreStamped},
	{"pod sets never change", decides, always, podSetsAreKept},
	{"an event is announced only when something has happened", decides, announces, func(m moment) bool { return m.writes }},
	{"a healthy AppWrapper that runs wants nothing", decides, isHealthy, isContent},
	{"the controller comes to rest", settles, always, func(m moment) bool { return m.resting }},
	{"what rests has nothing left to do, so no wake-up was lost", idles, always, isAtRest},
	{"what waits for a time is woken then", idles, waits, func(m moment) bool { return !m.wake.IsZero() && !m.wake.After(m.now.Add(m.decision.Requeue)) }},
}

// A promise is a sentence and its check: on which occasion it is checked, under which
// condition, and what must be true then.
type promise struct {
	sentence string
	on       occasion
	when     func(moment) bool
	then     func(moment) bool
}

type occasion int

const (
	decides   occasion = iota // a decision was made
	saves                     // a status was saved
	creates                   // a component is about to be created
	forces                    // something is about to be removed by force
	frees                     // the quota was given to others
	settles                   // the cluster and the controller have reacted to each other
	idles                     // a controller that is woken by others has nothing to do
	compares                  // two worlds had the same life
	recalls                   // Kueue took the quota back, some time ago
	farewells                 // a user deleted the AppWrapper, some time ago
)

// moment is an occasion in a world. The other fields depend on the occasion.
type moment struct {
	*world
	seen     observation              // decides: what it saw
	before   lifecycle.Snapshot       // decides: a copy of that from before
	decision lifecycle.Decision       // decides, idles
	writes   bool                     // decides: the decision is to be saved
	was      v1beta2.AppWrapperStatus // saves: the status until then
	resting  bool                     // settles: nothing moves any more
	other    *world                   // compares
}

// A promise that no defect breaks checks nothing.
func TestEveryPromiseIsBrokenByAMutant(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "test", "mutants", "*.patch"))
	if err != nil {
		t.Fatal(err)
	}
	var patches strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		patches.Write(content)
	}
	for _, p := range promises {
		if !strings.Contains(patches.String(), "\nSays: broken: "+p.sentence+"\n") {
			t.Errorf("no mutant in test/mutants breaks it: %s", p.sentence)
		}
	}
	t.Logf("there are %d promises", len(promises))
}

// witness checks the promises of an occasion.
func (w *world) witness(on occasion, m moment) {
	m.world = w
	for _, p := range promises {
		if p.on != on || !p.when(m) {
			continue
		}
		w.tested[p.sentence]++
		if !p.then(m) {
			w.broken(p.sentence + m.describe(on))
		}
	}
}

// describe says what was happening.
func (m moment) describe(on occasion) string {
	switch on {
	case decides, idles:
		return fmt.Sprintf("\nin %s it decided on %q %v, a look in %s, and (-seen +decided):\n%s", name(m.seen.Status.Phase),
			m.decision.Effect, m.decision.Targets, m.decision.Requeue, cmp.Diff(m.seen.Status, m.decision.Status))
	case saves:
		return fmt.Sprintf("\nit saved (-before +after):\n%s", cmp.Diff(m.was, m.status))
	case compares:
		return fmt.Sprintf("\n(-calm +rough):\n%s", cmp.Diff(m.place(), m.other.place()))
	}
	return fmt.Sprintf("\nin %s, after %s", name(m.status.Phase), m.now.Sub(m.born))
}
