// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// OpenLog opens the log of a container, as the Kubernetes API does.
type OpenLog func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error)

// Selection says which logs are wanted. Without All, it is that of one worker. The pods of api ray
// have no numbers: worker 0 is the one that submits the command, whose log has the command's, or
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
func Logs(ctx context.Context, c client.Reader, open OpenLog, key client.ObjectKey, s Selection, out io.Writer) error {
	run, err := get(ctx, c, key)
	if err != nil {
		return err
	}
	pods, err := latestPods(ctx, c, run, s.Step)
	if err != nil {
		return err
	}
	if s.All {
		return allLogs(ctx, open, pods, s.Follow, out)
	}
	for _, pod := range pods {
		if pod.Worker == s.Worker || s.Worker == 0 && pod.Name == first(pods) {
			return pod.copyLog(ctx, open, s.Follow, func(log io.Reader) error { _, err := io.Copy(out, log); return err })
		}
	}
	return noWorker(run, pods, s.Worker)
}

// latestPods are those of a step or of the whole Run, one of each number: the pods of an earlier
// attempt may not be gone yet.
func latestPods(ctx context.Context, c client.Reader, run *v1alpha1.Run, step string) ([]Pod, error) {
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
	return slices.CompactFunc(pods, func(a, b Pod) bool { return a.Worker >= 0 && a.Worker == b.Worker }), nil
}

// first is the name of the pod whose log tells most of a Run of api ray, empty for others.
func first(pods []Pod) string {
	for _, role := range []string{"submitter", "head"} {
		if i := slices.IndexFunc(pods, func(pod Pod) bool { return pod.Role == role }); i >= 0 {
			return pods[i].Name
		}
	}
	return ""
}

// ofStep are the pods of one step, or all if the Run is no workflow.
func ofStep(run *v1alpha1.Run, pods []Pod, step string) ([]Pod, error) {
	var names, running []string
	for _, one := range run.Status.Steps {
		names = append(names, one.Name)
		if slices.ContainsFunc(pods, func(p Pod) bool { return p.Step == one.Name }) {
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
	return slices.DeleteFunc(pods, func(p Pod) bool { return p.Step != step }), nil
}

// allLogs copies one log after the other or, if they are followed, all at once.
func allLogs(ctx context.Context, open OpenLog, pods []Pod, follow bool, out io.Writer) error {
	lines := printing.NewLines(out)
	failures := make([]error, len(pods))
	var all sync.WaitGroup
	for i, pod := range pods {
		do := func() {
			failures[i] = pod.copyLog(ctx, open, follow, func(log io.Reader) error { return copyLines(lines, pod.label(), log) })
		}
		if !follow {
			do()
			continue
		}
		all.Go(do)
	}
	all.Wait()
	return joined(failures)
}

// label tells the lines of a pod from those of others.
func (p Pod) label() string {
	if p.Worker < 0 {
		return p.Name
	}
	return p.number()
}

// copyLog opens the log of the pod's first container, which is the program's, and copies it.
func (p Pod) copyLog(ctx context.Context, open OpenLog, follow bool, write func(io.Reader) error) error {
	log, err := open(ctx, p.stored.Namespace, p.Name, &corev1.PodLogOptions{Container: p.stored.Spec.Containers[0].Name, Follow: follow})
	if err != nil {
		return fmt.Errorf("cannot read the log of pod %s, which is %s: %w", p.Name, p.State, oneLine{err})
	}
	defer log.Close()
	if err := write(log); err != nil {
		return fmt.Errorf("the log of pod %s broke off: %w", p.Name, oneLine{err})
	}
	return nil
}

func copyLines(to *printing.Lines, label string, log io.Reader) error {
	for reader := bufio.NewReader(log); ; {
		line, err := reader.ReadString('\n')
		if line != "" {
			to.Printf("[%s] %s", label, strings.TrimSuffix(line, "\n"))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// noPods says why there are none.
func noPods(run *v1alpha1.Run) error {
	when := "yet"
	if run.Status.Phase.Terminal() || run.Status.StartTime != nil || run.Status.LastFailure != nil {
		when = "any more"
	}
	return fmt.Errorf("%s %s has no pods %s: it is %s", v1alpha1.RunKind, run.Name, when, situation(run))
}

func noWorker(run *v1alpha1.Run, pods []Pod, number int) error {
	if first(pods) != "" {
		return fmt.Errorf("the workers of Run %s have no numbers, as those of api ray: use --all", run.Name)
	}
	if resolved := run.Status.Resolved; resolved != nil && number >= int(resolved.Workers) {
		return fmt.Errorf("%s %s has no worker %d: its workers are 0 to %d", v1alpha1.RunKind, run.Name, number, resolved.Workers-1)
	}
	return fmt.Errorf("worker %d of Run %s has no pod: the Run is %s", number, run.Name, situation(run))
}

// situation is the phase of a Run, its message and its last failure, in one line.
func situation(run *v1alpha1.Run) string {
	text := Report{Run: run}.phase()
	if message := run.Status.Message; message != "" {
		text += ": " + message
	}
	if failure := run.Status.LastFailure; failure != nil {
		text += "; the last failure was " + failureText(*failure)
		if failure.Message != "" {
			text += fmt.Sprintf(": its last lines are in 'mlbatch run status %s'", run.Name)
		}
	}
	return printing.OneLine(text)
}
