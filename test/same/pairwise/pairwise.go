// SPDX-License-Identifier: Apache-2.0

// Package pairwise chooses few rows of a table of options, so that any two options that go together are in one row.
package pairwise

import (
	"math/rand/v2"
	"slices"
)

// unset is the choice of a field for which none was made yet.
const unset = -1

// tries is how many rows are drawn for each row that is kept.
const tries = 20

// table is the fields, by their numbers of options.
type table struct {
	options []int
	// possible reports whether choices go together, of which some may be unset.
	possible func(row []int) bool
	random   *rand.Rand
	missing  map[pair]bool
}

// pair is two fields with their choices.
type pair struct{ field, choice, other, otherChoice int }

// Rows chooses an option of each field in each row. The same seed gives the same rows.
func Rows(options []int, possible func(row []int) bool, seed uint64) (rows [][]int) {
	t := table{options: options, possible: possible, random: rand.New(rand.NewPCG(seed, 0)), missing: map[pair]bool{}}
	pairs := t.pairs()
	for _, p := range pairs {
		t.missing[p] = true
	}
	for _, p := range pairs {
		if !t.missing[p] {
			continue
		}
		row := t.best(p)
		delete(t.missing, p) // the two may never go together
		if row != nil {
			t.cover(row)
			rows = append(rows, row)
		}
	}
	return rows
}

// More draws rows that are not among some, until there are so many.
func More(rows [][]int, options []int, possible func(row []int) bool, seed uint64, atLeast int) [][]int {
	t := table{options: options, possible: possible, random: rand.New(rand.NewPCG(seed, 1))}
	for attempt := 0; len(rows) < atLeast && attempt < atLeast*tries; attempt++ {
		row := t.empty()
		if t.fill(row) && !slices.ContainsFunc(rows, func(other []int) bool { return slices.Equal(row, other) }) {
			rows = append(rows, row)
		}
	}
	return rows
}

func (t *table) pairs() (all []pair) {
	for a := range t.options {
		for b := a + 1; b < len(t.options); b++ {
			for x := range t.options[a] {
				for y := range t.options[b] {
					all = append(all, pair{a, x, b, y})
				}
			}
		}
	}
	t.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// best draws rows with a pair, and returns the one with most missing pairs; nil if there is none.
func (t *table) best(p pair) (best []int) {
	most := 0
	for range tries {
		row := t.empty()
		row[p.field], row[p.other] = p.choice, p.otherChoice
		if !t.possible(row) || !t.fill(row) {
			continue
		}
		if n := t.gain(row); n > most {
			best, most = row, n
		}
	}
	return best
}

func (t *table) empty() []int { return slices.Repeat([]int{unset}, len(t.options)) }

// fill chooses what is unset in random order, each time what adds most missing pairs.
func (t *table) fill(row []int) bool {
	for _, field := range t.random.Perm(len(row)) {
		if row[field] != unset {
			continue
		}
		best, most := unset, -1
		for _, choice := range t.random.Perm(t.options[field]) {
			row[field] = choice
			if n := t.gain(row); t.possible(row) && n > most {
				best, most = choice, n
			}
		}
		if row[field] = best; best == unset {
			return false
		}
	}
	return true
}

func (t *table) gain(row []int) (n int) {
	t.each(row, func(p pair) {
		if t.missing[p] {
			n++
		}
	})
	return n
}

func (t *table) cover(row []int) { t.each(row, func(p pair) { delete(t.missing, p) }) }

func (t *table) each(row []int, do func(pair)) {
	for a := range row {
		for b := a + 1; b < len(row); b++ {
			if row[a] != unset && row[b] != unset {
				do(pair{a, row[a], b, row[b]})
			}
		}
	}
}
