// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// blamedBy are AppWrappers, each as team/name, that a node failed at second 100.
func blamedBy(node string, cause Cause, all ...string) []Blame {
	var blames []Blame
	for _, by := range all {
		blames = append(blames, Blame{
			By: types.NamespacedName{Namespace: by[:1], Name: by}, Node: node, Cause: cause.String(), Since: time.Unix(100, 0), Until: time.Unix(200, 0),
		})
	}
	return blames
}

// nodeOf is a node that came at second 1.
func nodeOf(name string, changes ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(1, 0), Annotations: map[string]string{}}}
	for _, change := range changes {
		change(&n)
	}
	return n
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func byUs(n *corev1.Node) { n.Annotations[v1beta2.CordonedAnnotation] = "then" }

func uncordonedAt(second int64) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Annotations[v1beta2.UncordonedAnnotation] = time.Unix(second, 0).UTC().Format(time.RFC3339)
	}
}

var (
	rejected     = Cause{PodRejected, "UnexpectedAdmissionError"}
	silent       = Cause{PodNotStarted, "kubelet-silent"}
	othersStart  = Cause{PodNotStarted, OthersStarted}
	oneOfTwo     = Cordoning{Nodes: 1, AppWrappers: 3, Teams: 2}
	ofTwoTeams   = blamedBy("a", rejected, "x1", "x2", "y1")
	suspectA     = Suspect{Node: "a", By: 3, Teams: 2, Cause: rejected.String()}
	secondOnesB  = blamedBy("b", rejected, "x1", "x2", "y1", "y2")
	suspectB     = Suspect{Node: "b", By: 4, Teams: 2, Cause: rejected.String()}
	bothAreAtIt  = append(append([]Blame{}, ofTwoTeams...), secondOnesB...)
	nodesA, nodA = []corev1.Node{nodeOf("a")}, func(changes ...func(*corev1.Node)) []corev1.Node { return []corev1.Node{nodeOf("a", changes...)} }
)

func TestCordons(t *testing.T) {
	for sentence, tc := range map[string]struct {
		nodes  []corev1.Node
		blames []Blame
		may    Cordoning
		want   Cordons
	}{
		"a node that failed enough AppWrappers of two teams": {nodesA, ofTwoTeams, oneOfTwo, Cordons{Begin: []Suspect{suspectA}}},
		"one whose kubelet does nothing": {nodesA, blamedBy("a", silent, "x1", "x2", "y1"), oneOfTwo,
			Cordons{Begin: []Suspect{{Node: "a", By: 3, Teams: 2, Cause: silent.String()}}}},
		"none where no administrator wants it":            {nodesA, ofTwoTeams, Cordoning{AppWrappers: 3, Teams: 2}, Cordons{Spared: []Suspect{suspectA}}},
		"not one that failed too few":                     {nodesA, blamedBy("a", rejected, "x1", "y1"), oneOfTwo, Cordons{}},
		"not one that failed a single team, however much": {nodesA, blamedBy("a", rejected, "x1", "x2", "x3", "x4", "x5"), oneOfTwo, Cordons{}},
		"not one that failed too few teams":               {nodesA, ofTwoTeams, Cordoning{Nodes: 1, AppWrappers: 3, Teams: 3}, Cordons{}},
		"not one whose pods their authors may keep from starting": {nodesA, append(blamedBy("a", othersStart, "x1", "x2", "x3"), blamedBy("a", rejected, "y1", "y2")...),
			oneOfTwo, Cordons{}},
		"not one that somebody has cordoned":          {nodA(cordoned), ofTwoTeams, oneOfTwo, Cordons{}},
		"not one that is cordoned":                    {nodA(cordoned, byUs), ofTwoTeams, oneOfTwo, Cordons{}},
		"not one that is being deleted":               {nodA(func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{} }), ofTwoTeams, oneOfTwo, Cordons{}},
		"not a new node with the name of an old one":  {nodA(func(n *corev1.Node) { n.CreationTimestamp = metav1.Unix(150, 0) }), ofTwoTeams, oneOfTwo, Cordons{}},
		"not one that is gone":                        {nil, ofTwoTeams, oneOfTwo, Cordons{}},
		"not one that somebody has just uncordoned":   {nodA(byUs), ofTwoTeams, oneOfTwo, Cordons{Ended: []string{"a"}}},
		"not one that has failed nobody since then":   {nodA(uncordonedAt(100)), ofTwoTeams, oneOfTwo, Cordons{}},
		"one that has failed enough again":            {nodA(uncordonedAt(99)), ofTwoTeams, oneOfTwo, Cordons{Begin: []Suspect{suspectA}}},
		"the worst of two if it may be one":           {[]corev1.Node{nodeOf("a"), nodeOf("b")}, bothAreAtIt, oneOfTwo, Cordons{Begin: []Suspect{suspectB}, Spared: []Suspect{suspectA}}},
		"both if it may be two":                       {[]corev1.Node{nodeOf("a"), nodeOf("b")}, bothAreAtIt, Cordoning{2, 3, 2}, Cordons{Begin: []Suspect{suspectB, suspectA}}},
		"none while there is one":                     {[]corev1.Node{nodeOf("a"), nodeOf("b", cordoned, byUs)}, bothAreAtIt, oneOfTwo, Cordons{Spared: []Suspect{suspectA}}},
		"none while there are more than there may be": {[]corev1.Node{nodeOf("a"), nodeOf("b", cordoned, byUs), nodeOf("c", cordoned, byUs)}, ofTwoTeams, oneOfTwo, Cordons{Spared: []Suspect{suspectA}}},
		"one beside those that others cordoned":       {[]corev1.Node{nodeOf("a"), nodeOf("b", cordoned)}, bothAreAtIt, oneOfTwo, Cordons{Begin: []Suspect{suspectA}}},
		"another one as soon as the first is uncordoned": {[]corev1.Node{nodeOf("a"), nodeOf("b", byUs)}, bothAreAtIt, oneOfTwo,
			Cordons{Begin: []Suspect{suspectA}, Ended: []string{"b"}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := tc.may.Decide(tc.nodes, tc.blames, time.Unix(101, 0))
			if diff := cmp.Diff(tc.want, got, sameIfEmpty); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

var sameIfEmpty = cmp.Transformer("empty", func(all []Suspect) string { return fmt.Sprint(all) })

// Whatever one team does, and whatever others do without it: no more nodes are cordoned than may
// be, none because of one team, none that another has cordoned, and the cache decides as the
// API server.
func TestCordonsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		may := Cordoning{rapid.IntRange(0, 3).Draw(t, "nodes"), rapid.IntRange(2, 4).Draw(t, "AppWrappers"), rapid.IntRange(2, 3).Draw(t, "teams")}
		nodes, slim, before := []corev1.Node{}, []corev1.Node{}, 0
		for _, name := range []string{"a", "b", "c", "d"} {
			n := nodeOf(name, func(n *corev1.Node) { n.Spec.Unschedulable = rapid.Bool().Draw(t, "cordoned") })
			if rapid.Bool().Draw(t, "ours") {
				byUs(&n)
			}
			uncordonedAt(rapid.Int64Range(90, 110).Draw(t, "uncordoned"))(&n)
			if _, ours := n.Annotations[v1beta2.CordonedAnnotation]; ours && n.Spec.Unschedulable {
				before++
			}
			nodes, slim = append(nodes, n), append(slim, *Rules{}.Slim(&n))
		}
		blames := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Blame {
			by := rapid.SampledFrom([]string{"x1", "x2", "x3", "y1", "y2", "z1"}).Draw(t, "by")
			return blamedBy(rapid.SampledFrom([]string{"a", "b", "c", "d", "gone"}).Draw(t, "node"), rapid.SampledFrom([]Cause{rejected, silent, othersStart}).Draw(t, "cause"), by)[0]
		})).Draw(t, "blames")
		d := may.Decide(nodes, blames, time.Unix(101, 0))
		if diff := cmp.Diff(d, may.Decide(slim, blames, time.Unix(101, 0)), sameIfEmpty); diff != "" {
			t.Errorf("(-API server +cache):\n%s", diff)
		}
		if len(d.Begin) > max(0, may.Nodes-before) {
			t.Errorf("%d are cordoned, and then %v", before, d.Begin)
		}
		for _, s := range d.Begin {
			if s.Teams < 2 || s.By < may.AppWrappers || nodes[s.Node[0]-'a'].Spec.Unschedulable {
				t.Errorf("it cordons %v", s)
			}
		}
	})
}
