// SPDX-License-Identifier: Apache-2.0

package preflight

// check returns a sentence for each problem of one sort.
type check func(Facts) []string

// fatal checks make the ones after them pointless: the first that fails is the only one
// that is reported.
var fatal = []check{
	kubernetesIsNotSupported,
	valuesAreNotValid,
	rightsAreMissing,
	releaseIsElsewhere,
}

// checks are reported together.
var checks = []check{
	releaseIsOlder,
	storedVersionIsDropped,
	kindIsNotServed,
	objectIsBeingDeleted,
	otherOperatorRuns, // before: objects of such operators belong to somebody else as well
	objectBelongsToAnother,
	kueueIsMissing,
	kueueIsTooOld,
	kueueDoesNotKnowAppWrappers,
	podGroupsAreMissing,
}

// warnings are checks of what may be intended.
var warnings = []check{
	profileIsNotForOpenShift,
	profileIsForOpenShift,
	codeFlareOperatorRuns,
	schedulerIsMissing,
	kueueIgnoresWorkWithoutQueue,
}

// Find returns what prevents an installation, and what is unusual but may be intended.
func Find(f Facts) (problems, unusual []string) {
	for _, c := range fatal {
		if problems = c(f); len(problems) > 0 {
			return problems, nil
		}
	}
	return all(checks, f), all(warnings, f)
}

func all(checks []check, f Facts) []string {
	var found []string
	for _, c := range checks {
		found = append(found, c(f)...)
	}
	return found
}
