// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// budgets are how many requests of each kind one life may cost, with real caches, from creation
// until it is gone. docs/performance.md says which promise needs each.
var budgets = map[string]struct {
	begin func(c *cluster, i int)
	most  map[string]int
}{
	"one that need not wait for quota": {
		func(c *cluster, i int) { c.submit(i, i+1) },
		map[string]int{"PATCH appwrappers/status": 4, "PATCH appwrappers": 2, "POST jobs": 1, "DELETE jobs": 1, "LIST pods": 1},
	},
	"one that Kueue starts": {
		func(c *cluster, i int) {
			c.submitQueued(i, `,"metadata":{"finalizers":["workload.codeflare.dev/finalizer"]}`)
		},
		map[string]int{"PATCH appwrappers/status": 5, "PATCH appwrappers": 1, "POST jobs": 1, "DELETE jobs": 1, "LIST pods": 1},
	},
	"one that Kueue starts while no webhook answers": {
		func(c *cluster, i int) { c.submitQueued(i, "") },
		map[string]int{"PATCH appwrappers/status": 5, "PATCH appwrappers": 2, "POST jobs": 1, "DELETE jobs": 1, "LIST pods": 1},
	},
}

// TestTheBudgetOfALife lets AppWrappers live one after the other and counts the requests of the
// cheapest life: in others a cache may be late, and another look is right. It ends with the first life
// that costs no more than the budget.
func TestTheBudgetOfALife(t *testing.T) {
	for name, budget := range budgets {
		t.Run(name, func(t *testing.T) {
			const lives = 20
			allowed := 0
			for _, n := range budget.most {
				allowed += n
			}
			c := newCluster(t, 1)
			c.start()
			defer c.stop()
			var cheapest []string
			for i := 0; i < lives && (cheapest == nil || len(cheapest) > allowed); i++ {
				requests := c.live(i, budget.begin)
				t.Logf("life %d: %d requests\n%s", i+1, len(requests), strings.Join(requests, "\n"))
				if cheapest == nil || len(requests) < len(cheapest) {
					cheapest = requests
				}
			}
			checkBudget(t, budget.most, cheapest)
		})
	}
}

// live returns the requests of a life.
func (c *cluster) live(i int, begin func(*cluster, int)) []string {
	c.Helper()
	name := nameOf(i)
	begin(c, i)
	c.await("pods that are ready", func() bool { return c.isTrue(name, v1beta2.PodsReady) })
	c.complete(name)
	c.await("success", func() bool { return c.phase(name) == v1beta2.AppWrapperSucceeded })
	c.api.Delete("pods", keyOf(podName(c.api.Get("jobs", keyOf(name)), 0)))
	c.api.Delete("appwrappers", keyOf(name))
	c.await("the end", func() bool { return c.api.Get("appwrappers", keyOf(name)) == nil })
	return ofLives(c.api.Requests())
}

// submitQueued plays Kueue, which starts what was recorded before its status says why it waits, and the
// webhook, which adds to that write.
func (c *cluster) submitQueued(i int, added string) {
	c.Helper()
	name := nameOf(i)
	c.put(appWrapperText, "NAME", name, `"suspend":false`, `"suspend":true`)
	c.await("its pod sets", func() bool { return c.phase(name) == v1beta2.AppWrapperSuspended })
	if err := c.api.Patch("appwrappers", keyOf(name), `{"spec":{"suspend":false}`+added+`}`); err != nil {
		c.Fatal(err)
	}
}

func nameOf(i int) string { return fmt.Sprintf("train-%05d", i) }

func (c *cluster) phase(name string) v1beta2.AppWrapperPhase {
	return phaseOf(c.api.Get("appwrappers", keyOf(name)))
}

// isTrue tells whether a condition of an AppWrapper is true.
func (c *cluster) isTrue(name string, condition v1beta2.AppWrapperCondition) bool {
	var status v1beta2.AppWrapperStatus
	if err := json.Unmarshal(c.api.Get("appwrappers", keyOf(name)).Fields["status"], &status); err != nil {
		return false // it has none yet
	}
	return meta.IsStatusConditionTrue(status.Conditions, string(condition))
}

// checkBudget compares the requests of one life with the budget.
func checkBudget(t *testing.T, budget map[string]int, requests []string) {
	t.Helper()
	counts := map[string]int{}
	for _, request := range requests {
		counts[request]++
	}
	if diff := cmp.Diff(budget, counts); diff != "" {
		t.Errorf("the requests of a life (-budget +made)\n%s", diff)
	}
}

var ofNamespace = regexp.MustCompile(`^(\w+) .*/namespaces/[^/]+/([^/]+)(/[^/]+)?(/status)?$`)

// ofLives leaves the requests about objects of namespaces, without events. Watches are of all
// namespaces.
func ofLives(requests []string) []string {
	var all []string
	for _, request := range requests {
		parts := ofNamespace.FindStringSubmatch(request)
		if parts == nil || parts[2] == "events" {
			continue
		}
		verb := parts[1]
		if verb == "GET" && parts[3] == "" {
			verb = "LIST"
		}
		all = append(all, fmt.Sprintf("%s %s%s", verb, parts[2], parts[4]))
	}
	return all
}
