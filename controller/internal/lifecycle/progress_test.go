// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

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
