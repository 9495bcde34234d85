// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

var rejected = nodehealth.Cause{Source: nodehealth.PodRejected, Sign: "UnexpectedAdmissionError"}

// failedOn adds a failed pod for which a node is to blame.
func failedOn(node string, causes ...nodehealth.Cause) change {
	return func(s *lifecycle.Snapshot) {
		s.Components[0].Verdict = kinds.Failed
		s.Pods = append(s.Pods, lifecycle.Pod{Phase: corev1.PodFailed, MigrateFrom: node, MigrateBecause: causes})
	}
}

// avoids are nodes that the status has, until so long after deployedAt.
func avoids(until time.Duration, nodes ...string) change {
	return func(s *lifecycle.Snapshot) {
		for _, name := range nodes {
			s.Status.AvoidedNodes = append(s.Status.AvoidedNodes,
				v1beta2.AvoidedNode{Name: name, Cause: "PodRejected NodeAffinity", Until: metav1.Time{Time: deployedAt.Add(until)}})
		}
	}
}

func TestNodesThatFailedAreAvoided(t *testing.T) {
	broken := nodehealth.Cause{Source: nodehealth.NodeCondition, Sign: "GpuUnhealthy=True"}
	label := nodehealth.Cause{Source: nodehealth.NodeLabel, Sign: "health=EVICT"}
	noneAllowed := policy(func(p *lifecycle.Policy) { p.Avoid.Nodes = 0 })
	for sentence, tc := range map[string]struct {
		given []change
		want  []string
	}{
		"a node that rejected a pod":                          {[]change{failedOn("a", rejected)}, []string{"a"}},
		"all nodes that did, in order":                        {[]change{failedOn("b", rejected), failedOn("a", broken), failedOn("b", broken)}, []string{"a", "b"}},
		"no node with a label, which the scheduler sees":      {[]change{failedOn("a", label)}, nil},
		"but one that has a label and another sign":           {[]change{failedOn("a", label, rejected)}, []string{"a"}},
		"a node that pods leave in time":                      {[]change{ready, withPods(runs, runs), onUnhealthyNodes(0), func(s *lifecycle.Snapshot) { s.Pods[0].MigrateBecause = []nodehealth.Cause{broken} }}, []string{"node-a"}},
		"no node if the work failed by itself":                {[]change{verdict(kinds.Failed), withPods("Failed")}, nil},
		"nodes of attempts before, until their time is over":  {[]change{avoids(time.Minute, "x"), avoids(0, "y"), failedOn("a", rejected)}, []string{"x", "a"}},
		"not until a time that no clock here wrote":           {[]change{avoids(100*time.Hour, "x"), failedOn("a", rejected)}, []string{"a"}},
		"a node once, and it is the latest then":              {[]change{avoids(time.Minute, "a", "x"), failedOn("a", rejected)}, []string{"x", "a"}},
		"the latest of too many":                              {[]change{avoids(time.Minute, "1", "2", "3", "4", "5", "6", "7", "8"), failedOn("a", rejected)}, []string{"2", "3", "4", "5", "6", "7", "8", "a"}},
		"none if the author or the administrator wants none":  {[]change{noneAllowed, avoids(time.Minute, "x"), failedOn("a", rejected)}, nil},
		"none beyond the limit, because that is another kind": {[]change{failedOn("a", rejected), migrated(10)}, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := runningJob()
			for _, c := range tc.given {
				c(&s)
			}
			if diff := cmp.Diff(tc.want, namesOf(lifecycle.Decide(s, deployedAt).Status.AvoidedNodes)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func namesOf(nodes []v1beta2.AvoidedNode) []string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}

func TestTheCauseAndTheTimesAreNoted(t *testing.T) {
	s := runningJob()
	failedOn("a", rejected)(&s)
	want := []v1beta2.AvoidedNode{{Name: "a", Cause: "PodRejected UnexpectedAdmissionError", Since: &metav1.Time{Time: deployedAt}, Until: metav1.Time{Time: deployedAt.Add(time.Hour)}}}
	if diff := cmp.Diff(want, lifecycle.Decide(s, deployedAt).Status.AvoidedNodes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A new attempt, and also the first one after a suspension, says which nodes it avoids.
func TestAnAttemptSaysWhichNodesItAvoids(t *testing.T) {
	for sentence, tc := range map[string]struct {
		given change
		want  string
	}{
		"those whose time is not over":    {avoids(3*time.Hour-time.Minute, "a", "b"), "a (PodRejected NodeAffinity), b (PodRejected NodeAffinity)"},
		"and nothing if there are none":   {avoids(time.Hour, "a"), ""},
		"as without any failure of nodes": {func(*lifecycle.Snapshot) {}, ""},
		"those that only Kueue can avoid": {func(s *lifecycle.Snapshot) {
			avoids(3*time.Hour-time.Minute, "a")(s)
			placedByKueue(s)
		}, "Kueue assigns nodes, and is asked to keep away from those that failed: a (PodRejected NodeAffinity)"},
		"and those that failed others": {func(s *lifecycle.Snapshot) {
			s.Suspects = []nodehealth.Suspect{{Node: "c", By: 3, Cause: "PodRejected OutOfcpu"}}
		}, "c (PodRejected OutOfcpu)"},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := deployed(v1beta2.AppWrapperResetting)
			removed(0)(&s)
			tc.given(&s)
			d := lifecycle.Decide(s, deployedAt.Add(2*time.Hour))
			if d.Status.Phase != v1beta2.AppWrapperResuming {
				t.Fatalf("it is %s", d.Status.Phase)
			}
			if tc.want == "" && (d.Event != nil || len(d.Status.AvoidedNodes) > 0) {
				t.Errorf("it avoids %v and says %v", d.Status.AvoidedNodes, d.Event)
			}
			if tc.want != "" && (d.Event == nil || d.Event.Reason != "NodesAvoided" || !strings.HasSuffix(": "+d.Event.Message, ": "+tc.want)) {
				t.Errorf("it says %v", d.Event)
			}
		})
	}
}

func placedByKueue(s *lifecycle.Snapshot) { s.NodesAssigned = true }

// Work must not wait without end for a node because of those that it avoids.
func TestNodesAreForgottenIfThereIsNoRoom(t *testing.T) {
	for sentence, tc := range map[string]struct {
		given []change
		want  int
	}{
		"pods that find no node":                     {[]change{withPods(runs, pending)}, 0},
		"pods that find none after migrations":       {[]change{withPods(runs, pending), movedIn, migrated(1)}, 0},
		"pods that are not created":                  {[]change{withPods(runs)}, 1},
		"pods to which Kueue assigns nodes":          {[]change{withPods(runs, pending), placedByKueue}, 1},
		"pods that have a node, where they are slow": {[]change{withPods(runs, pending), allPods(func(p *lifecycle.Pod) { p.Started = deployedAt })}, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := runningJob()
			avoids(time.Hour, "a")(&s)
			for _, c := range tc.given {
				c(&s)
			}
			d := lifecycle.Decide(s, deployedAt.Add(10*time.Minute))
			if d.Status.Phase != v1beta2.AppWrapperResetting || len(d.Status.AvoidedNodes) != tc.want {
				t.Errorf("it is %s and avoids %v", d.Status.Phase, d.Status.AvoidedNodes)
			}
		})
	}
}

// Pods that have a node and do not start there tell something about the node if its kubelet does
// nothing, or if others start elsewhere. Their image may not exist otherwise.
func TestNodesThatStartNoPods(t *testing.T) {
	on := func(nodes ...string) change {
		return func(s *lifecycle.Snapshot) {
			for i, node := range nodes {
				s.Pods[i].Node = node
			}
		}
	}
	begun := allPods(func(p *lifecycle.Pod) { p.Started = deployedAt })
	for sentence, tc := range map[string]struct {
		given      []change
		avoided    []string
		migrations int32
	}{
		"a kubelet that does not begin":              {[]change{withPods(runs, pending), on("a", "b")}, []string{"b"}, 1},
		"also in the attempt after a migration":      {[]change{movedIn, migrated(1), withPods(runs, pending), on("a", "b")}, []string{"b"}, 2},
		"a pod that is late where others are not":    {[]change{withPods(runs, pending), begun, on("a", "b")}, []string{"b"}, 0},
		"pods that are late everywhere":              {[]change{withPods(pending, pending), begun, on("a", "b")}, nil, 0},
		"a pod that is late where another runs":      {[]change{withPods(runs, runs, pending), begun, on("a", "b", "b"), policy(func(p *lifecycle.Policy) {}), func(s *lifecycle.Snapshot) { s.Pods[1].Phase = pending; s.Pods[2].Phase = runs }}, nil, 0},
		"a pod that is late where only others began": {[]change{withPods(runs, pending), begun, on("a", "b"), func(s *lifecycle.Snapshot) { s.Pods[0].Component = lifecycle.UnknownComponent }}, nil, 0},
		"a pod that has no node":                     {[]change{withPods(runs, pending), on("a")}, nil, 0},
		"a pod that its assigned node does not get":  {[]change{withPods(runs, pending), on("a"), placedByKueue}, nil, 1},
		"the same at the limit":                      {[]change{withPods(runs, pending), on("a"), placedByKueue, migrated(10)}, nil, 10},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := runningJob()
			for _, c := range tc.given {
				c(&s)
			}
			d := lifecycle.Decide(s, deployedAt.Add(10*time.Minute))
			if d.Status.Phase != v1beta2.AppWrapperResetting || d.Status.Migrations != tc.migrations {
				t.Errorf("it is %s after %d migrations", d.Status.Phase, d.Status.Migrations)
			}
			if diff := cmp.Diff(tc.avoided, namesOf(d.Status.AvoidedNodes)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// However nodes fail, and in whatever order, an AppWrapper avoids few of them, each once, for a
// bounded time, and none that is not to blame.
func TestAvoidanceIsBounded(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	rapid.Check(t, func(t *rapid.T) {
		s, now, blamed := runningJob(), deployedAt, map[string]bool{}
		s.Policy.MigrationLimit = 1000
		s.Policy.Avoid = lifecycle.Avoidance{Nodes: rapid.Int32Range(0, 4).Draw(t, "nodes"), Period: time.Duration(rapid.IntRange(0, 100).Draw(t, "minutes")) * time.Minute}
		for range rapid.IntRange(1, 12).Draw(t, "failures") {
			attempt := s
			for range rapid.IntRange(1, 4).Draw(t, "pods") {
				node := rapid.SampledFrom(names).Draw(t, "node")
				source := rapid.SampledFrom(nodehealth.Sources()).Draw(t, "source")
				failedOn(node, nodehealth.Cause{Source: source, Sign: "s"})(&attempt)
				blamed[node] = true
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "passed")) * time.Minute)
			s.Status.AvoidedNodes = lifecycle.Decide(attempt, now).Status.AvoidedNodes
			avoided := namesOf(s.Status.AvoidedNodes)
			if len(avoided) > int(s.Policy.Avoid.Nodes) {
				t.Fatalf("it avoids %v, more than %d", avoided, s.Policy.Avoid.Nodes)
			}
			slices.Sort(avoided)
			if len(slices.Compact(avoided)) != len(s.Status.AvoidedNodes) {
				t.Fatalf("it avoids a node twice: %v", avoided)
			}
			for _, n := range s.Status.AvoidedNodes {
				if !blamed[n.Name] || !now.Before(n.Until.Time) || n.Until.After(now.Add(s.Policy.Avoid.Period)) {
					t.Fatalf("it avoids %v at %s", n, now)
				}
			}
		}
	})
}
