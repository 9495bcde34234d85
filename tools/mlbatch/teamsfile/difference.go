// SPDX-License-Identifier: Apache-2.0

package teamsfile

import (
	"cmp"
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Difference is a quota that changes.
type Difference struct {
	// Owner is a team, a slack queue, or a cohort with all of them and the cohorts below it.
	Owner    string `json:"owner"`
	Name     string `json:"name"`
	Flavor   string `json:"flavor"`
	Resource string `json:"resource"`
	// Before and After are null if there is no quota.
	Before *Share `json:"before"`
	After  *Share `json:"after"`
}

// The owners of quota.
const (
	OfTeam       = "team"
	OfSlackQueue = "slack queue"
	OfCohort     = "cohort"
)

// cell is a quota of an owner.
type cell struct{ owner, name, flavor, resource string }

// Differences returns what changes in quota: teams first, cohorts last.
func Differences(before, after Teams) []Difference {
	old, new := before.cells(), after.cells()
	var differences []Difference
	for c := range maps.Keys(union(old, new)) {
		d := Difference{c.owner, c.name, c.flavor, c.resource, old[c], new[c]}
		if d.Before == nil || d.After == nil || !d.Before.same(*d.After) {
			differences = append(differences, d)
		}
	}
	slices.SortFunc(differences, func(a, b Difference) int {
		return cmp.Or(-cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Flavor, b.Flavor), cmp.Compare(a.Resource, b.Resource))
	})
	return differences
}

func union(a, b map[cell]*Share) map[cell]*Share {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

// cells are the quota of teams and slack queues, and the sums of cohorts.
func (t Teams) cells() map[cell]*Share {
	all := map[cell]*Share{}
	own := func(owner, name, cohort string, quota Quota) {
		for flavor, shares := range quota {
			for resource, share := range shares {
				all[cell{owner, name, flavor, resource}] = &share
			}
		}
		t.addTo(all, cohort, quota)
	}
	for _, team := range t.Teams {
		own(OfTeam, team.Name, team.Cohort, team.Quota)
	}
	for _, queue := range t.SlackQueues {
		own(OfSlackQueue, queue.Name, queue.Cohort, queue.Quota)
	}
	for _, cohort := range t.Cohorts {
		t.addTo(all, cohort.Name, cohort.Quota)
	}
	return all
}

// addTo adds a quota to a cohort and to all above it.
func (t Teams) addTo(all map[cell]*Share, cohort string, quota Quota) {
	for range len(t.Cohorts) + 1 { // there may be a cycle, which the chart refuses
		if cohort == "" {
			return
		}
		for flavor, shares := range quota {
			for name, share := range shares {
				c := cell{OfCohort, cohort, flavor, name}
				if all[c] == nil {
					all[c] = &Share{}
				}
				all[c].Nominal.Add(share.Nominal.Quantity)
			}
		}
		cohort = t.parent(cohort)
	}
}

// Resources are those that some team, slack queue or cohort has quota of.
func (t Teams) Resources() []string {
	names := map[string]bool{}
	for c := range t.cells() {
		names[c.resource] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// CohortNames are those that the file lists or that a team or a slack queue is in.
func (t Teams) CohortNames() []string {
	names := map[string]bool{}
	for _, cohort := range t.Cohorts {
		names[cohort.Name] = true
	}
	for _, team := range t.Teams {
		names[team.Cohort] = true
	}
	for _, queue := range t.SlackQueues {
		names[queue.Cohort] = true
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

func (t Teams) parent(cohort string) string {
	for _, c := range t.Cohorts {
		if c.Name == cohort {
			return c.Parent
		}
	}
	return ""
}

// WriteDifferences prints a row for each quota that changes.
func WriteDifferences(out io.Writer, all []Difference, before, after string) error {
	rows := [][]string{{"QUOTA OF", "FLAVOR", "RESOURCE", before, after, "CHANGE"}}
	for _, d := range all {
		rows = append(rows, []string{d.Owner + " " + d.Name, d.Flavor, d.Resource, text(d.Before), text(d.After), d.change()})
	}
	return printing.Table(out, rows)
}

func text(s *Share) string {
	if s == nil {
		return ""
	}
	return s.String()
}

// change is by how much the nominal quota grows or shrinks. Without quota there is nothing to use, as with 0.
func (d Difference) change() string {
	var change resource.Quantity
	if d.After != nil {
		change = d.After.Nominal.DeepCopy()
	}
	if d.Before != nil {
		change.Sub(d.Before.Nominal.Quantity)
	}
	switch change.Sign() {
	case 0:
		return "0"
	case 1:
		return "+" + change.String()
	}
	return change.String()
}
