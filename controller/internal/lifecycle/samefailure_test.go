// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// failedBeforeLikeThat: rank 0 ended with exit code 1 on node a, 7 seconds after its start, 100 seconds before the
// present attempt began; with these changes.
func failedBeforeLikeThat(edits ...func(*v1beta2.AppWrapperAttempt)) change {
	return func(s *lifecycle.Snapshot) {
		a := v1beta2.AppWrapperAttempt{
			Began: metav1.Time{Time: deployedAt.Add(-2 * time.Minute)}, Ended: metav1.Time{Time: deployedAt.Add(-100 * time.Second)},
			Cause: string(lifecycle.CauseComponentFailed), Pod: "train-0-x", PodSet: new(int32(0)), Rank: "0", Node: "a", Container: "main",
			ExitCode: 1, RanSeconds: new(int64(7)), FailedByItself: true,
		}
		for _, edit := range edits {
			edit(&a)
		}
		ready(s)
		s.Status.Retries = 1
		s.Status.LastAttempts = append(s.Status.LastAttempts, a)
	}
}

// dies adds a pod of a rank that ends on a node, so long after the attempt began, when it has run for a while.
func dies(rank, node string, code int32, at, ran time.Duration) change {
	return func(s *lifecycle.Snapshot) {
		f := exits("main", code, at)
		f.Began = f.At.Add(-ran)
		s.Components[0].Verdict = kinds.Failed
		s.Pods = append(s.Pods, lifecycle.Pod{Name: fmt.Sprintf("train-%s-%d", rank, len(s.Pods)), Rank: rank, Node: node, Phase: corev1.PodFailed,
			Started: f.Began, ExitCodes: []int32{code}, Failures: []lifecycle.Failure{f}})
	}
}

var again = dies("0", "b", 1, 10*time.Second, 5*time.Second)

const blamesTheProgram = "; pod train-0-0: container main ended with exit code 1; rank 0 ended twice with exit code 1 within 8 s of its start, " +
	"on nodes a and b; it is not tried again: mend the program, then use mlbatch retry; an explicit retryLimit changes this"

func TestAProgramThatFailsTwiceInTheSameWayIsNotTriedAgain(t *testing.T) {
	ended := outcome{Phase: v1beta2.AppWrapperFailed, Event: v1beta2.ReasonFailedComponent, Retries: 1,
		Conditions: map[string]string{"Unhealthy": "True FailedComponent", "PodsReady": "False Failed"}}
	checkRows(t, runningJob, map[string]row{
		"the same rank ended with the same code on another node": {given: []change{failedBeforeLikeThat(), again}, after: time.Minute, want: ended},
	})
	s := runningJob()
	failedBeforeLikeThat()(&s)
	again(&s)
	d := lifecycle.Decide(s, deployedAt.Add(time.Minute))
	if c := meta.FindStatusCondition(d.Status.Conditions, string(v1beta2.Finished)); c == nil || c.Message != "1 of 1 components failed"+blamesTheProgram || d.Event.Message != c.Message {
		t.Errorf("the condition is %v", c)
	}
	if last := d.Status.LastAttempts[1]; last.Cause != "SameFailure" {
		t.Errorf("the last attempt is %+v", last)
	}
}

func TestOnlyTheProgramIsBlamedForTheSameFailure(t *testing.T) {
	after := func(edit func(*v1beta2.AppWrapperAttempt)) []change {
		return []change{failedBeforeLikeThat(edit), again}
	}
	with := func(changes ...change) []change { return append([]change{failedBeforeLikeThat()}, changes...) }
	onTheSameNode := dies("0", "a", 1, 10*time.Second, 5*time.Second)
	for sentence, tc := range map[string]struct {
		given []change
		ends  bool
	}{
		"on one node of which nobody knows anything bad":  {with(onTheSameNode), true},
		"the first of several ranks":                      {with(again, dies("1", "c", 1, 11*time.Second, 6*time.Second)), true},
		"while other ranks are killed because of it":      {with(again, dies("1", "c", 137, 12*time.Second, 6*time.Second)), true},
		"while others still run":                          {with(again, on(runs, "c", "d")), true},
		"also if its Job tried that rank again, in vain":  {with(again, dies("0", "c", 1, 30*time.Second, 5*time.Second)), true},
		"a pod set of two":                                {with(twoPodSets, again), true},
		"after pods went because of it":                   {with(again, lastGone(11*time.Second)), true},
		"an author who sets a time, and a limit":          {with(again, policy(func(p *lifecycle.Policy) { p.SameFailure = time.Minute })), true},
		"if all have started, though not together":        {with(again, neverReady, peer("1", runs)), true},
		"not if another pod never started":                {with(again, neverReady, peer("1", pending)), false},
		"nor if that one is gone":                         {with(again, neverReady), false},
		"not if it did not fail by itself before":         {after(func(a *v1beta2.AppWrapperAttempt) { a.FailedByItself = false }), false},
		"not the first time":                              {[]change{again}, false},
		"not if its author has said how often":            {with(again, policy(func(p *lifecycle.Policy) { p.SameFailure = 0 })), false},
		"not with another code":                           {after(func(a *v1beta2.AppWrapperAttempt) { a.ExitCode = 2 }), false},
		"not another rank":                                {after(func(a *v1beta2.AppWrapperAttempt) { a.Rank = "1" }), false},
		"not the same number in another pod set":          {after(func(a *v1beta2.AppWrapperAttempt) { a.PodSet = new(int32(1)) }), false},
		"not another container":                           {after(func(a *v1beta2.AppWrapperAttempt) { a.Container = "side" }), false},
		"not if it ran for two minutes before":            {after(func(a *v1beta2.AppWrapperAttempt) { a.RanSeconds = new(int64(120)) }), false},
		"not if it ran for two minutes now":               {with(dies("0", "b", 1, 3*time.Minute, 2*time.Minute)), false},
		"not if nobody knows for how long it ran before":  {after(func(a *v1beta2.AppWrapperAttempt) { a.RanSeconds = nil }), false},
		"not if nobody knows which rank it was":           {after(func(a *v1beta2.AppWrapperAttempt) { a.Rank, a.PodSet = "", nil }), false},
		"not if its kind numbers no pods":                 {with(again, allPods(func(p *lifecycle.Pod) { p.Rank = "" })), false},
		"not if nobody knows where it was":                {after(func(a *v1beta2.AppWrapperAttempt) { a.Node = "" }), false},
		"not if the attempt before ended for its node":    {after(func(a *v1beta2.AppWrapperAttempt) { a.Cause = string(lifecycle.CauseNodeUnhealthy) }), false},
		"not if it hung before":                           {after(func(a *v1beta2.AppWrapperAttempt) { a.Cause = string(lifecycle.CauseNoProgress) }), false},
		"not for lack of memory":                          {after(func(a *v1beta2.AppWrapperAttempt) { a.Reason = "OOMKilled" }), false},
		"nor now":                                         {with(failedPod("train-0-0", outOfMemory("main", time.Second)), failedOnB), false},
		"not if a kubelet evicted it":                     {with(failedPod("train-0-0", evictedBecause("", time.Second)), failedOnB), false},
		"not if there was a preemption in between":        {with(failedBeforeLikeThat(func(a *v1beta2.AppWrapperAttempt) { a.Cause, a.ExitCode = "Suspended", 0 }), again), false},
		"not if something told it to end":                 {sameCode(143), false},
		"not if something killed it":                      {sameCode(137), false},
		"not if it waited in vain for others":             {sameCode(134), false},
		"not if others ended in the same second":          {with(again, dies("1", "c", 1, 10*time.Second, 5*time.Second)), false},
		"not if nobody knows when others ended":           {with(again, failedPod("train-1-9", lifecycle.Failure{Container: "main", ExitCode: 1})), false},
		"not if a pod does not say how it ended":          {with(again, withPods(broken)), false},
		"not if a pod is on a node that does not answer":  {with(again, withPods(unreachable)), false},
		"not if its Job's next pod of that rank did more": {with(again, dies("0", "c", 1, time.Hour, 50*time.Minute)), false},
		"not if its Job's next pod of that rank runs":     {with(again, sameRankRuns), false},
		"not if a pod went before":                        {with(again, lastGone(5*time.Second)), false},
		"not if a pod was interrupted before that went":   {with(again, interrupted(5*time.Second), lastGone(11*time.Second)), false},
		"after a pod was interrupted because of it":       {with(again, interrupted(11*time.Second)), true},
		"not if one is interrupted that is there":         {with(again, allPods(func(p *lifecycle.Pod) { p.Interrupted = deployedAt.Add(10 * time.Second) })), false},
		"not if nobody watched from the beginning":        {with(again, watchedSince(time.Second)), false},
		"if somebody watched from the beginning":          {with(again, watchedSince(0)), true},
		"not if Kubernetes evicted a pod":                 {with(again, evictedFromItsNode), false},
		"not if a pod has to leave its node":              {with(again, func(s *lifecycle.Snapshot) { s.Pods[0].MigrateFrom = "b" }), false},
		"not on one that others have failed on":           {with(onTheSameNode, suspected("a")), false},
		"nor if that one is the ninth":                    {with(onTheSameNode, suspected("1"), suspected("2"), suspected("3"), suspected("4"), suspected("5"), suspected("6"), suspected("7"), suspected("8"), suspected("a")), false},
		"not on one that failed this work":                {with(onTheSameNode, avoiding("a")), false},
		"not if the attempts were in the same outage":     {after(func(a *v1beta2.AppWrapperAttempt) { a.Ended = metav1.Time{Time: deployedAt.Add(-89 * time.Second)} }), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := runningJob()
			s.Policy.MigrationLimit = 0 // or work would leave nodes, and not fail
			for _, c := range tc.given {
				c(&s)
			}
			d := lifecycle.Decide(s, deployedAt.Add(2*time.Hour))
			if ended := d.Because == lifecycle.CauseSameFailure; ended != tc.ends || ended != (d.Status.Phase == v1beta2.AppWrapperFailed) {
				t.Errorf("it is %s because %s: %v", d.Status.Phase, d.Because, d.Event)
			}
		})
	}
}

// failedOnB makes its pods those of rank 0 on node b.
func failedOnB(s *lifecycle.Snapshot) {
	s.Components[0].Verdict = kinds.Failed
	for i := range s.Pods {
		s.Pods[i].Rank, s.Pods[i].Node, s.Pods[i].Started = "0", "b", deployedAt
		for j := range s.Pods[i].Failures {
			s.Pods[i].Failures[j].Began = deployedAt
		}
	}
}

func sameCode(code int32) []change {
	before := failedBeforeLikeThat(func(a *v1beta2.AppWrapperAttempt) { a.ExitCode = code })
	return []change{before, dies("0", "b", code, 10*time.Second, 5*time.Second)}
}

// neverReady: not all pods of this attempt were ready together.
func neverReady(s *lifecycle.Snapshot) {
	condition(v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonInsufficientPodsReady, 0)(s)
}

func peer(rank string, phase corev1.PodPhase) change {
	return func(s *lifecycle.Snapshot) {
		s.Pods = append(s.Pods, lifecycle.Pod{Name: "train-" + rank + "-peer", Rank: rank, Node: "c", Phase: phase, Started: deployedAt})
	}
}

func sameRankRuns(s *lifecycle.Snapshot) {
	s.Pods = append(s.Pods, lifecycle.Pod{Name: "train-0-next", Rank: "0", Node: "c", Phase: corev1.PodRunning, Started: deployedAt})
}

func lastGone(at time.Duration) change {
	return func(s *lifecycle.Snapshot) { s.LastGone = deployedAt.Add(at) }
}

func interrupted(at time.Duration) change {
	return func(s *lifecycle.Snapshot) { s.Interrupted = deployedAt.Add(at) }
}

func watchedSince(at time.Duration) change {
	return func(s *lifecycle.Snapshot) { s.WatchedSince = deployedAt.Add(at) }
}

func evictedFromItsNode(s *lifecycle.Snapshot) {
	s.Evictions = append(s.Evictions, lifecycle.Eviction{Node: "c", At: deployedAt.Add(2*time.Hour - time.Second),
		Because: nodehealth.Cause{Source: nodehealth.PodEvicted, Sign: "EvictionByEvictionAPI"}})
}

// All suspects are doubted; of those, pods keep away from a few.
func TestOfManySuspectsThoseThatMostBlameAreEnough(t *testing.T) {
	s := runningJob()
	s.Suspects, s.Policy.Avoid.Nodes = []nodehealth.Suspect{{Node: "a"}, {Node: "b"}, {Node: "c"}}, 2
	if few := s.Disliked(); len(few) != 2 || few[0].Node != "a" || few[1].Node != "b" {
		t.Errorf("pods prefer other nodes to %v", few)
	}
}

func suspected(node string) change {
	return func(s *lifecycle.Snapshot) { s.Suspects = append(s.Suspects, nodehealth.Suspect{Node: node}) }
}

func avoiding(node string) change {
	return func(s *lifecycle.Snapshot) {
		s.Status.AvoidedNodes = append(s.Status.AvoidedNodes, v1beta2.AvoidedNode{Name: node, Cause: "PodNotStarted kubelet-silent", Until: metav1.Time{Time: deployedAt.Add(9 * time.Hour)}})
	}
}

// trains lets the four ranks of each attempt start at once, and fail five seconds later, rank 0 first, while the
// storage is away. It returns how the work ended, and in how many attempts.
func trains(t *testing.T, p lifecycle.Policy, away time.Duration) (v1beta2.AppWrapperPhase, int32) {
	t.Helper()
	w := newWorld(p, job("train", 4))
	w.broken = func(promise string) { t.Errorf("broken: %s", promise) }
	w.settle()
	w.admit()
	back := w.now.Add(away)
	for range 100 {
		w.starts(0)
		w.pass(5 * time.Second)
		if w.status.Phase == v1beta2.AppWrapperRunning && !w.now.Before(back) {
			w.succeeds()
		} else if w.status.Phase == v1beta2.AppWrapperRunning {
			w.failsRankByRank()
		}
		if w.status.Phase == v1beta2.AppWrapperSucceeded || w.status.Phase == v1beta2.AppWrapperFailed {
			break
		}
		w.pass(p.RetryPause)
	}
	return w.status.Phase, w.status.Retries + 1
}

func (w *world) failsRankByRank() {
	began, rank := w.now.Add(-5*time.Second), 0
	for _, p := range w.pods {
		if p.Phase != corev1.PodRunning {
			continue
		}
		p.become(w.now, corev1.PodFailed, []int32{1})
		p.Rank, p.Node, p.PodSet = fmt.Sprint(rank), p.node, 0
		p.Failures = []lifecycle.Failure{{Container: "main", ExitCode: 1, Began: began, At: w.now.Add(time.Duration(rank) * time.Second)}}
		rank++
	}
	w.ends(0, kinds.Failed)
}

// All ranks fail, rank 0 first, with one code, in each attempt: storage that is away looks like a mistake of the
// program. It is back before the second attempt, or the attempts are closer together than such outages last.
func TestStorageThatIsAwayForAMomentIsNoMistakeOfTheProgram(t *testing.T) {
	for _, pause := range []string{"", "0s", "10s", "89s", "5m"} {
		p := standardPolicy()
		if pause != "" {
			p, _ = lifecycle.ParsePolicy(map[string]string{v1beta2.RetryPausePeriodDurationAnnotation: pause}, lifecycle.StandardDefaults())
		}
		p.RetryLimit = 20
		for away := time.Duration(0); away <= 90*time.Second; away += 5 * time.Second {
			if phase, attempts := trains(t, p, away); phase != v1beta2.AppWrapperSucceeded {
				t.Errorf("with a pause of %q and storage that is away for %s it is %s after %d attempts", pause, away, phase, attempts)
			}
		}
	}
}

// An outage that is longer is not told from a mistake, unless the author expects it.
func TestStorageThatIsAwayForLongEndsTheWork(t *testing.T) {
	if phase, attempts := trains(t, standardPolicy(), time.Hour); phase != v1beta2.AppWrapperFailed || attempts != 2 {
		t.Errorf("it is %s after %d attempts", phase, attempts)
	}
	limit := map[string]string{v1beta2.RetryLimitAnnotation: "3"}
	patient, _ := lifecycle.ParsePolicy(limit, lifecycle.StandardDefaults())
	if phase, attempts := trains(t, patient, 4*time.Minute); phase != v1beta2.AppWrapperSucceeded || attempts < 3 {
		t.Errorf("with an explicit limit it is %s after %d attempts", phase, attempts)
	}
}

func TestTheSentenceNamesRankNodeAndTime(t *testing.T) {
	for want, given := range map[string][]change{
		"; rank 0 ended twice with exit code 1 within 8 s of its start, both times on node a; ":                 {failedBeforeLikeThat(), dies("0", "a", 1, 10*time.Second, 5*time.Second)},
		"; rank 0 of pod set 0 ended twice with exit code 1 within 61 s of its start, on nodes a and b; ":       {twoPodSets, failedBeforeLikeThat(), dies("0", "b", 1, 2*time.Minute, time.Minute)},
		"; rank 2/1 ended twice with exit code 1 within 1 s of its start, on nodes a and b; it is not tried ag": {failedBeforeLikeThat(rank21), dies("2/1", "b", 1, 10*time.Second, 0)},
	} {
		s := runningJob()
		for _, c := range given {
			c(&s)
		}
		d := lifecycle.Decide(s, deployedAt.Add(time.Hour))
		if d.Event == nil || !strings.Contains(d.Event.Message, want) {
			t.Errorf("the event is %v, want %q", d.Event, want)
		}
	}
}

func rank21(a *v1beta2.AppWrapperAttempt) { a.Rank, a.RanSeconds = "2/1", new(int64(0)) }
