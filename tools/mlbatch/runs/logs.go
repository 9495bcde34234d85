// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Selection says which logs are wanted. Without All, it is that of one worker. The pods of api ray
// and workqueue have no numbers: worker 0 is the one that submits the command, whose log has the command's, or
// else the head.
type Selection struct {
	// Step is that of a workflow. It may be empty if only one has pods.
	Step   string
	Worker int
	All    bool
	// Follow waits for more until the containers end.
	Follow bool
}

// Logs copies logs of a Run to out. With All, each line begins with the number of its worker.
func Logs(ctx context.Context, c client.Reader, open podlogs.Open, key client.ObjectKey, s Selection, out io.Writer) error {
	run, err := get(ctx, c, key)
	if err != nil {
		return err
	}
	pods, err := latestPods(ctx, c, run, s.Step)
	if err != nil {
		return err
	}
	if s.All {
		return podlogs.All(ctx, open, pods, s.Follow, out)
	}
	for _, pod := range pods {
		if pod.Worker == s.Worker || s.Worker == 0 && pod.Name == first(pods) {
			return pod.Log(ctx, open, s.Follow, out)
		}
	}
	return noWorker(run, pods, s.Worker)
}

// latestPods are those of a step or of the whole Run, one of each number: the pods of an earlier
// attempt may not be gone yet.
func latestPods(ctx context.Context, c client.Reader, run *v1alpha1.Run, step string) ([]podlogs.Pod, error) {
	pods, err := podsOf(ctx, c, run)
	if err != nil {
		return nil, err
	}
	if pods, err = ofStep(run, pods, step); err != nil {
		return nil, err
	}
	if len(pods) == 0 {
		return nil, noPods(run)
	}
	return slices.CompactFunc(pods, func(a, b podlogs.Pod) bool { return a.Worker >= 0 && a.Worker == b.Worker }), nil
}

// first is the name of the pod whose log tells most of a Run of api ray, empty for others.
func first(pods []podlogs.Pod) string {
	for _, role := range []string{"submitter", "head", runplan.BrokerRole} {
		if i := slices.IndexFunc(pods, func(pod podlogs.Pod) bool { return pod.Role == role }); i >= 0 {
			return pods[i].Name
		}
	}
	return ""
}

// ofStep are the pods of one step, or all if the Run is no workflow.
func ofStep(run *v1alpha1.Run, pods []podlogs.Pod, step string) ([]podlogs.Pod, error) {
	var names, running []string
	for _, one := range run.Status.Steps {
		names = append(names, one.Name)
		if slices.ContainsFunc(pods, func(p podlogs.Pod) bool { return p.Step == one.Name }) {
			running = append(running, one.Name)
		}
	}
	switch {
	case step == "" && len(running) > 1:
		return nil, fmt.Errorf("%s %s has steps: choose one of them with --step: %s", v1alpha1.RunKind, run.Name, strings.Join(running, ", "))
	case step == "":
		return pods, nil
	case len(names) == 0:
		return nil, fmt.Errorf("%s %s has no steps: leave --step out", v1alpha1.RunKind, run.Name)
	case !slices.Contains(names, step):
		return nil, fmt.Errorf("%s %s has no step %s: its steps are %s", v1alpha1.RunKind, run.Name, step, strings.Join(names, ", "))
	case !slices.Contains(running, step):
		is := run.Status.Steps[slices.Index(names, step)]
		return nil, fmt.Errorf("step %s of %s %s has no pods: it is %s", step, v1alpha1.RunKind, run.Name, printing.OneLine(strings.TrimSuffix(string(is.Phase)+": "+is.Message, ": ")))
	}
	return slices.DeleteFunc(pods, func(p podlogs.Pod) bool { return p.Step != step }), nil
}

// noPods says why there are none.
func noPods(run *v1alpha1.Run) error {
	when := "yet"
	if run.Status.Phase.Terminal() || run.Status.StartTime != nil || run.Status.LastFailure != nil {
		when = "any more"
	}
	return fmt.Errorf("%s %s has no pods %s: it is %s", v1alpha1.RunKind, run.Name, when, situation(run))
}

func noWorker(run *v1alpha1.Run, pods []podlogs.Pod, number int) error {
	if first(pods) != "" {
		return fmt.Errorf("the workers of Run %s have no numbers, as those of api ray and workqueue: use --all", run.Name)
	}
	if resolved := run.Status.Resolved; resolved != nil && number >= int(resolved.Workers) {
		return fmt.Errorf("%s %s has no worker %d: its workers are 0 to %d", v1alpha1.RunKind, run.Name, number, resolved.Workers-1)
	}
	return fmt.Errorf("worker %d of Run %s has no pod: the Run is %s", number, run.Name, situation(run))
}

// situation is the phase of a Run, its message and its last failure, in one line.
func situation(run *v1alpha1.Run) string {
	text := phaseOf(run)
	if message := run.Status.Message; message != "" {
		text += ": " + message
	}
	if failure := run.Status.LastFailure; failure != nil {
		text += "; the last failure was " + failureText(*failure)
		if failure.Message != "" {
			text += fmt.Sprintf(": its last lines are in 'mlbatch status run/%s'", run.Name)
		}
	}
	return printing.OneLine(text)
}
