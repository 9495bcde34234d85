// SPDX-License-Identifier: Apache-2.0

package runlife

import (
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// WorkersPause is how long the workers of a queue may outlive its broker. One that was restarted
// at the last moment finds nobody who tells it to end.
const WorkersPause = 2 * time.Minute

// brokerEnded is when the broker of a work queue succeeded. All results are there then.
func (v *view) brokerEnded() (at time.Time, ended bool) {
	aw := v.mine()
	if aw == nil || !runplan.HasQueue(v.Run) || aw.Status.Phase != v1beta2.AppWrapperRunning {
		return time.Time{}, false
	}
	for _, component := range aw.Status.ComponentStatus {
		succeeded := meta.FindStatusCondition(component.Conditions, string(v1beta2.ComponentSucceeded))
		if component.Name == runplan.BrokerName(aw.Name) && isTrue(succeeded) {
			return succeeded.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// leftBehind: the broker has succeeded, and its workers do not end. The AppWrapper is deleted.
func leftBehind(v *view) (Decision, bool) {
	at, ended := v.brokerEnded()
	if !ended || v.now.Before(at.Add(WorkersPause)) {
		return Decision{}, false
	}
	if v.Pods == nil {
		return Decision{NeedsPods: true}, true
	}
	return v.succeed(QueueClosed), true
}

// rememberQueue keeps the counts that the broker said at its end.
func (v *view) rememberQueue() {
	if !runplan.HasQueue(v.Run) || v.Pods == nil {
		return
	}
	var last time.Time
	for _, pod := range *v.Pods {
		for _, status := range pod.Status.ContainerStatuses {
			end := status.State.Terminated
			if status.Name != runplan.BrokerRole || end == nil || end.FinishedAt.Time.Before(last) {
				continue
			}
			if said, is := brokerSaid(end.Message); is {
				last = end.FinishedAt.Time
				v.status.Queue = &said.QueueStatus
			}
		}
	}
}

// said is what is kept of the last words of a broker.
type said struct {
	v1alpha1.QueueStatus
	message string
}

// brokerSaid reads the termination message of a broker that came to the end of its queue.
func brokerSaid(text string) (said, bool) {
	var end queue.End
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&end); err != nil || end.Succeeded < 0 || end.Failed < 0 || max(end.Succeeded, end.Failed) > queue.MaxTasks {
		return said{}, false
	}
	return said{v1alpha1.QueueStatus{Succeeded: int32(end.Succeeded), Failed: int32(end.Failed)}, end.Message}, true //nolint:gosec // They are small.
}

// decisive are the failures of a broker that gave up, or else all: a broker and workers that failed
// before were replaced.
func decisive(all []failure) []failure {
	var hopeless []failure
	for _, f := range all {
		if f.Container == runplan.BrokerRole && f.ExitCode != nil && *f.ExitCode == queue.ExitHopeless {
			if said, is := brokerSaid(f.Message); is {
				f.Message = lastLines(said.message)
			}
			hopeless = append(hopeless, f)
		}
	}
	if len(hopeless) > 0 {
		return hopeless
	}
	return all
}
