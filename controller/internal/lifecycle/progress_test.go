// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// hanging adds a running pod that has not been ready since that long after deployedAt.
func hanging(name string, since time.Duration, changes ...func(*lifecycle.Pod)) change {
	return func(s *lifecycle.Snapshot) {
		p := lifecycle.Pod{Name: name, Phase: runs, Started: deployedAt, NotReadySince: deployedAt.Add(since)}
		for _, c := range changes {
			c(&p)
		}
		s.Pods = append(s.Pods, p)
	}
}

func TestRunningNoticesWantOfProgress(t *testing.T) {
	const minute = time.Minute
	asked := policy(func(p *lifecycle.Policy) { p.NoProgressGrace = 10 * minute })
	slow := policy(func(p *lifecycle.Policy) { p.AdmissionGrace, p.WarmupGrace = time.Hour, time.Hour })
	readySince := func(at time.Duration) change {
		return condition(v1beta2.PodsReady, metav1.ConditionTrue, v1beta2.ReasonSufficientPodsReady, at)
	}
	ready := readySince(0)
	and := func(more ...change) []change { return append([]change{ready, asked, withPods(runs)}, more...) }
	quiet := outcome{Phase: v1beta2.AppWrapperRunning}
	waits := outcome{Phase: v1beta2.AppWrapperRunning, Requeue: minute}
	reset := outcome{Phase: v1beta2.AppWrapperResetting, Retries: 1, Event: "NoProgress", Conditions: map[string]string{
		"Unhealthy": "True NoProgress", "DeletingResources": "True DeletionInitiated", "PodsReady": "False Resetting"}}
	checkRows(t, runningJob, map[string]row{
		"whoever did not ask for it may hang":   {given: []change{ready, withPods(runs), hanging("a", 0)}, after: 24 * time.Hour, want: quiet},
		"a pod has the grace to go on":          {given: and(hanging("a", 0)), after: 9 * minute, want: waits},
		"then the attempt ends":                 {given: and(hanging("a", 0)), after: 10 * minute, want: reset},
		"it begins when all pods run":           {given: and(hanging("a", 0), readySince(5*minute)), after: 14 * minute, want: waits},
		"and ends after that":                   {given: and(hanging("a", 0), readySince(5*minute)), after: 15 * minute, want: reset},
		"a pod that waits for others may hang":  {given: []change{asked, slow, withPods(pending), hanging("a", 0)}, after: 59 * minute, want: waits},
		"the first of them counts":              {given: and(hanging("a", 5*minute), hanging("b", 0)), after: 10 * minute, want: reset},
		"what is in the future begins now":      {given: and(hanging("a", time.Hour)), after: minute, want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 10 * minute}},
		"a pod that is being deleted may hang":  {given: and(withPods(runs), hanging("a", 0, func(p *lifecycle.Pod) { p.Terminating = true })), after: time.Hour, want: quiet},
		"a pod that has to leave its node may":  {given: and(hanging("a", 0, func(p *lifecycle.Pod) { p.MigrateFrom, p.MigrateAt = "n", deployedAt.Add(2*time.Hour) })), after: time.Hour, want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: time.Hour}},
		"what remains of a success may":         {given: and(verdict(kinds.Succeeded), finished, hanging("a", 0)), after: time.Hour, want: waits},
		"it comes before pods that have failed": {given: and(withPods(broken), hanging("a", 0)), after: 10 * minute, want: reset},
		"a failed component is a better cause":  {given: and(verdict(kinds.Failed), hanging("a", 0)), after: 10 * minute, want: outcome{Phase: v1beta2.AppWrapperResetting, Retries: 1, Event: "FailedComponent", Conditions: map[string]string{"Unhealthy": "True FailedComponent", "DeletingResources": "True DeletionInitiated", "PodsReady": "False Resetting"}}},
		"without a retry it fails":              {given: and(hanging("a", 0), retried(3)), after: time.Hour, want: outcome{Phase: v1beta2.AppWrapperFailed, Retries: 3, Event: "NoProgress", Conditions: map[string]string{"Unhealthy": "True NoProgress", "PodsReady": "False Failed"}}},
	})
}

func TestTheOldestHangIsNamed(t *testing.T) {
	s := runningJob()
	for _, c := range []change{ready, hanging("b", 5*time.Minute), hanging("a", 0), policy(func(p *lifecycle.Policy) { p.NoProgressGrace = 10 * time.Minute })} {
		c(&s)
	}
	want := "pod a has not been ready for 10m0s, and is the first of 2 such pods"
	if d := lifecycle.Decide(s, deployedAt.Add(time.Hour)); d.Event == nil || d.Event.Message != want {
		t.Errorf("it says %v, want %q", d.Event, want)
	}
}

// says is the second sign.
func says(a lifecycle.Activity) change {
	return func(s *lifecycle.Snapshot) { s.Activity = a }
}

// The second sign can hold a reset back. It can do nothing else.
func TestDevicesThatComputeHoldAResetBack(t *testing.T) {
	const minute = time.Minute
	asked := policy(func(p *lifecycle.Policy) { p.NoProgressGrace = 10 * minute })
	held := condition(v1beta2.ComputesWithoutProgress, metav1.ConditionTrue, v1beta2.ReasonDevicesCompute, 10*minute)
	and := func(more ...change) []change { return append([]change{ready, asked, withPods(runs)}, more...) }
	stays := func(d time.Duration) outcome { return outcome{Phase: v1beta2.AppWrapperRunning, Requeue: d} }
	tells := stays(30 * time.Second)
	tells.Event, tells.Conditions = "HangNotConfirmed", map[string]string{"ComputesWithoutProgress": "True DevicesCompute"}
	goesOn := outcome{Phase: v1beta2.AppWrapperRunning, Conditions: map[string]string{"ComputesWithoutProgress": "False ProgressMade"}}
	reset := resets("NoProgress")
	reset.Conditions["PodsReady"] = "False Resetting"
	endsTheHold := resets("NoProgress")
	endsTheHold.Conditions["PodsReady"], endsTheHold.Conditions["ComputesWithoutProgress"] = "False Resetting", "False NoProgress"
	failsTheHold := resets("FoundFailedPods")
	failsTheHold.Conditions["PodsReady"] = "False InsufficientPodsReady"
	delete(failsTheHold.Conditions, "Unhealthy") // it is so already
	checkRows(t, runningJob, map[string]row{
		"a pod that hangs and computes is told of": {given: and(hanging("a", 0), says(lifecycle.ActivityComputes)), after: time.Hour, want: tells},
		"once":                         {given: and(hanging("a", 0), held, says(lifecycle.ActivityComputes)), after: time.Hour, want: stays(30 * time.Second)},
		"also if another is the first": {given: and(hanging("b", 0), hanging("a", minute), held, says(lifecycle.ActivityComputes)), after: time.Hour, want: stays(30 * time.Second)},
		"while the answer is awaited nothing happens":    {given: and(hanging("a", 0), says(lifecycle.ActivityAwaited)), after: time.Hour, want: stays(time.Second)},
		"nor does it for a pod that was held back":       {given: and(hanging("a", 0), held, says(lifecycle.ActivityAwaited)), after: time.Hour, want: stays(time.Second)},
		"one that hangs and rests ends the attempt":      {given: and(hanging("a", 0), says(lifecycle.ActivityRests)), after: time.Hour, want: reset},
		"one of which nothing is known does, too":        {given: and(hanging("a", 0), says(lifecycle.ActivityUnknown)), after: time.Hour, want: reset},
		"one that computes no more does":                 {given: and(hanging("a", 0), held, says(lifecycle.ActivityRests)), after: time.Hour, want: endsTheHold},
		"progress ends it":                               {given: and(withPods(runs), held), after: time.Hour, want: goesOn},
		"so does progress before the next hang":          {given: and(hanging("a", 55*minute), held), after: time.Hour, want: outcome{Phase: goesOn.Phase, Requeue: 5 * minute, Conditions: goesOn.Conditions}},
		"within the grace the second sign says nothing":  {given: and(hanging("a", 0), says(lifecycle.ActivityRests)), after: 9 * minute, want: stays(2 * minute)},
		"whoever did not ask for it is not looked at":    {given: []change{ready, withPods(runs), hanging("a", 0), says(lifecycle.ActivityRests)}, after: time.Hour, want: outcome{Phase: v1beta2.AppWrapperRunning}},
		"pods that have failed are none of its business": {given: []change{ready, asked, withPods(broken), hanging("a", 0), held, condition(v1beta2.Unhealthy, metav1.ConditionTrue, v1beta2.ReasonFoundFailedPods, 0), says(lifecycle.ActivityComputes)}, after: time.Hour, want: failsTheHold},
	})
}

// The pods of a gang become silent one by one.
func TestMoreSilentPodsCauseNoWrites(t *testing.T) {
	s := runningJob()
	for _, c := range []change{ready, withPods(runs), hanging("a", 0), says(lifecycle.ActivityComputes), policy(func(p *lifecycle.Policy) { p.NoProgressGrace = 10 * time.Minute })} {
		c(&s)
	}
	s.Status = lifecycle.Decide(s, deployedAt.Add(time.Hour)).Status
	hanging("b", time.Minute)(&s)
	d := lifecycle.Decide(s, deployedAt.Add(2*time.Hour))
	if diff := cmp.Diff(s.Status, d.Status); diff != "" || d.Event != nil {
		t.Errorf("it tells of %v, and writes (-before +after)\n%s", d.Event, diff)
	}
}

func TestTheNextAttemptIsNotHeldBack(t *testing.T) {
	s := oneJob(v1beta2.AppWrapperSuspended)
	condition(v1beta2.ComputesWithoutProgress, metav1.ConditionTrue, v1beta2.ReasonDevicesCompute, 0)(&s)
	got := summarize(s, lifecycle.Decide(s, deployedAt.Add(time.Hour))).Conditions["ComputesWithoutProgress"]
	if want := "False Resuming"; got != want {
		t.Errorf("the condition is %q, want %q", got, want)
	}
}

// Only what would be held back costs a question.
func TestWhoeverIsWellIsNotAskedAbout(t *testing.T) {
	asked := policy(func(p *lifecycle.Policy) { p.NoProgressGrace, p.IdleGrace = 10*time.Minute, 4*time.Hour })
	told := condition(v1beta2.Idle, metav1.ConditionTrue, v1beta2.ReasonDevicesIdle, 2*time.Hour)
	for sentence, tc := range map[string]struct {
		given []change
		want  bool
	}{
		"a job that is well":              {[]change{ready, asked, withPods(runs, runs)}, false},
		"one that may hang":               {[]change{ready, withPods(runs), hanging("a", 0)}, false},
		"one within its grace":            {[]change{ready, asked, withPods(runs), hanging("a", 5*time.Hour-time.Minute)}, false},
		"one that hangs":                  {[]change{ready, asked, withPods(runs), hanging("a", 0)}, true},
		"one that hangs without a retry":  {[]change{ready, asked, retried(3), withPods(runs), hanging("a", 0)}, true},
		"one whose pods have failed":      {[]change{ready, asked, withPods(runs, broken)}, false},
		"one that is idle for a while":    {[]change{ready, asked, holding(4*time.Hour, 5*time.Hour), holding(0, 5*time.Hour)}, false},
		"one that is to be told":          {[]change{ready, asked, holding(0, 5*time.Hour), holding(0, 5*time.Hour)}, true},
		"one whose quota is to be back":   {[]change{ready, asked, told, holding(0, 5*time.Hour), holding(0, 5*time.Hour)}, true},
		"one whose idleness nobody says":  {[]change{ready, asked, told, holding(0, 0), holding(0, 0)}, false},
		"one whose quota is wanted back":  {[]change{ready, asked, suspend, withPods(runs), hanging("a", 0)}, false},
		"one of which a component failed": {[]change{ready, asked, verdict(kinds.Failed), withPods(runs), hanging("a", 0)}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := runningJob()
			for _, c := range tc.given {
				c(&s)
			}
			if d := lifecycle.Decide(s, deployedAt.Add(5*time.Hour)); d.Confirm != tc.want {
				t.Errorf("it is asked about: %t; the decision is %+v", d.Confirm, d)
			}
		})
	}
}

func TestAResetSaysWhatTheSecondSignSaid(t *testing.T) {
	const first = "pod a has not been ready for 10m0s, and is the first of 1 such pods"
	for said, want := range map[lifecycle.Activity]string{
		lifecycle.ActivityNotAsked: first,
		lifecycle.ActivityRests:    first + "; no pod computes",
		lifecycle.ActivityUnknown:  first + "; whether a pod computes is unknown",
		lifecycle.ActivityComputes: first + "; it is not reset, because devices compute",
	} {
		s := runningJob()
		for _, c := range []change{ready, withPods(runs), hanging("a", 0), says(said), policy(func(p *lifecycle.Policy) { p.NoProgressGrace = 10 * time.Minute })} {
			c(&s)
		}
		if d := lifecycle.Decide(s, deployedAt.Add(time.Hour)); d.Event == nil || d.Event.Message != want {
			t.Errorf("it says %v, want %q", d.Event, want)
		}
	}
}
