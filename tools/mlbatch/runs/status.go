// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

// Report is how far a Run is.
type Report struct {
	Run *v1alpha1.Run `json:"run"`
	// AppWrapper is the phase of its AppWrapper, or gone if it was deleted.
	AppWrapper string `json:"appWrapper,omitempty"`
	// Waits says in Kueue's words why the Run has no quota.
	Waits string `json:"waits,omitempty"`
	// StepsWait says likewise why steps have no quota, by their names.
	StepsWait map[string]string `json:"stepsWait,omitempty"`
	Pods      []podlogs.Pod     `json:"pods"`
	// Unknown is what could not be read, and why.
	Unknown []string `json:"unknown,omitempty"`
}

// Status reads a Run, and what belongs to it. If only the Run can be read, the report says so.
func Status(ctx context.Context, c client.Reader, key client.ObjectKey) (Report, error) {
	run, err := get(ctx, c, key)
	if err != nil {
		return Report{}, err
	}
	strip(run)
	r := Report{Run: run, Pods: []podlogs.Pod{}}
	if made := run.Status.AppWrapper; made != nil {
		r.lookUp(ctx, c, *made)
	}
	r.lookUpSteps(ctx, c)
	pods, err := podsOf(ctx, c, run)
	if err != nil {
		r.Unknown = append(r.Unknown, err.Error())
	}
	r.Pods = append(r.Pods, pods...)
	return r, nil
}

func (r *Report) lookUp(ctx context.Context, c client.Reader, made v1alpha1.AppWrapperReference) {
	aw := &v1beta2.AppWrapper{}
	err := c.Get(ctx, client.ObjectKey{Namespace: r.Run.Namespace, Name: made.Name}, aw)
	if apierrors.IsNotFound(err) || err == nil && aw.UID != made.UID {
		r.AppWrapper = "gone"
		return
	}
	if err != nil {
		r.AppWrapper = "unknown"
		r.Unknown = append(r.Unknown, failed(err, "cannot read AppWrapper %s", made.Name).Error())
		return
	}
	r.AppWrapper = cmp.Or(string(aw.Status.Phase), "new")
	if meta.IsStatusConditionTrue(r.Run.Status.Conditions, v1alpha1.QuotaReserved) || r.Run.Status.Phase.Terminal() {
		return
	}
	r.Waits = r.why(ctx, c, made)
}

// lookUpSteps asks why the steps in a queue wait.
func (r *Report) lookUpSteps(ctx context.Context, c client.Reader) {
	for _, step := range r.Run.Status.Steps {
		if step.Phase != v1alpha1.RunQueued || step.AppWrapper == nil {
			continue
		}
		if r.StepsWait == nil {
			r.StepsWait = map[string]string{}
		}
		r.StepsWait[step.Name] = r.why(ctx, c, *step.AppWrapper)
	}
}

// why says in Kueue's words why an AppWrapper has no quota.
func (r *Report) why(ctx context.Context, c client.Reader, made v1alpha1.AppWrapperReference) string {
	waits, err := submit.QuotaReason(ctx, c, r.Run.Namespace, string(made.UID))
	if err != nil {
		r.Unknown = append(r.Unknown, failed(err, "cannot list the Workloads, which say why a Run waits").Error())
	}
	return printing.OneLine(waits)
}

// WriteStatus prints a report for people.
func WriteStatus(out io.Writer, r Report) error {
	status := r.Run.Status
	fmt.Fprintf(out, "Run %s in namespace %s is %s\n", r.Run.Name, r.Run.Namespace, r.phase())
	if status.Message != "" {
		fmt.Fprintf(out, "  %s\n", printing.OneLine(status.Message))
	}
	for _, condition := range telling(status) {
		fmt.Fprintf(out, "  %s\n", condition)
	}
	if err := printing.Table(out, r.facts()); err != nil {
		return err
	}
	if err := r.writeSteps(out); err != nil {
		return err
	}
	if err := r.writePods(out); err != nil {
		return err
	}
	r.writeFailure(out)
	for _, unknown := range r.Unknown {
		fmt.Fprintln(out, "unknown:", unknown)
	}
	return nil
}

// phase is what a controller has said, if there is one.
func (r Report) phase() string {
	if phase := r.Run.Status.Phase; phase != "" {
		return string(phase)
	}
	return "new: no controller of Runs has looked at it; if it stays so, ask an administrator whether codeflare is enabled"
}

// telling are the conditions that say why a Run is not running or did not succeed.
func telling(status v1alpha1.RunStatus) (all []string) {
	for _, condition := range status.Conditions {
		bad := metav1.ConditionFalse
		if condition.Type == v1alpha1.Failed {
			bad = metav1.ConditionTrue
		}
		over := status.Phase.Terminal() && condition.Type != v1alpha1.Failed
		if condition.Status != bad || condition.Type == v1alpha1.Complete || over {
			continue
		}
		text := fmt.Sprintf("%s is %s (%s)", condition.Type, condition.Status, condition.Reason)
		if condition.Message != "" && condition.Message != status.Message {
			text += ": " + condition.Message
		}
		all = append(all, printing.OneLine(text))
	}
	return all
}

// facts are rows of a name and a value.
func (r Report) facts() [][]string {
	status := r.Run.Status
	rows := [][]string{{"Application", r.Run.Spec.Application.Name}}
	if resolved := status.Resolved; resolved != nil {
		rows = append(rows, []string{"Size", resolved.Size + ": " + perWorker(*resolved)}, []string{"Queue", cmp.Or(resolved.Queue, "the default one")})
	}
	if made := status.AppWrapper; made != nil {
		rows = append(rows, []string{"AppWrapper", fmt.Sprintf("%s (%s)", made.Name, r.AppWrapper)})
	}
	if r.Waits != "" {
		rows = append(rows, []string{"Waits", r.Waits})
	}
	if status.Retries > 0 {
		rows = append(rows, []string{"Retries", strconv.Itoa(int(status.Retries))})
	}
	return rows
}

func perWorker(resolved v1alpha1.Resolved) string {
	return runplan.Size{Workers: resolved.Workers, PerWorker: resolved.PerWorker}.String()
}

func (r Report) writeSteps(out io.Writer) error {
	if len(r.Run.Status.Steps) == 0 {
		return nil
	}
	rows := [][]string{{"STEP", "APPLICATION", "STATUS", "APPWRAPPER", "MESSAGE"}}
	for _, step := range r.Run.Status.Steps {
		made := ""
		if step.AppWrapper != nil {
			made = step.AppWrapper.Name
		}
		rows = append(rows, []string{step.Name, step.Application.Name, string(step.Phase), made, cmp.Or(r.StepsWait[step.Name], step.Message)})
	}
	fmt.Fprintln(out)
	return printing.Table(out, rows)
}

func (r Report) writePods(out io.Writer) error {
	if len(r.Pods) == 0 {
		return nil
	}
	rows := [][]string{{"STEP", "WORKER", "ROLE", "POD", "NODE", "STATE"}}
	for _, pod := range r.Pods {
		rows = append(rows, []string{pod.Step, pod.Number(), pod.Role, pod.Name, pod.Node, pod.State})
	}
	if len(r.Run.Status.Steps) == 0 {
		for i := range rows {
			rows[i] = rows[i][1:]
		}
	}
	fmt.Fprintln(out)
	return printing.Table(out, rows)
}

func (r Report) writeFailure(out io.Writer) {
	failure := r.Run.Status.LastFailure
	if failure == nil {
		return
	}
	of := ""
	if failure.Step != "" {
		of = " of step " + failure.Step
	}
	fmt.Fprintf(out, "\nThe last failure was attempt %d%s: %s\n", failure.Attempt, of, failureText(*failure))
	for line := range strings.Lines(strings.TrimSpace(printing.WithoutControls(failure.Message))) {
		fmt.Fprintf(out, "  %s\n", strings.TrimRight(line, " \n"))
	}
}

// failureText says which container failed, and how.
func failureText(failure v1alpha1.LastFailure) string {
	who := "pod " + failure.Pod
	if failure.Container != "" {
		who = fmt.Sprintf("container %s of %s", failure.Container, who)
	}
	var how []string
	if failure.Reason != "" {
		how = append(how, failure.Reason)
	}
	if failure.ExitCode != nil {
		how = append(how, fmt.Sprintf("exit code %d", *failure.ExitCode))
	}
	return printing.OneLine(who + ": " + cmp.Or(strings.Join(how, ", "), "no reason is known"))
}
