// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
)

var many = flag.Int("many", 200, "how many Runs are planned at once (make test-long has 1,000 on a simulated cluster)")

// tally counts what becomes of Runs.
type tally struct {
	lock   sync.Mutex
	made   map[string]int
	gone   int
	phases map[v1alpha1.RunPhase]int
}

func (c *tally) hear(change fakeapiserver.Change) {
	c.lock.Lock()
	defer c.lock.Unlock()
	switch {
	case change.Resource == "runs" && change.After == nil:
		c.gone++
	case change.Resource == "appwrappers" && change.Before == nil:
		c.made[change.After.Name]++
	case change.Resource == "runs" && change.Before != nil:
		c.phases[phaseOf(change.Before)]--
		fallthrough
	case change.Resource == "runs":
		c.phases[phaseOf(change.After)]++
	}
}

func phaseOf(run *fakeapiserver.Object) v1alpha1.RunPhase {
	var status v1alpha1.RunStatus
	_ = json.Unmarshal(run.Fields["status"], &status) // it may be missing
	return status.Phase
}

// await waits until a condition holds.
func (c *tally) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience.For(2 * time.Minute)); ; time.Sleep(5 * time.Millisecond) {
		c.lock.Lock()
		done := holds()
		phases := fmt.Sprint(c.phases)
		c.lock.Unlock()
		if done {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not after two minutes of a quiet machine; the phases are %s", what, phases)
		}
	}
}

func (c *tally) awaitAll(t *testing.T, phase v1alpha1.RunPhase) {
	t.Helper()
	c.await(t, "all Runs are "+string(phase), func() bool { return c.phases[phase] == *many })
}

// Many Runs that wait for one Application are planned at once, run, and go at the end of their time to
// live. All requests of their lives are counted. docs/evidence/performance.md explains each; nobody else writes to
// the Runs, so no request is made in vain, however late a cache is.
func TestManyRunsAreCheap(t *testing.T) {
	c := newCluster(t)
	counted := &tally{made: map[string]int{}, phases: map[v1alpha1.RunPhase]int{}}
	c.api.Heard = counted.hear
	sizes := runplan.DefaultSizes()
	c.put(v1alpha1.RunSizeConfigurationKind, &sizes)
	counted.await(t, "the caches watch", func() bool { return len(c.api.Watched()) == 5 })
	c.settled()
	c.asked = nil
	var names []types.NamespacedName
	for i := range *many {
		run := givenRun()
		run.Name, run.UID = fmt.Sprintf("digits-%d", i), types.UID(fmt.Sprint("uid-", i))
		run.Spec.TTLSecondsAfterFinished = ptr.To(int32(0))
		c.put(v1alpha1.RunKind, run)
		names = append(names, types.NamespacedName{Namespace: run.Namespace, Name: run.Name})
	}
	counted.awaitAll(t, v1alpha1.RunPending)
	began := time.Now()
	c.put(v1alpha1.ApplicationKind, givenApplication())
	counted.await(t, "all AppWrappers are there", func() bool { return len(counted.made) == *many })
	t.Logf("%d Runs at once are planned and applied: %.0f a second", *many, float64(*many)/time.Since(began).Seconds())
	counted.awaitAll(t, v1alpha1.RunQueued)
	for _, stage := range []struct {
		patch string
		then  v1alpha1.RunPhase
	}{
		{`{"status":{"phase":"Resuming"}}`, v1alpha1.RunStarting},
		{`{"status":{"phase":"Running","conditions":[{"type":"PodsReady","status":"True","reason":"X","lastTransitionTime":"2030-01-01T12:00:00Z"}]}}`, v1alpha1.RunRunning},
		{`{"status":{"resettingCount":0}}`, v1alpha1.RunRunning},
		{`{"status":{"phase":"Succeeded"}}`, v1alpha1.RunSucceeded},
	} {
		c.settled()
		for _, name := range names {
			if err := c.api.Patch("appwrappers", name, stage.patch); err != nil {
				t.Fatal(err)
			}
		}
		counted.awaitAll(t, stage.then)
		if strings.Contains(stage.patch, "resettingCount") {
			time.Sleep(300 * time.Millisecond) // there is no sign of a request that does not come
			if requests := c.news(); len(requests) > 0 {
				t.Errorf("quiet Runs cause requests:\n%s", strings.Join(requests, "\n"))
			}
		}
	}
	counted.await(t, "all Runs are gone", func() bool { return counted.gone == *many })
	c.settled()
	want := map[string]int{"PATCH runs/status": 6, "POST appwrappers": 1, "POST events": 3, "DELETE runs": 1}
	for what := range want {
		want[what] *= *many
	}
	if diff := cmp.Diff(want, fakeapiserver.Count(c.asked)); diff != "" {
		t.Errorf("the requests of %d lives (-want +made)\n%s", *many, diff)
	}
}
