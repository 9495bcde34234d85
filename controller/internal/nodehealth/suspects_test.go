// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func blame(by, node string, source Source, until int64) Blame {
	return Blame{By: types.NamespacedName{Namespace: "team", Name: by}, Node: node, Cause: Cause{source, "s"}.String(), Until: time.Unix(until, 0)}
}

func TestSuspects(t *testing.T) {
	now := time.Unix(100, 0)
	for sentence, tc := range map[string]struct {
		blames []Blame
		enough int
		want   []Suspect
	}{
		"a node that enough AppWrappers blame": {[]Blame{blame("1", "a", PodRejected, 200), blame("2", "a", PodNotStarted, 300)}, 2,
			[]Suspect{{"a", 2, 1, "PodNotStarted s"}}},
		"not one that a single AppWrapper blames, however often": {[]Blame{blame("1", "a", PodRejected, 200), blame("1", "a", PodNotStarted, 300)}, 2, nil},
		"not one that they blamed long ago":                      {[]Blame{blame("1", "a", PodRejected, 200), blame("2", "a", PodRejected, 100)}, 2, nil},
		"not one of which Kubernetes knows":                      {[]Blame{blame("1", "a", NodeNotReady, 200), blame("2", "a", NodeCondition, 200)}, 2, nil},
		"none where it is off":                                   {[]Blame{blame("1", "a", PodRejected, 200)}, 0, nil},
		"the one that most blame comes first": {[]Blame{blame("1", "a", PodRejected, 200), blame("1", "b", PodRejected, 200), blame("2", "b", PodRejected, 200)}, 1,
			[]Suspect{{"b", 2, 1, "PodRejected s"}, {"a", 1, 1, "PodRejected s"}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Suspects(tc.blames, tc.enough, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// In whatever order blames come, the same nodes are suspect; one more blame frees none; and after
// the last of them is over, none is.
func TestSuspicionIsOrderlyAndEnds(t *testing.T) {
	blames := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Blame {
		return blame(names.Draw(t, "by"), names.Draw(t, "node"), rapid.SampledFrom(Sources()).Draw(t, "source"), rapid.Int64Range(90, 200).Draw(t, "until"))
	}))
	rapid.Check(t, func(t *rapid.T) {
		all, enough, now := blames.Draw(t, "blames"), rapid.IntRange(1, 3).Draw(t, "enough"), time.Unix(100, 0)
		suspects := Suspects(all, enough, now)
		if diff := cmp.Diff(suspects, Suspects(rapid.Permutation(all).Draw(t, "in another order"), enough, now)); diff != "" {
			t.Errorf("(-one +other):\n%s", diff)
		}
		more := Suspects(append(slices.Clone(all), blame("z", "a", PodRejected, 200)), enough, now)
		for _, s := range suspects {
			if !slices.ContainsFunc(more, func(m Suspect) bool { return m.Node == s.Node && m.By >= s.By }) {
				t.Errorf("%v is free after one more blame: %v", s, more)
			}
		}
		if over := Suspects(all, enough, time.Unix(200, 0)); len(over) > 0 {
			t.Errorf("got %v after all is over", over)
		}
	})
}
