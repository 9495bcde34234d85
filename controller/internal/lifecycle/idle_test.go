// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// holding adds a running pod with a device. It is idle since so long after deployedAt, and was said to be so
// until.
func holding(since, until time.Duration, changes ...func(*lifecycle.Pod)) change {
	return func(s *lifecycle.Snapshot) {
		p := lifecycle.Pod{Phase: runs, Started: deployedAt, Devices: oneGPU, IdleSince: deployedAt.Add(since), IdleSeen: deployedAt.Add(until)}
		for _, c := range changes {
			c(&p)
		}
		s.Pods = append(s.Pods, p)
	}
}

// using is a pod that uses its device.
func using(p *lifecycle.Pod) { p.IdleSince, p.IdleSeen = time.Time{}, time.Time{} }

func TestRunningNoticesIdleness(t *testing.T) {
	const hour, minute = time.Hour, time.Minute
	asked := policy(func(p *lifecycle.Policy) { p.IdleGrace = 4 * hour })
	told := condition(v1beta2.Idle, metav1.ConditionTrue, v1beta2.ReasonDevicesIdle, 2*hour)
	and := func(more ...change) []change { return append([]change{ready, asked}, more...) }
	waits := func(d time.Duration) outcome { return outcome{Phase: v1beta2.AppWrapperRunning, Requeue: d} }
	gives := outcome{Phase: v1beta2.AppWrapperRunning, Effect: lifecycle.GiveBack}
	tells := outcome{Phase: v1beta2.AppWrapperRunning, Requeue: 2 * hour, Event: "Idle", Conditions: map[string]string{"Idle": "True DevicesIdle"}}
	works := outcome{Phase: v1beta2.AppWrapperRunning, Conditions: map[string]string{"Idle": "False DevicesUsed"}}
	checkRows(t, runningJob, map[string]row{
		"whoever did not ask for it may be idle":        {given: []change{ready, holding(0, 48*hour), holding(0, 48*hour)}, after: 48 * hour, want: rests},
		"for half of the grace nothing happens":         {given: and(holding(0, hour), holding(0, hour)), after: hour, want: waits(hour)},
		"then the author is told":                       {given: and(holding(0, 2*hour), holding(0, 2*hour)), after: 2 * hour, want: tells},
		"the last to become idle counts":                {given: and(holding(0, 2*hour), holding(hour, 2*hour)), after: 2 * hour, want: waits(hour)},
		"a pod that uses its device counts":             {given: and(holding(0, 9*hour), holding(0, 0, using)), after: 9 * hour, want: rests},
		"one that is to start counts":                   {given: and(holding(0, 9*hour), withPods(runs), holding(0, 0, using, func(p *lifecycle.Pod) { p.Phase, p.Started = pending, time.Time{} })), after: 9 * hour, want: rests},
		"one that has ended does not":                   {given: and(told, holding(0, 9*hour), holding(0, 0, using, func(p *lifecycle.Pod) { p.Phase = done })), after: 9 * hour, want: gives},
		"one without a device does not":                 {given: and(told, holding(0, 9*hour), holding(0, 0, using, func(p *lifecycle.Pod) { p.Devices = map[string]int64{"nvidia.com/gpu": 0} })), after: 9 * hour, want: gives},
		"without any device nobody is idle":             {given: and(withPods(runs, runs)), after: 9 * hour, want: rests},
		"after the notice it has the rest of the grace": {given: and(told, holding(0, 3*hour), holding(0, 3*hour)), after: 3 * hour, want: waits(hour)},
		"then the quota goes back":                      {given: and(told, holding(0, 4*hour), holding(0, 4*hour)), after: 4 * hour, want: gives},
		"half of the grace after a late notice":         {given: and(condition(v1beta2.Idle, metav1.ConditionTrue, v1beta2.ReasonDevicesIdle, 8*hour), holding(0, 9*hour), holding(0, 9*hour)), after: 9 * hour, want: waits(hour)},
		"whoever works again is told so":                {given: and(told, holding(0, 0, using), holding(0, 4*hour)), after: 4 * hour, want: works},
		"what was said long ago does not count":         {given: and(told, holding(0, 4*hour), holding(0, 4*hour+9*minute)), after: 4*hour + 10*minute, want: rests},
		"what was said lately does":                     {given: and(told, holding(0, 4*hour), holding(0, 4*hour)), after: 4*hour + 9*minute, want: gives},
		"a clock that is far ahead tells nothing":       {given: and(told, holding(0, 9*hour), holding(0, 9*hour)), after: 8 * hour, want: rests},
		"a query that says it computes ends that":       {given: and(told, holding(0, 4*hour), holding(0, 4*hour), says(lifecycle.ActivityComputes)), after: 4 * hour, want: outcome{Phase: works.Phase, Requeue: 30 * time.Second, Conditions: works.Conditions}},
		"nobody is told of what computes":               {given: and(holding(0, 2*hour), holding(0, 2*hour), says(lifecycle.ActivityComputes)), after: 2 * hour, want: waits(30 * time.Second)},
		"while that is awaited nothing happens":         {given: and(told, holding(0, 4*hour), holding(0, 4*hour), says(lifecycle.ActivityAwaited)), after: 4 * hour, want: waits(time.Second)},
		"a query that says it rests changes nothing":    {given: and(told, holding(0, 4*hour), holding(0, 4*hour), says(lifecycle.ActivityRests)), after: 4 * hour, want: gives},
		"nor does one that knows nothing":               {given: and(told, holding(0, 4*hour), holding(0, 4*hour), says(lifecycle.ActivityUnknown)), after: 4 * hour, want: gives},
		"pods that fail come first":                     {given: and(told, holding(0, 4*hour), withPods(broken)), after: 4 * hour, want: outcome{Phase: v1beta2.AppWrapperRunning, Requeue: minute, Conditions: map[string]string{"Unhealthy": "True FoundFailedPods", "PodsReady": "False InsufficientPodsReady"}}},
		"quota that Kueue takes back is not given back": {given: and(told, suspend, holding(0, 4*hour), holding(0, 4*hour)), after: 4 * hour, want: outcome{Phase: v1beta2.AppWrapperSuspending, Event: "ExternallySuspended", Conditions: map[string]string{"DeletingResources": "True DeletionInitiated"}}},
	})
}
