// SPDX-License-Identifier: Apache-2.0

// Package spelling answers how far one word is from another, so that a message about an
// unknown word can suggest the one that was meant.
package spelling

import "strings"

// Distance is the number of letters to add, drop or replace to get from a to b,
// whatever their case (Levenshtein).
func Distance(a, b string) int {
	from, to := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	row := make([]int, len(to)+1) // the distances from the part of from that was read to each prefix of to
	for j := range row {
		row[j] = j
	}
	for i, letter := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j := range to {
			replaced := diagonal
			if letter != to[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
