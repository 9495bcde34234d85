// SPDX-License-Identifier: Apache-2.0

package preflight

// law finds one sort of obstacle.
type law func(Facts) []string

// grave laws make the ones after them pointless: what is wrong with one of them is
// all that is said.
var grave = []law{
	kubernetesIsNotSupported,
	valuesAreNotValid,
	rightsAreMissing,
	releaseIsElsewhere,
}

// laws are what has to be true of a cluster that can be told in one go what is wrong.
var laws = []law{
	releaseIsOlder,
	versionIsStoredThatNobodyKnows,
	kindIsNotServed,
	objectIsBeingDeleted,
	otherOperatorRuns, // before: objects of such operators belong to somebody else as well
	objectBelongsToAnother,
	kueueIsMissing,
	kueueIsTooOld,
	kueueDoesNotKnowAppWrappers,
	podGroupsAreMissing,
}

// doubts are laws about what may be meant so.
var doubts = []law{
	profileIsNotOpenShifts,
	openShiftIsNotThere,
	codeFlareOperatorRuns,
	schedulerIsNotSeen,
	kueueIgnoresWorkWithoutQueue,
}

// Find says what is in the way, and what is odd but may be meant so.
func Find(f Facts) (refusals, warnings []string) {
	for _, l := range grave {
		if refusals = l(f); len(refusals) > 0 {
			return refusals, nil
		}
	}
	return all(laws, f), all(doubts, f)
}

func all(laws []law, f Facts) []string {
	var found []string
	for _, l := range laws {
		found = append(found, l(f)...)
	}
	return found
}
