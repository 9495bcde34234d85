// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"
	"strings"
	"testing"
)

// endless are kinds whose pods do not end before the object does.
var endless = []string{"StatefulSet", "Deployment", "LeaderWorkerSet", "RayCluster", "RayJob", "MPIJob"}

// builtIn are kinds whose controllers are no pods that could be killed.
var builtIn = []string{"Job", "StatefulSet", "Deployment"}

// Each kind is disturbed in each way at least twice.
func TestEachKindIsDisturbedInEachWay(t *testing.T) {
	all, err := Disturbed()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]map[string]int{}
	for _, c := range all {
		kind := c.Object.GetKind()
		if count[kind] == nil {
			count[kind] = map[string]int{}
		}
		count[kind][way(c.Disturb)]++
	}
	if len(count) != 13 {
		t.Errorf("%d kinds are disturbed", len(count))
	}
	for kind, counts := range count {
		ways := []string{"delete ready", "drain ready", "lose ready", "restart our controller"}
		if !slices.Contains(endless, kind) {
			ways = append(ways, "delete ended", "drain ended")
		}
		if !slices.Contains(builtIn, kind) {
			ways = append(ways, "restart the operator")
		}
		for _, way := range ways {
			if counts[way] < 2 {
				t.Errorf("%s: %s, %d times", kind, way, counts[way])
			}
		}
	}
}

// way is a disturbance without the pod.
func way(line string) string {
	words := strings.Fields(line)
	if program, restart := strings.CutPrefix(words[0], "restart:"); restart {
		if program == "appwrapper" {
			return "restart our controller"
		}
		return "restart the operator"
	}
	return words[0] + " " + words[1]
}
