// SPDX-License-Identifier: Apache-2.0

package pairwise_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/same/pairwise"
)

// The first option of the first field does not go with the last of the last.
func possible(row []int) bool { return row[0] != 0 || row[3] != 2 }

var options = []int{2, 3, 4, 3}

func TestAnyTwoOptionsAreInOneRow(t *testing.T) {
	rows := pairwise.Rows(options, possible, 7)
	for a := range options {
		for b := a + 1; b < len(options); b++ {
			for x := range options[a] {
				for y := range options[b] {
					impossible := a == 0 && x == 0 && b == 3 && y == 2
					if has(rows, a, x, b, y) == impossible {
						t.Errorf("option %d of field %d with option %d of field %d: in a row %t", x, a, y, b, !impossible)
					}
				}
			}
		}
	}
	if len(rows) > 20 {
		t.Errorf("there are %d rows; all are 72", len(rows))
	}
}

func has(rows [][]int, a, x, b, y int) bool {
	for _, row := range rows {
		if row[a] == x && row[b] == y {
			return true
		}
	}
	return false
}

func TestASeedGivesTheSameRows(t *testing.T) {
	if diff := cmp.Diff(pairwise.Rows(options, possible, 7), pairwise.Rows(options, possible, 7)); diff != "" {
		t.Error(diff)
	}
}

func TestMoreRowsAreOthers(t *testing.T) {
	rows := pairwise.More(pairwise.Rows(options, possible, 7), options, possible, 7, 40)
	if len(rows) != 40 {
		t.Errorf("there are %d rows", len(rows))
	}
	for i, row := range rows {
		if !possible(row) {
			t.Errorf("%v is impossible", row)
		}
		for _, other := range rows[:i] {
			if cmp.Equal(row, other) {
				t.Errorf("%v is there twice", row)
			}
		}
	}
}
