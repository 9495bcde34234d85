// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/test/fakeapiserver"
)

var runningBeside = flag.Int("among", 2000, "how many AppWrappers run beside a life that must cost as much as among a tenth of them")

// TestALifeCostsTheSameAmongMany counts what depends on no other program: requests, which are exactly
// those of the budget, and what is allocated, which stands for processor time.
func TestALifeCostsTheSameAmongMany(t *testing.T) {
	few := costAmong(t, *runningBeside/10, math.Inf(1))
	many := costAmong(t, *runningBeside, 1.2*few)
	t.Logf("a life allocates %.0f objects among %d, and %.0f among %d", few, *runningBeside/10, many, *runningBeside)
	if ratio := many / few; ratio < 0.8 || ratio > 1.2 {
		t.Errorf("among ten times as many, a life costs %.2f as much", ratio)
	}
}

// costAmong returns how many objects the process allocates for a life while that many AppWrappers run. It
// is the cheapest of ten lives, or of more until one is cheap enough: what the process does besides only adds to them.
func costAmong(t *testing.T, running int, enough float64) float64 {
	t.Helper()
	const some, all = 10, 200
	budget := budgets["one that need not wait for quota"]
	c := newCluster(t, 1)
	c.start()
	c.submit(0, 1)
	c.await("one that runs", func() bool { return c.isTrue(nameOf(0), "PodsReady") })
	c.stop()
	c.multiply(running)
	looks := reconciles(t)
	c.start()
	defer c.stop()
	c.await("a look at each", func() bool { return reconciles(t)-looks >= running })
	c.live(running, budget) // what is made once is there
	var cheapest []string
	least := math.Inf(1)
	for i := 0; i < some || i < all && least > enough; i++ {
		before := allocated()
		requests := c.live(running+1+i, budget)
		least = min(least, allocated()-before)
		if cheapest == nil || len(requests) < len(cheapest) {
			cheapest = requests
		}
	}
	checkBudget(t, budget.most, cheapest)
	return least
}

func allocated() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.Mallocs)
}

// multiply makes the AppWrapper that runs one of so many.
func (c *cluster) multiply(total int) {
	c.Helper()
	for i := 1; i < total; i++ {
		for _, resource := range []string{"appwrappers", "jobs"} {
			if err := c.api.Put(c.copy(resource, i)); err != nil {
				c.Fatal(err)
			}
		}
	}
}

// copy is an object of the first AppWrapper as one of another. With the Job comes its pod.
func (c *cluster) copy(resource string, i int) []byte {
	c.Helper()
	model := c.api.Get(resource, keyOf(nameOf(0)))
	object := maps.Clone(model.Fields)
	metadata, err := json.Marshal(&model.ObjectMeta)
	object["metadata"] = metadata
	text, err2 := json.Marshal(object)
	if err != nil || err2 != nil {
		c.Fatal(err, err2)
	}
	other := []string{nameOf(0), nameOf(i)}
	for _, of := range []*fakeapiserver.Object{c.api.Get("appwrappers", keyOf(nameOf(0))), c.api.Get("jobs", keyOf(nameOf(0)))} {
		other = append(other, string(of.UID), uidOf(of.UID, i))
	}
	return []byte(strings.NewReplacer(other...).Replace(string(text)))
}

func uidOf(uid types.UID, i int) string { return fmt.Sprintf("%s-%d", uid, i) }
