// SPDX-License-Identifier: Apache-2.0

package top

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// own has a row for each flavor of a team: what it can start now, how much of that it would
// borrow, and how much of its own quota others have, which Kueue takes back for the team's work.
func (o Overview) own() [][]string {
	rows := [][]string{{"TEAM", "FLAVOR", "CAN START NOW", "OF IT BORROWED", "LENT, COMES BACK"}}
	for _, t := range o.Teams {
		var flavors []string
		for _, c := range t.Quota {
			if !slices.Contains(flavors, c.Flavor) {
				flavors = append(flavors, c.Flavor)
			}
		}
		for _, flavor := range flavors {
			if row := t.flavor(flavor); row[0] != "" {
				rows = append(rows, append([]string{t.Title(), flavor}, row...))
			}
		}
	}
	return rows
}

// flavor writes the amounts of a flavor. Without any quota or use, they are empty.
func (t Team) flavor(name string) []string {
	var start, borrowed, lent []string
	for _, c := range t.Quota {
		if c.Flavor != name || c.empty() && c.Available.IsZero() {
			continue
		}
		rest := atLeastZero(c.Quota, c.Used)
		start = c.amount(start, *c.Available, true)
		borrowed = c.amount(borrowed, atLeastZero(*c.Available, rest), false)
		if t.Inactive == "" {
			lent = c.amount(lent, atLeastZero(rest, *c.Available), false)
		}
	}
	return []string{strings.Join(start, ", "), strings.Join(borrowed, ", "), strings.Join(lent, ", ")}
}

// amount adds an amount of the resource, also one of nothing if that is worth a word.
func (c Cell) amount(all []string, q resource.Quantity, always bool) []string {
	if q.IsZero() && !always {
		return all
	}
	return append(all, of(c.Resource)(&q)+" "+c.Resource)
}

func atLeastZero(all, part resource.Quantity) resource.Quantity {
	rest := all.DeepCopy()
	if rest.Sub(part); rest.Sign() < 0 {
		return resource.Quantity{}
	}
	return rest
}
