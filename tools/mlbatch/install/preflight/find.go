// SPDX-License-Identifier: Apache-2.0

package preflight

// check returns a sentence for each problem of one type.
type check func(Facts) []string

// fatal checks run first. Only the first one that fails is reported, because it makes all
// later checks pointless.
var fatal = []check{
	kubernetesIsNotSupported,
	valuesAreNotValid,
	rightsAreMissing,
	releaseIsElsewhere,
}

// checks all run, and their problems are reported together.
var checks = []check{
	releaseIsOlder,
	storedVersionIsDropped,
	kindIsNotServed,
	objectIsBeingDeleted,
	namespaceIsMissing,
	twoDefaultClasses,
	otherOperatorRuns, // first, because the objects of such operators have another owner too
	objectBelongsToAnother,
	kueueIsMissing,
	kueueIsNotSupported,
	kueueDoesNotKnowAppWrappers,
	kueueMayNotStartAppWrappers,
	podGroupsAreMissing,
}

// warnings are checks for what may be intended.
var warnings = []check{
	profileIsNotForOpenShift,
	profileIsForOpenShift,
	codeFlareOperatorRuns,
	schedulerIsMissing,
	otherGangSchedulerRuns,
	operatorMayNotControl,
	kueueIgnoresWorkWithoutQueue,
	kueueTakesFewerPodSets,
	kueueEvictsToo,
	namespaceIsNotOfATeam,
	defaultClassIsRefused,
	pullSecretIsMissing,
	acceleratorsHaveAnotherName,
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
