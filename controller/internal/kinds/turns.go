// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Turn is when the pods of a pod set come.
type Turn string

// The turns.
const (
	// WithTheOthers: as soon as the resource exists.
	WithTheOthers Turn = ""
	// OneByOne: one after the other, or when other pods of the resource are ready.
	OneByOne Turn = "OneByOne"
	// AfterTheOthers: when pods of other pod sets have succeeded.
	AfterTheOthers Turn = "AfterTheOthers"
	// Aside: once the others run, and they may end before them. They count for quota, and nobody waits for them.
	Aside Turn = "Aside"
)

// Turns says when the pods of the pod sets of a template come, by path, for those that do not come with it.
func (k Kind) Turns(template *unstructured.Unstructured) map[string]Turn {
	if k.turns == nil {
		return nil
	}
	return k.turns(template.Object)
}

// onePath has one pod set that has this turn if the predicate is true.
func onePath(path string, turn Turn, applies func(map[string]any) bool) func(map[string]any) map[string]Turn {
	return func(object map[string]any) map[string]Turn {
		if !applies(object) {
			return nil
		}
		return map[string]Turn{path: turn}
	}
}

// The Job controller pauses before it replaces a pod that has failed: twice as long each time, within these bounds.
const (
	shortestPause = 10 * time.Second
	longestPause  = 10 * time.Minute
)

// Pause is how long the operator of this kind may take to replace the last of so many failed pods.
func (k Kind) Pause(failed int) time.Duration {
	if !k.pauses || failed <= 0 {
		return 0
	}
	pause := shortestPause
	for range min(failed-1, 10) {
		pause *= 2
	}
	return min(pause, longestPause)
}
