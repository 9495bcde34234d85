// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// comes is when the pods of the second of two pod sets come, of two pods each.
func comes(turn kinds.Turn) change {
	return func(s *lifecycle.Snapshot) {
		c := &s.Status.ComponentStatus[0]
		c.PodSets = append([]v1beta2.AppWrapperPodSet{{Path: "first", Replicas: new(int32(2))}}, c.PodSets...)
		s.Components[0].Turns = map[string]kinds.Turn{c.PodSets[1].Path: turn}
	}
}

// inTurn makes the Job a StatefulSet of three pods that come one after the other.
func inTurn(s *lifecycle.Snapshot) {
	s.Status.ComponentStatus[0].PodSets[0].Replicas = new(int32(3))
	s.Components[0].Turns = map[string]kinds.Turn{"template.spec.template": kinds.OneByOne}
	s.Components[0].ReportsEnd = false
}

// last changes the last pod.
func last(edit func(*lifecycle.Pod)) change {
	return func(s *lifecycle.Snapshot) { edit(&s.Pods[len(s.Pods)-1]) }
}

func createdAt(at time.Duration) change {
	return last(func(p *lifecycle.Pod) { p.Created = deployedAt.Add(at) })
}

func startedAt(at time.Duration) change {
	return last(func(p *lifecycle.Pod) { p.Started = deployedAt.Add(at) })
}

func endedAt(at time.Duration) change {
	return last(func(p *lifecycle.Pod) { p.Ended = deployedAt.Add(at) })
}

// terminatesBy is for a pod that is told to end.
func terminatesBy(at time.Duration) change {
	return last(func(p *lifecycle.Pod) { p.Terminating, p.EndsBy = true, deployedAt.Add(at) })
}

func waitsFor(d time.Duration) outcome {
	return outcome{Phase: v1beta2.AppWrapperRunning, Requeue: d}
}

func TestPodsThatComeLater(t *testing.T) {
	isReady := outcome{Phase: v1beta2.AppWrapperRunning,
		Conditions: map[string]string{"PodsReady": "True SufficientPodsReady", "Unhealthy": "False FoundNoFailedPods"}}
	checkRows(t, runningJob, map[string]row{
		"pods that come one by one have the warmup grace from the last one": {
			given: []change{inTurn, of(0, 0, runs), startedAt(10 * time.Second), of(0, 0, runs), createdAt(4 * time.Minute), startedAt(4*time.Minute + 10*time.Second)},
			after: 9 * time.Minute,
			want:  waitsFor(10 * time.Second),
		},
		"also from one that is pending": {
			given: []change{inTurn, of(0, 0, runs), startedAt(10 * time.Second), of(0, 0, pending), createdAt(4 * time.Minute)},
			after: 8 * time.Minute,
			want:  waitsFor(time.Minute),
		},
		"if none comes within it, that is too late": {
			given: []change{inTurn, of(0, 0, runs), startedAt(10 * time.Second), of(0, 0, runs), startedAt(4 * time.Minute)},
			after: 9 * time.Minute,
			want:  startsAgain("InsufficientPodsReady"),
		},
		"if not even the first comes, too": {
			given: []change{inTurn},
			after: 5 * time.Minute,
			want:  startsAgain("InsufficientPodsReady"),
		},
		"a clock that is ahead does not make it longer": {
			given: []change{inTurn, of(0, 0, runs), startedAt(time.Hour)},
			after: 5 * time.Minute,
			want:  waitsFor(5 * time.Minute),
		},
		"those that do not wait for others have the admission grace nevertheless": {
			given: []change{comes(kinds.OneByOne), of(0, 0, runs), startedAt(10 * time.Second)},
			after: time.Minute,
			want:  startsAgain("InsufficientPodsReady"),
		},
		"those that wait for them have the warmup grace": {
			given: []change{comes(kinds.OneByOne), of(0, 0, runs, runs), startedAt(10 * time.Second)},
			after: time.Minute,
			want:  waitsFor(4 * time.Minute),
		},
		"pods that come after the others are not expected before": {
			given: []change{comes(kinds.AfterTheOthers), of(0, 0, runs, runs)},
			after: 10 * time.Hour,
			want:  isReady,
		},
		"they have the admission grace from the end of the last one": {
			given: []change{ready, comes(kinds.AfterTheOthers), of(0, 0, done, done), endedAt(time.Hour)},
			after: time.Hour + 20*time.Second,
			want:  waitsFor(40 * time.Second),
		},
		"then they are missed": {
			given: []change{ready, comes(kinds.AfterTheOthers), of(0, 0, done, done), endedAt(time.Hour)},
			after: time.Hour + time.Minute,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Minute,
				Conditions: map[string]string{"PodsReady": "False InsufficientPodsReady"}},
		},
		"once they come they are expected to run": {
			given: []change{ready, comes(kinds.AfterTheOthers), of(0, 0, done, done), of(0, 1, runs, pending), createdAt(time.Hour)},
			after: time.Hour,
			want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 5 * time.Minute,
				Conditions: map[string]string{"PodsReady": "False InsufficientPodsReady"}},
		},
		"and are ready when they run": {
			given: []change{ready, comes(kinds.AfterTheOthers), of(0, 0, done, done), of(0, 1, runs, runs)},
			after: time.Hour,
			want:  rests,
		},
	})
}

func TestPodsThatAreReplaced(t *testing.T) {
	lost := condition(v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonInsufficientPodsReady, time.Hour)
	wentAt := func(at time.Duration) change {
		return func(s *lifecycle.Snapshot) { s.LastGone = deployedAt.Add(at) }
	}
	rejected := last(func(p *lifecycle.Pod) {
		p.MigrateFrom, p.MigrateBecause = "n", []nodehealth.Cause{{Source: nodehealth.PodRejected, Sign: "OutOfcpu"}}
	})
	checkRows(t, runningJob, map[string]row{
		"a pod in place of one that was lost has the warmup grace from its own creation": {
			given: []change{lost, of(0, 0, runs, pending), createdAt(time.Hour + 10*time.Second)},
			after: time.Hour + 2*time.Minute,
			want:  waitsFor(190 * time.Second),
		},
		"then it is too late": {
			given: []change{lost, of(0, 0, runs, pending), createdAt(time.Hour + 10*time.Second)},
			after: time.Hour + 310*time.Second,
			want:  resets("InsufficientPodsReady"),
		},
		"one that is created after the failure grace changes nothing": {
			given: []change{lost, of(0, 0, runs, pending), createdAt(time.Hour + 61*time.Second)},
			after: time.Hour + 62*time.Second,
			want:  resets("InsufficientPodsReady"),
		},
		"nor does one after another that a node rejects": {
			given: []change{lost, of(0, 0, runs, pending), createdAt(time.Hour + 10*time.Second), of(0, 0, broken), rejected, policy(func(p *lifecycle.Policy) { p.MigrationLimit = 0 })},
			after: time.Hour + 61*time.Second,
			want:  resets("InsufficientPodsReady"),
		},
		"nor does one that finds no node when another is to blame for the loss": {
			given: []change{lost, of(0, 0, runs, pending), createdAt(time.Hour + 10*time.Second), func(s *lifecycle.Snapshot) {
				s.Evictions = []lifecycle.Eviction{{Node: "n", At: deployedAt.Add(time.Hour), Because: nodehealth.Cause{Source: nodehealth.PodEvicted}}}
			}, policy(func(p *lifecycle.Policy) { p.MigrationLimit = 0 })},
			after: time.Hour + 61*time.Second,
			want:  resets("InsufficientPodsReady"),
		},
		"while a pod may still end, its replacement may wait": {
			given: []change{lost, of(0, 0, runs, runs), terminatesBy(time.Hour + 90*time.Second)},
			after: time.Hour + 80*time.Second,
			want:  waitsFor(70 * time.Second),
		},
		"when it is gone, the failure grace begins": {
			given: []change{lost, of(0, 0, runs), wentAt(time.Hour + 90*time.Second)},
			after: time.Hour + 100*time.Second,
			want:  waitsFor(50 * time.Second),
		},
		"in a rollout the last pod counts that goes, however long it takes": {
			given: []change{lost, of(0, 0, runs, pending), createdAt(time.Hour + 12*time.Minute), wentAt(time.Hour + 12*time.Minute)},
			after: time.Hour + 14*time.Minute,
			want:  waitsFor(3 * time.Minute),
		},
		"a Job pauses before it replaces a pod": {
			given: []change{lost, condition(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonFoundFailedPods, time.Hour),
				of(0, 0, runs, broken, broken, broken), endedAt(time.Hour)},
			after: time.Hour + 70*time.Second,
			want:  waitsFor(30 * time.Second),
		},
		"but not for longer": {
			given: []change{lost, condition(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonFoundFailedPods, time.Hour),
				of(0, 0, runs, broken, broken, broken), endedAt(time.Hour)},
			after: time.Hour + 100*time.Second,
			want: outcome{Phase: v1beta2.AppWrapperResetting, Retries: 1, Event: "FoundFailedPods",
				Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}},
		},
	})
}

func TestPodsThatHaveEnded(t *testing.T) {
	gone := func(counts ...int) change {
		return func(s *lifecycle.Snapshot) { s.Components[0].Gone = counts }
	}
	remembered := func(counts ...int32) change {
		return func(s *lifecycle.Snapshot) { s.Status.ComponentStatus[0].SucceededPods = counts }
	}
	ended := func(e kinds.Ended) change {
		return func(s *lifecycle.Snapshot) { s.Components[0].Ended = e }
	}
	statefulSet := func(s *lifecycle.Snapshot) {
		s.Components[0].ReportsEnd, s.Components[0].Kind, s.Components[0].APIVersion = false, "StatefulSet", "apps/v1"
		s.Status.ComponentStatus[0].Kind, s.Status.ComponentStatus[0].APIVersion = "StatefulSet", "apps/v1"
	}
	ends := func(e kinds.Ends) change {
		return func(s *lifecycle.Snapshot) {
			s.Components[0].Ends = map[string]kinds.Ends{s.Status.ComponentStatus[0].PodSets[0].Path: e}
		}
	}
	three := func(s *lifecycle.Snapshot) { s.Status.ComponentStatus[0].PodSets[0].Replicas = new(int32(3)) }
	four := func(s *lifecycle.Snapshot) { s.Status.ComponentStatus[0].PodSets[0].Replicas = new(int32(4)) }
	early := ends(kinds.Ends{Job: "a", Pods: 2, Early: true})
	deploymentOfNone := func(s *lifecycle.Snapshot) {
		s.Status.ComponentStatus[0].Kind, s.Status.ComponentStatus[0].APIVersion = "Deployment", "apps/v1"
		s.Status.ComponentStatus[0].PodSets[0].Replicas = new(int32(0))
	}
	queue, waves := ends(kinds.Ends{WorkQueue: true}), ends(kinds.Ends{Completions: 5})
	jobSet, tolerant := ends(kinds.Ends{Job: "a", Pods: 2}), ends(kinds.Ends{Job: "a", Pods: 2, Tolerant: true})
	lacksOne := outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Minute,
		Conditions: map[string]string{"PodsReady": "False InsufficientPodsReady"}}
	checkRows(t, runningJob, map[string]row{
		"a succeeded pod that is gone is not lost, says the Job": {
			given: []change{ready, of(0, 0, runs), ended(kinds.Ended{Succeeded: 1})},
			after: time.Hour,
			want:  rests,
		},
		"nor is it if the observer knows of it":   {given: []change{ready, of(0, 0, runs), gone(1)}, after: time.Hour, want: rests},
		"nor if the status does":                  {given: []change{ready, of(0, 0, runs), remembered(1)}, after: time.Hour, want: rests},
		"without any of them it is":               {given: []change{ready, of(0, 0, runs)}, after: time.Hour, want: lacksOne},
		"of another pod set it is":                {given: []change{ready, twoPodSets, of(0, 0, runs, runs), of(0, 1, runs), remembered(1, 0)}, after: time.Hour, want: lacksOne},
		"one that runs again is not counted, too": {given: []change{ready, of(0, 0, runs, pending), remembered(1)}, after: time.Hour, want: lacksOne},
		"pods that are gone succeed without a report": {
			given: []change{ready, unknownKind, of(0, 0, done), remembered(1)},
			want:  endsIn(v1beta2.AppWrapperSucceeded, "", map[string]string{"QuotaReserved": "False Succeeded", "ResourcesDeployed": "True Succeeded"}),
		},
		// Kubelets end a StatefulSet's pod that somebody deletes, and it may exit with 0.
		"a StatefulSet replaces a pod that has succeeded": {given: []change{ready, statefulSet, of(0, 0, runs, done)}, after: time.Hour, want: lacksOne},
		"also the last one":                                    {given: []change{ready, statefulSet, of(0, 0, done, done)}, after: time.Hour, want: lacksOne},
		"also one of an older release":                         {given: []change{ready, statefulSet, of(0, lifecycle.UnknownPodSet, done, done)}, after: time.Hour, want: rests},
		"also one that is gone":                                {given: []change{ready, statefulSet, gone(2), remembered(2)}, after: time.Hour, want: lacksOne},
		"what was interrupted has not succeeded":               {given: []change{ready, unknownKind, of(0, 0, done), last(func(p *lifecycle.Pod) { p.Interrupted = deployedAt }), of(0, 0, done)}, after: time.Hour, want: lacksOne},
		"a work queue goes on without one that fails":          {given: []change{ready, three, queue, of(0, 0, done, broken, runs), endedAt(time.Minute)}, after: time.Hour, want: rests},
		"and without one that is lost":                         {given: []change{ready, three, queue, ended(kinds.Ended{Succeeded: 1}), of(0, 0, runs)}, after: time.Hour, want: rests},
		"but not before one has succeeded":                     {given: []change{ready, queue, of(0, 0, runs)}, after: time.Hour, want: lacksOne},
		"a Job of a JobSet goes on without an index":           {given: []change{ready, jobSet, tolerant, twoPodSets, of(0, 0, runs, broken), of(0, 1, runs, runs)}, after: time.Hour, want: rests},
		"but not without one whose failed pod was tried again": {given: []change{ready, jobSet, tolerant, twoPodSets, of(0, 0, runs, broken, pending), of(0, 1, runs, runs)}, after: time.Hour, want: lacksOne},
		"a Job that has succeeded counts once":                 {given: []change{ready, tolerant, four, ended(kinds.Ended{Jobs: map[string]int{"a": 1}}), of(0, 0, done, done)}, after: time.Hour, want: lacksOne},
		"one that may succeed early says nothing of others":    {given: []change{ready, early, four, ended(kinds.Ended{Jobs: map[string]int{"a": 1}}), of(0, 0, done, done, runs)}, after: time.Hour, want: rests},
		"a Deployment of no pods ends with the rest": {
			given: []change{ready, and("door", unknownKind, deploymentOfNone), finished},
			want:  endsIn(v1beta2.AppWrapperSucceeded, "", map[string]string{"QuotaReserved": "False Succeeded", "ResourcesDeployed": "True Succeeded"}),
		},
		"a Job of a JobSet has succeeded with one pod": {given: []change{ready, jobSet, ended(kinds.Ended{Jobs: map[string]int{"a": 1}}), twoPodSets, of(0, 0, done), of(0, 1, runs, runs)}, after: time.Hour, want: rests},
		"also if its pods are gone":                    {given: []change{ready, jobSet, ended(kinds.Ended{Jobs: map[string]int{"a": 1}}), twoPodSets, of(0, 1, runs, runs)}, after: time.Hour, want: rests},
		"not if another Job has":                       {given: []change{ready, jobSet, ended(kinds.Ended{Jobs: map[string]int{"b": 1}}), twoPodSets, of(0, 0, runs), of(0, 1, runs, runs)}, after: time.Hour, want: lacksOne},
		"a second wave has to run":                     {given: []change{ready, waves, ended(kinds.Ended{Succeeded: 2}), of(0, 0, runs)}, after: time.Hour, want: lacksOne},
		"also if the first one's pods still exist":     {given: []change{ready, waves, of(0, 0, done), endedAt(time.Minute), of(0, 0, done, runs), endedAt(time.Minute)}, after: time.Hour, want: lacksOne},
		"what has ended lately is replaced":            {given: []change{ready, waves, of(0, 0, runs, done), endedAt(time.Hour - time.Minute)}, after: time.Hour, want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 4 * time.Minute}},
		"the last wave is smaller":                     {given: []change{ready, waves, ended(kinds.Ended{Succeeded: 4}), of(0, 0, runs)}, after: time.Hour, want: rests},
		"a Job goes on without an index that it tolerates": {
			given: []change{ready, of(0, 0, runs, broken), ended(kinds.Ended{GivenUp: 1})},
			after: time.Hour,
			want:  rests,
		},
	})
}

func TestWhatIsGoneIsWrittenOnce(t *testing.T) {
	for sentence, tc := range map[string]struct {
		given []change
		want  []int32
	}{
		"it is remembered": {[]change{ready, of(0, 0, runs), func(s *lifecycle.Snapshot) {
			s.Components[0].Gone, s.Components[0].GoneUntil = []int{1}, "7"
		}}, []int32{1}},
		"less than is known changes nothing": {[]change{ready, func(s *lifecycle.Snapshot) {
			s.Components[0].Gone, s.Components[0].GoneUntil = []int{1}, "3"
			s.Status.ComponentStatus[0].SucceededPods, s.Status.ComponentStatus[0].SucceededPodsUntil = []int32{2}, "7"
		}}, []int32{2}},
		"what the Job says needs no write":      {[]change{ready, of(0, 0, runs), func(s *lifecycle.Snapshot) { s.Components[0].Gone = []int{1}; s.Components[0].Ended.Succeeded = 1 }}, nil},
		"nor does a component that is finished": {[]change{ready, finished, of(0, 0, runs), func(s *lifecycle.Snapshot) { s.Components[0].Gone = []int{1} }}, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := runningJob()
			for _, c := range tc.given {
				c(&s)
			}
			status := lifecycle.Decide(s, deployedAt.Add(time.Hour)).Status.ComponentStatus[0]
			got, until := status.SucceededPods, status.SucceededPodsUntil
			if len(got) != len(tc.want) || len(got) == 1 && got[0] != tc.want[0] || (until == "7") != (tc.want != nil) {
				t.Errorf("got %v until %q, want %v", got, until, tc.want)
			}
		})
	}
}

func TestTheNextAttemptBeginsWithoutPods(t *testing.T) {
	s := oneJob(v1beta2.AppWrapperSuspended)
	s.Status.ComponentStatus[0].SucceededPods, s.Status.ComponentStatus[0].SucceededPodsUntil = []int32{1}, "7"
	if d := lifecycle.Decide(s, deployedAt); d.Status.Phase != v1beta2.AppWrapperResuming || d.Status.ComponentStatus[0].SucceededPods != nil ||
		d.Status.ComponentStatus[0].SucceededPodsUntil != "" {
		t.Errorf("%s with %v", d.Status.Phase, d.Status.ComponentStatus[0].SucceededPods)
	}
}

func TestSomeFailuresAreFinal(t *testing.T) {
	final := func(s *lifecycle.Snapshot) {
		s.Components[0].Verdict, s.Components[0].Final = kinds.Failed, "DeadlineExceeded"
	}
	checkRows(t, runningJob, map[string]row{
		"what would fail again is not tried again": {
			given: []change{final},
			want:  endsIn(v1beta2.AppWrapperFailed, "FailedComponent", map[string]string{"Unhealthy": "True FailedComponent"}),
		},
		"not even if a node is to blame": {
			given: []change{final, of(0, 0, broken), last(func(p *lifecycle.Pod) {
				p.MigrateFrom, p.MigrateBecause = "n", []nodehealth.Cause{{Source: nodehealth.NodeLabel}}
			})},
			want: endsIn(v1beta2.AppWrapperFailed, "FailedComponent", map[string]string{"Unhealthy": "True FailedComponent"}),
		},
		"one such component is enough": {
			given: []change{verdict(kinds.Failed), and("second", final)},
			want:  endsIn(v1beta2.AppWrapperFailed, "FailedComponent", map[string]string{"Unhealthy": "True FailedComponent"}),
		},
	})
	s := runningJob()
	final(&s)
	d := lifecycle.Decide(s, deployedAt)
	const want = `1 of 1 components failed; there is no retry, because Job "train" ended with DeadlineExceeded`
	for _, c := range d.Status.Conditions {
		if c.Type == string(v1beta2.Unhealthy) && c.Message != want {
			t.Errorf("it says %q, want %q", c.Message, want)
		}
	}
}
