// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// failed is that the program of an AppWrapper failed on a node, and did well elsewhere.
func failed(team, by, node string) Blame {
	return Blame{By: types.NamespacedName{Namespace: team, Name: by}, Node: node, Cause: "PodFailed exit-1", Until: time.Unix(200, 0)}
}

func unproven(b Blame) Blame {
	b.Unproven = true
	return b
}

func TestNodesOnWhichProgramsFail(t *testing.T) {
	three := []Blame{failed("blue", "1", "a"), failed("blue", "2", "a"), failed("red", "1", "a")}
	suspect := []Suspect{{"a", 3, 2, "PodFailed exit-1"}}
	for sentence, tc := range map[string]struct {
		blames []Blame
		want   []Suspect
	}{
		"a node on which the programs of two teams fail": {three, suspect},
		"not one on which those of one team do":          {[]Blame{failed("blue", "1", "a"), failed("blue", "2", "a"), failed("blue", "3", "a")}, nil},
		"not one on which too few do":                    {three[1:], nil},
		"not one on which one does again and again":      {[]Blame{three[0], three[0], three[2]}, nil},
		"not one on which they may fail by themselves":   {[]Blame{three[0], three[1], unproven(three[2])}, nil},
		"also if one more fails elsewhere":               {slices.Concat(three, []Blame{unproven(failed("red", "2", "b"))}), suspect},
		"none while programs fail on other nodes, too":   {slices.Concat(three, []Blame{unproven(failed("red", "2", "b")), unproven(failed("red", "3", "c"))}), nil},
		"not with a rejection in the place of a proof":   {slices.Concat(three[:2], []Blame{blame("3", "a", PodRejected, 200)}), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Suspects(tc.blames, 3, time.Unix(100, 0))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// In whatever order failures come, the same nodes are suspect; at most one is, by failed programs
// alone; and none is of which nothing is proven, or which one team blames.
func TestFailedProgramsMakeFewNodesSuspect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []Blame
		proven := map[string]map[string]bool{}
		for i := range rapid.IntRange(0, 12).Draw(t, "failures") {
			team, node := names.Draw(t, "team"), names.Draw(t, "node")
			b := failed(team, fmt.Sprint(i), node)
			if rapid.Bool().Draw(t, "unproven") {
				all = append(all, unproven(b))
				continue
			}
			if proven[node] == nil {
				proven[node] = map[string]bool{}
			}
			proven[node][team] = true
			all = append(all, b)
		}
		now := time.Unix(100, 0)
		suspects := Suspects(all, 3, now)
		if diff := cmp.Diff(suspects, Suspects(rapid.Permutation(all).Draw(t, "in another order"), 3, now)); diff != "" {
			t.Errorf("(-one +other):\n%s", diff)
		}
		if len(suspects) > 1 {
			t.Errorf("all of these are suspect: %v", suspects)
		}
		for _, s := range suspects {
			if len(proven[s.Node]) < 2 || s.By < 3 {
				t.Errorf("%v is suspect", s)
			}
		}
	})
}

// What an AppWrapper says about the node on which it failed.
func TestWorkProvesThatItDoesWellElsewhere(t *testing.T) {
	began := time.Unix(10000, 0)
	for sentence, tc := range map[string]struct {
		phase  v1beta2.AppWrapperPhase
		ready  metav1.ConditionStatus
		lasted time.Duration
		after  time.Duration
		proven bool
		none   bool
	}{
		"it has succeeded":                           {phase: v1beta2.AppWrapperSucceeded, proven: true},
		"it runs for longer than the attempt":        {phase: v1beta2.AppWrapperRunning, ready: "True", lasted: time.Hour, after: time.Hour, proven: true},
		"it has not run for so long":                 {phase: v1beta2.AppWrapperRunning, ready: "True", lasted: time.Hour, after: time.Hour - time.Second},
		"a failure at once needs five minutes":       {phase: v1beta2.AppWrapperRunning, ready: "True", after: 5 * time.Minute, proven: true},
		"and not less":                               {phase: v1beta2.AppWrapperRunning, ready: "True", after: 5*time.Minute - time.Second},
		"its pods are not ready":                     {phase: v1beta2.AppWrapperRunning, ready: "False", after: time.Hour},
		"it is being reset":                          {phase: v1beta2.AppWrapperResetting, ready: "True", after: time.Hour},
		"it has failed for good, and blames no node": {phase: v1beta2.AppWrapperFailed, after: time.Hour, none: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			status := v1beta2.AppWrapperStatus{Phase: tc.phase, FailedNode: &v1beta2.FailedNode{
				Name: "a", Cause: "PodFailed exit-1", LastedSeconds: int64(tc.lasted / time.Second), Until: metav1.Unix(99999, 0)}}
			if tc.ready != "" {
				status.Conditions = []metav1.Condition{{Type: string(v1beta2.PodsReady), Status: tc.ready, LastTransitionTime: metav1.Time{Time: began}}}
			}
			want := []Blame{{Node: "a", Cause: "PodFailed exit-1", Until: time.Unix(99999, 0), Unproven: !tc.proven}}
			if tc.none {
				want = []Blame{}
			}
			if diff := cmp.Diff(want, Blames(types.NamespacedName{}, status, began.Add(tc.after))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
