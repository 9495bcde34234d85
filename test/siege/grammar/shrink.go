// SPDX-License-Identifier: Apache-2.0

package grammar

import "slices"

// Shrink returns fewer calls that still fail, as long as it finds some: it leaves out halves, then smaller and smaller
// parts, then twins. Calls that have to fail together stay together. Once fails only answers no, it ends soon.
func Shrink(calls []Call, fails func([]Call) bool) []Call {
	for parts := 2; len(calls) > 1; {
		smaller := without(calls, parts, fails)
		switch {
		case len(smaller) < len(calls):
			calls, parts = smaller, max(2, parts-1)
		case parts >= len(calls):
			return apart(calls, fails)
		default:
			parts = min(2*parts, len(calls))
		}
	}
	return apart(calls, fails)
}

// without leaves out the first part that is not needed.
func without(calls []Call, parts int, fails func([]Call) bool) []Call {
	for i := range parts {
		from, to := i*len(calls)/parts, (i+1)*len(calls)/parts
		rest := slices.Concat(calls[:from], calls[to:])
		if from < to && len(rest) > 0 && fails(rest) {
			return rest
		}
	}
	return calls
}

// apart leaves out twins, or calls whose twin is enough.
func apart(calls []Call, fails func([]Call) bool) []Call {
	for i := range calls {
		twin := calls[i].Twin
		if twin == nil {
			continue
		}
		for _, one := range []Call{alone(calls[i]), *twin} {
			simpler := slices.Clone(calls)
			if simpler[i] = one; fails(simpler) {
				calls = simpler
				break
			}
		}
	}
	return calls
}

func alone(c Call) Call {
	c.Twin = nil
	return c
}
