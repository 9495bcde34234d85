// SPDX-License-Identifier: Apache-2.0

// Package operators compares how many pods our controller counts of an object with how many its operator makes. The
// operators are those that the platform installs, with a client that only remembers.
package operators

import (
	"flag"
	"maps"
	"slices"
	"testing"

	"github.com/mlbatch/mlbatch/tools/artifacts/components/kueue/drawn"
)

var (
	seed  = flag.Uint64("operators.seed", 1, "which fields get which values")
	specs = flag.Int("operators.specs", 20, "how many random ones of each kind")
)

// least is how many objects of a kind must be compared.
const least = 10

// We count exactly the pods that an operator makes, or admission refuses the object, or the API server does, or the
// operator says why it makes none.
func TestOperatorsMakeThePodsThatWeCount(t *testing.T) {
	api := newAPIServer(t)
	objects, err := drawn.Draw(t.Context(), *seed, *specs)
	if err != nil {
		t.Fatal(err)
	}
	compared := map[string]int{}
	for _, o := range objects {
		if o.Refused != "" || slices.Max(slices.Collect(maps.Values(o.Pods))) > mostPods {
			continue // what is counted would take all memory to make
		}
		stored, err := api.create(o.Object)
		if err != nil {
			continue
		}
		made, refused := api.podsOf(t, stored)
		if refused {
			continue
		}
		compared[stored.GetKind()]++
		if !drawn.Same(o.Pods, made) {
			t.Errorf("%s\n  we count          %v\n  the operator made %v", o.What, o.Pods, made)
		}
	}
	t.Logf("seed %d: compared %v", *seed, compared)
	for kind := range makers {
		if compared[kind] < least {
			t.Errorf("only %d objects of %s were compared", compared[kind], kind)
		}
	}
}
