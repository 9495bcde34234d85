// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Compare says in which ways the wrapped object differs from the bare one, except for what is allowed.
func Compare(bare, wrapped Summary) (differences []string) {
	difference, endless := outcomeDiffers(bare, wrapped)
	if difference != "" {
		differences = append(differences, difference)
	}
	if !endless {
		differences = append(differences, counted("pods", bare.Pods, wrapped.Pods)...)
		differences = append(differences, counted("container starts", bare.Starts, wrapped.Starts)...)
		differences = append(differences, final(bare, wrapped)...)
		differences = append(differences, more("pods at a time", bare.Most, wrapped.Most)...)
		differences = append(differences, order(bare.After, wrapped.After)...)
	}
	return append(differences, shapes(bare.Shapes, wrapped.Shapes)...)
}

// ranks are outcomes from the worst to the best.
var ranks = []Outcome{Refused, Failed, NotReady, Unready, Ready, Succeeded}

// NotWorse is what Compare is for runs in which pods were taken away: an AppWrapper may begin from the beginning, and
// must not end worse.
func NotWorse(bare, wrapped Summary) (differences []string) {
	_, endless := outcomeDiffers(bare, wrapped)
	if !endless && slices.Index(ranks, wrapped.Outcome) < slices.Index(ranks, bare.Outcome) {
		differences = append(differences, fmt.Sprintf("bare it is %s, wrapped %s", bare.Outcome, wrapped.Outcome))
	}
	return differences
}

func keys[K interface{ ~string | ~[2]string }, V any](a, b map[K]V, compare func(K, K) int) []K {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.SortFunc(all, compare)
	return slices.Compact(all)
}

func counted(what string, bare, wrapped map[string]int) (differences []string) {
	for _, set := range keys(bare, wrapped, strings.Compare) {
		if bare[set] != wrapped[set] {
			differences = append(differences, fmt.Sprintf("%s of %s: bare %d, wrapped %d", what, set, bare[set], wrapped[set]))
		}
	}
	return differences
}

// final compares what the objects said last.
func final(bare, wrapped Summary) []string {
	if slices.Equal(bare.Final, wrapped.Final) || failedAlike(bare, wrapped) {
		return nil
	}
	return []string{fmt.Sprintf("bare it says %q, wrapped %q", strings.Join(bare.Final, ", "), strings.Join(wrapped.Final, ", "))}
}

func more(what string, bare, wrapped map[string]int) (differences []string) {
	for _, set := range keys(bare, wrapped, strings.Compare) {
		if bare[set] < wrapped[set] {
			differences = append(differences, fmt.Sprintf("%s of %s: bare %d at most, wrapped %d", what, set, bare[set], wrapped[set]))
		}
	}
	return differences
}

// CreatedAfter is what differences of the order say.
const CreatedAfter = " was created after "

func order(bare, wrapped map[[2]string]string) (differences []string) {
	pairs := keys(bare, wrapped, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, pair := range pairs {
		if a, b := bare[pair], wrapped[pair]; a != b {
			differences = append(differences, fmt.Sprintf("%s%s%s: bare %s, wrapped %s", pair[1], CreatedAfter, pair[0], orNever(a), orNever(b)))
		}
	}
	return differences
}

func orNever(after string) string {
	if after == "" {
		return "began"
	}
	return after
}

// shapes compares the first pods of slots.
func shapes(bare, wrapped map[string]map[string]string) (differences []string) {
	for _, slot := range slices.Sorted(maps.Keys(bare)) {
		if wrapped[slot] == nil {
			continue // counted
		}
		for _, path := range keys(bare[slot], wrapped[slot], strings.Compare) {
			if a, b := bare[slot][path], wrapped[slot][path]; a != b && !allowed(path) {
				differences = append(differences, fmt.Sprintf("pods of %s differ in %s: bare %q, wrapped %q", slot, path, a, b))
			}
		}
	}
	return differences
}
