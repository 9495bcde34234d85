// SPDX-License-Identifier: Apache-2.0

package teamsdiff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlbatch/mlbatch/tools/mlbatch/teamsfile"
)

// Report says where a cluster and the file differ.
type Report struct {
	Objects []Difference `json:"items"`
	// Quota has the quota of the cluster as before, and that of the file as after. The quota of what is kept stays.
	Quota []teamsfile.Difference `json:"quota"`
	// Notes say what was not compared.
	Notes []string `json:"notes,omitempty"`
}

// Difference is an object, or a field of it.
type Difference struct {
	Object string `json:"object"`
	// State is Missing, Differs, Kept or Dropped.
	State State  `json:"state"`
	Field string `json:"field,omitempty"`
	// Cluster and File are the values of the field.
	Cluster string `json:"cluster,omitempty"`
	File    string `json:"file,omitempty"`
}

// State is what is the matter with an object.
type State string

// The states.
const (
	// Missing is an object that the cluster does not have.
	Missing State = "missing"
	// Differs is an object with a field that has another value.
	Differs State = "differs"
	// Kept is an object that the file no longer has. The chart leaves it, with its quota.
	Kept State = "kept"
	// Dropped is a slack queue that the file no longer has. The controller removes it.
	Dropped State = "dropped"
)

// Found reports whether there is a difference.
func (r Report) Found() bool { return len(r.Objects)+len(r.Quota) > 0 }

// Compare returns the differences between what a cluster has and what the file wants. Objects of the chart that other
// releases own are not compared: each release has a file of its own.
func Compare(cluster, wanted []Object) Report {
	now, left, others := divide(cluster, wanted)
	r := Report{Objects: append([]Difference{}, left...), Quota: []teamsfile.Difference{}}
	has := byName(cluster)
	for _, want := range wanted {
		if o, both := has[want.String()]; both {
			r.Objects = append(r.Objects, fields(o, want)...)
		} else {
			r.Objects = append(r.Objects, Difference{Object: want.String(), State: Missing})
		}
	}
	slices.SortStableFunc(r.Objects, func(a, b Difference) int { return strings.Compare(a.Object, b.Object) })
	r.Quota = append(r.Quota, teamsfile.Differences(teams(now), teams(wanted))...)
	for _, release := range slices.Sorted(maps.Keys(others)) {
		r.Notes = append(r.Notes, fmt.Sprintf("the teams of %s are not compared: they have a file of their own", name(release)))
	}
	return r
}

// divide returns what of a cluster is compared, what of that the file does not have, and the releases with files of
// their own.
func divide(cluster, wanted []Object) (now []Object, left []Difference, others map[string]bool) {
	wants, ours := byName(wanted), releases(byName(cluster), wanted)
	others = map[string]bool{}
	var slack []Object
	for _, o := range cluster {
		want, both := wants[o.String()]
		switch {
		case both:
			o.slack = want.slack
			now = append(now, o)
		case o.slack:
			slack = append(slack, o)
		case o.ofTeams && ours[o.release]:
			now, left = append(now, o), append(left, Difference{Object: o.String(), State: Kept})
		case o.ofTeams:
			others[o.release] = true
		}
	}
	// Only one release can have slack queues, and does not say which.
	if len(others) > 0 && !slices.ContainsFunc(wanted, func(o Object) bool { return o.slack }) {
		return now, left, others
	}
	for _, o := range slack {
		now, left = append(now, o), append(left, Difference{Object: o.String(), State: Dropped})
	}
	return now, left, others
}

func name(release string) string {
	if release == "" {
		return "no release of Helm"
	}
	return "release " + release
}

func byName(all []Object) map[string]Object {
	named := map[string]Object{}
	for _, o := range all {
		named[o.String()] = o
	}
	return named
}

// releases are those that own the queues of the file. If the cluster has none of them, any release called teams does.
func releases(has map[string]Object, wanted []Object) map[string]bool {
	owners := map[string]bool{}
	for _, want := range wanted {
		if o, both := has[want.String()]; both && want.team != nil && !want.slack {
			owners[o.release] = true
		}
	}
	if len(owners) > 0 {
		return owners
	}
	for _, o := range has {
		if o.release == "" || strings.HasSuffix(o.release, "/teams") {
			owners[o.release] = true
		}
	}
	return owners
}

func fields(o, want Object) []Difference {
	keys := maps.Clone(want.fields)
	if !want.some {
		maps.Copy(keys, o.fields)
	}
	var differences []Difference
	for _, key := range slices.Sorted(maps.Keys(want.also)) {
		if o.also[key] != want.also[key] && !want.some {
			differences = append(differences, Difference{o.String(), Differs, key, o.also[key], want.also[key]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if o.fields[key] != want.fields[key] {
			differences = append(differences, Difference{o.String(), Differs, key, o.fields[key], want.fields[key]})
		}
	}
	return differences
}

func teams(all []Object) teamsfile.Teams {
	var t teamsfile.Teams
	for _, o := range all {
		switch {
		case o.slack:
			t.SlackQueues = append(t.SlackQueues, o.slackQueue())
		case o.team != nil:
			t.Teams = append(t.Teams, *o.team)
		}
		if o.cohort != nil {
			t.Cohorts = append(t.Cohorts, *o.cohort)
		}
	}
	return t
}
