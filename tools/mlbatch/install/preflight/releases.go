// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

func valuesAreNotValid(f Facts) []string {
	var found []string
	for n, r := range f.Releases {
		if r.Invalid == "" {
			continue
		}
		if len(r.Foreign) > 0 {
			flag, owner := "--teams", "the teams"
			if n > 0 {
				flag, owner = "--values", "the platform"
			}
			r.Invalid += fmt.Sprintf("; %s is a value of %s: give the file with %s", r.Foreign[0], owner, flag)
		}
		found = append(found, r.Invalid)
	}
	return found
}

// releaseIsOlder compares only minor versions: downgrading to an older patch is allowed.
func releaseIsOlder(f Facts) []string {
	var found []string
	for _, r := range f.Releases {
		wanted, err1 := version.ParseSemantic(r.Wanted)
		installed, err2 := version.ParseSemantic(r.Installed)
		if err1 != nil || err2 != nil || !minor(wanted).LessThan(minor(installed)) {
			continue
		}
		found = append(found, fmt.Sprintf("the release %s has version %s, but %s is an older minor version; downgrading is not supported: use the command and charts of %s or later",
			r.Name, r.Installed, r.Wanted, r.Installed))
	}
	return found
}

func minor(v *version.Version) *version.Version { return version.MajorMinor(v.Major(), v.Minor()) }

func storedVersionIsDropped(f Facts) []string {
	var found []string
	for _, r := range f.Releases {
		for _, o := range r.Stored {
			found = append(found, fmt.Sprintf("the cluster has objects of %s stored as %s, which %s %s no longer supports: rewrite them first as docs/install.md says",
				o.Name, strings.Join(o.Versions, " and "), r.Name, r.Wanted))
		}
	}
	return found
}

func kindIsNotServed(f Facts) []string {
	var found []string
	for _, r := range f.Releases {
		if len(r.Unknown) > 0 {
			found = append(found, fmt.Sprintf("the values need %s, but the cluster does not serve that kind: install its operator, or change the values", some(r.Unknown)))
		}
	}
	return found
}

func objectIsBeingDeleted(f Facts) []string {
	var found []string
	for n, r := range f.Releases {
		switch {
		case len(r.Leaving) == 0:
		case n > 0 && f.Releases[0].Installed == "":
			found = append(found, fmt.Sprintf("%s is being deleted, which only Kueue can complete: install without --teams first, and then run the command again", some(r.Leaving)))
		default:
			found = append(found, fmt.Sprintf("%s is being deleted: wait until it is gone, and run the command again", some(r.Leaving)))
		}
	}
	return found
}

func releaseIsElsewhere(f Facts) []string {
	for n, r := range f.Releases {
		namespace := r.Elsewhere
		for _, o := range f.Operators { // Helm's record may be lost
			if o.Owner.Name == r.Name && o.Owner.Namespace != r.Namespace {
				namespace = o.Owner.Namespace
			}
		}
		if namespace != "" {
			return []string{fmt.Sprintf("the release %s is in namespace %s already: use that one with %s %s, or uninstall it there first",
				r.Name, namespace, namespaceFlag(n), namespace)}
		}
	}
	return nil
}

// namespaceFlag returns the flag that sets the namespace of a release, by its index: the
// platform is the first.
func namespaceFlag(number int) string {
	if number == 0 {
		return "--namespace"
	}
	return "--teams-namespace"
}

// objectBelongsToAnother reports objects with another owner, once for each group of objects
// that get the same advice. It skips the parts that otherOperatorRuns reports.
func objectBelongsToAnother(f Facts) []string {
	var found []string
	for n, r := range f.Releases {
		for _, objects := range grouped(r.Taken) {
			if mayBeTaken := f.TakeOwnership && !objects[0].Fixed; !mayBeTaken && !f.runs(objects[0].Part) {
				found = append(found, taken(r, namespaceFlag(n), objects))
			}
		}
	}
	return found
}

// grouped groups objects that get the same advice, and keeps their order.
func grouped(objects []Object) [][]Object {
	var groups [][]Object
	for _, o := range objects {
		at := slices.IndexFunc(groups, func(g []Object) bool {
			return g[0].Part == o.Part && g[0].Owner == o.Owner && g[0].Fixed == o.Fixed &&
				g[0].isDefinition() == o.isDefinition() && g[0].isPriority() == o.isPriority()
		})
		if at < 0 {
			groups, at = append(groups, nil), len(groups)
		}
		groups[at] = append(groups[at], o)
	}
	return groups
}

func (o Object) isDefinition() bool { return o.Kind == "CustomResourceDefinition" }

func (o Object) isPriority() bool { return o.Kind == "PriorityClass" }

func (f Facts) runs(part string) bool {
	return slices.ContainsFunc(f.Operators, func(o Operator) bool { return o.Part == part })
}

func taken(r Release, flag string, objects []Object) string {
	owner, what := objects[0].Owner, some(objects)
	if owner.Name == r.Name && !objects[0].Fixed {
		return fmt.Sprintf("a release %s in namespace %s has %s: use that one with %s %s, or adopt it with --take-ownership",
			owner.Name, owner.Namespace, what, flag, owner.Namespace)
	}
	theirs := "no release"
	if owner.Name != "" {
		theirs = fmt.Sprintf("the release %s in namespace %s", owner.Name, owner.Namespace)
	}
	return fmt.Sprintf("the cluster has %s already, owned by %s: %s", what, theirs, advice(objects[0]))
}

// advice says what the user can do about an object with another owner. It never suggests to
// remove a CRD, because that deletes all objects of its kind.
func advice(o Object) string {
	var ways []string
	switch part, known := parts.Named(o.Part); {
	case known:
		ways = append(ways, fmt.Sprintf("disable ours with --set %s.enabled=false", part.Name))
	case o.isPriority():
		ways = append(ways, "disable ours with --set priorities.enabled=false")
	}
	switch {
	case o.Fixed:
		return ways[0] + ", because its value or preemptionPolicy differs, and both are immutable"
	case o.isDefinition() && o.Owner.Name == "":
		ways = append(ways, "adopt it with --take-ownership, which keeps its objects")
	case o.isDefinition():
		ways = append(ways, fmt.Sprintf("adopt it with --take-ownership, which keeps its objects, and never uninstall the release %s, which would delete them", o.Owner.Name))
	default:
		ways = append(ways, "remove it", "adopt it with --take-ownership")
	}
	return inOr(ways)
}

func inOr(ways []string) string {
	last := len(ways) - 1
	if last == 0 {
		return ways[0]
	}
	return strings.Join(ways[:last], ", ") + ", or " + ways[last]
}

// some names the first object, and counts the others.
func some(objects []Object) string {
	first := fmt.Sprintf("the %s %s", objects[0].Kind, objects[0].Name)
	switch others := len(objects) - 1; others {
	case 0:
		return first
	case 1:
		return first + " and 1 more object"
	default:
		return fmt.Sprintf("%s and %d more objects", first, others)
	}
}
