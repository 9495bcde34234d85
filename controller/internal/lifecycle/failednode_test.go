// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// exitsOn adds a pod whose program fails on a node, with these exit codes.
func exitsOn(node string, codes ...int32) change {
	return func(s *lifecycle.Snapshot) {
		s.Components[0].Verdict = kinds.Failed
		s.Pods = append(s.Pods, lifecycle.Pod{Phase: corev1.PodFailed, Node: node, Started: deployedAt, ExitCodes: codes})
	}
}

// on adds pods in this phase on the nodes.
func on(phase corev1.PodPhase, nodes ...string) change {
	return func(s *lifecycle.Snapshot) {
		for _, node := range nodes {
			s.Pods = append(s.Pods, lifecycle.Pod{Phase: phase, Node: node, Started: deployedAt})
		}
	}
}

// failedBefore: the program failed on this node, and was tried again.
func failedBefore(node string) change {
	return func(s *lifecycle.Snapshot) {
		s.Status.Retries = 1
		s.Status.FailedNode = &v1beta2.FailedNode{Name: node, Cause: "PodFailed exit-1", Until: metav1.Time{Time: deployedAt.Add(time.Hour)}}
	}
}

func nameOf(n *v1beta2.FailedNode) string {
	if n == nil {
		return ""
	}
	return n.Name
}

func TestWhereAProgramFailedIsNoted(t *testing.T) {
	terminates := allPods(func(p *lifecycle.Pod) { p.Terminating = true })
	for sentence, tc := range map[string]struct {
		given []change
		want  string
	}{
		"a program that fails on one node":                        {[]change{exitsOn("a", 1)}, "a"},
		"also several pods of it there":                           {[]change{exitsOn("a", 1), exitsOn("a", 2)}, "a"},
		"while others run elsewhere":                              {[]change{on(runs, "b"), exitsOn("a", 1)}, "a"},
		"not one that fails on two nodes":                         {[]change{exitsOn("a", 1), exitsOn("b", 1)}, ""},
		"not one that was killed, or had too little memory":       {[]change{exitsOn("a", 137)}, ""},
		"not one that was told to end":                            {[]change{exitsOn("a", 1, 143)}, ""},
		"not a pod that is deleted":                               {[]change{exitsOn("a", 1), terminates}, ""},
		"not a pod without an exit code":                          {[]change{exitsOn("a")}, ""},
		"nothing without its node":                                {[]change{exitsOn("", 1)}, ""},
		"again where it failed before":                            {[]change{failedBefore("a"), exitsOn("a", 1)}, "a"},
		"no node any more when it failed elsewhere before":        {[]change{failedBefore("b"), exitsOn("a", 1)}, ""},
		"nor after a failure of which nothing is known":           {[]change{retried(1), exitsOn("a", 1)}, ""},
		"nor when pods fail without telling where":                {[]change{failedBefore("a"), verdict(kinds.Failed), withPods(broken)}, ""},
		"nor if the author or the administrator wants no such":    {[]change{policy(func(p *lifecycle.Policy) { p.Avoid.Nodes = 0 }), exitsOn("a", 1)}, ""},
		"it stays when work leaves another node that is to blame": {[]change{failedBefore("a"), failedOn("b", rejected)}, "a"},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := runningJob()
			for _, c := range tc.given {
				c(&s)
			}
			d := lifecycle.Decide(s, deployedAt.Add(time.Minute))
			if d.Status.Phase != v1beta2.AppWrapperResetting || nameOf(d.Status.FailedNode) != tc.want {
				t.Errorf("it is %s, and failed on %v", d.Status.Phase, d.Status.FailedNode)
			}
		})
	}
}

func TestHowAProgramFailedIsNoted(t *testing.T) {
	s := runningJob()
	exitsOn("a", 3)(&s)
	now := deployedAt.Add(90 * time.Second)
	want := &v1beta2.FailedNode{Name: "a", Cause: "PodFailed exit-3", LastedSeconds: 90, Until: metav1.Time{Time: now.Add(time.Hour)}}
	d := lifecycle.Decide(s, now)
	if diff := cmp.Diff(want, d.Status.FailedNode); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(d.Status.AvoidedNodes) > 0 {
		t.Errorf("it avoids %v", d.Status.AvoidedNodes)
	}
}

// Work that does well says something about the node on which it failed only if it is elsewhere.
func TestANodeIsForgottenWhereItsProgramWorks(t *testing.T) {
	for sentence, tc := range map[string]struct {
		given []change
		want  string
	}{
		"its pods are ready elsewhere":          {[]change{on(runs, "b", "c")}, "a"},
		"one of them is ready there":            {[]change{on(runs, "b", "a")}, ""},
		"nobody knows where they are":           {[]change{on(runs, "b", "")}, ""},
		"it succeeds elsewhere":                 {[]change{on(done, "b", "c"), verdict(kinds.Succeeded)}, "a"},
		"it succeeds there":                     {[]change{ready, on(done, "b", "a"), verdict(kinds.Succeeded)}, ""},
		"it succeeds, and its pods are gone":    {[]change{ready, verdict(kinds.Succeeded)}, "a"},
		"it succeeds, and no pod was ever seen": {[]change{verdict(kinds.Succeeded)}, ""},
		"its pods are not ready":                {[]change{on(runs, "a"), on(pending, "b")}, "a"},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := runningJob()
			failedBefore("a")(&s)
			for _, c := range tc.given {
				c(&s)
			}
			if got := nameOf(lifecycle.Decide(s, deployedAt.Add(time.Second)).Status.FailedNode); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A new attempt begins without what is forgotten.
func TestAFailedNodeIsForgottenWhenItsTimeIsOver(t *testing.T) {
	for after, want := range map[time.Duration]string{time.Hour - time.Second: "a", time.Hour: ""} {
		s := deployed(v1beta2.AppWrapperResetting)
		removed(0)(&s)
		failedBefore("a")(&s)
		d := lifecycle.Decide(s, deployedAt.Add(after))
		if got := nameOf(d.Status.FailedNode); d.Status.Phase != v1beta2.AppWrapperResuming || got != want {
			t.Errorf("after %s it is %s, and failed on %q", after, d.Status.Phase, got)
		}
	}
}

// A program that fails on more than one node says nothing about any, whatever it does later.
func TestAProgramThatFailsEverywhereBlamesNoNode(t *testing.T) {
	nodes := rapid.SampledFrom([]string{"a", "b"})
	rapid.Check(t, func(t *rapid.T) {
		s, seen := runningJob(), map[string]bool{}
		s.Policy.RetryLimit = 1000
		for range rapid.IntRange(1, 8).Draw(t, "failures") {
			attempt := s
			for range rapid.IntRange(1, 3).Draw(t, "pods") {
				node := nodes.Draw(t, "node")
				exitsOn(node, 1)(&attempt)
				seen[node] = true
			}
			status := lifecycle.Decide(attempt, deployedAt.Add(time.Minute)).Status
			s.Status.Retries, s.Status.FailedNode = status.Retries, status.FailedNode
			if name := nameOf(s.Status.FailedNode); len(seen) > 1 && name != "" || len(seen) == 1 && !seen[name] {
				t.Fatalf("after failures on %v it blames %q", seen, name)
			}
		}
	})
}
