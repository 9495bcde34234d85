// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
)

// Selection says which logs are wanted. If it is empty, that is the only pod's, or that of rank 0.
type Selection struct {
	Rank *int
	Pod  string
	// Step is that of a workflow.
	Step string
	All  bool
	// Attempt is the number of an attempt, from 1, or 0 for the present one.
	Attempt int32
	// Follow waits for more until the containers end.
	Follow bool
}

// Logs copies logs of the pods of some work to out. With All, they are merged by time, and each line begins with the
// rank of its pod, or with its name if ranks are not unique.
func Logs(ctx context.Context, c client.Client, open podlogs.Open, o explain.Objects, s Selection, out io.Writer) error {
	if o.Run != nil {
		return logsOfRun(ctx, c, open, o, s, out)
	}
	if s.Step != "" {
		return fmt.Errorf("only a workflow has steps, and %s is no Run: leave --step out", summary(o).Name)
	}
	if err := presentAttempt(ctx, c, o, s.Attempt, out); err != nil {
		return err
	}
	pods, err := podsThatAre(ctx, c, o, s)
	if err != nil {
		fmt.Fprint(out, lastWords(o.AppWrapper))
		return err
	}
	if s.All && !s.Follow {
		return podlogs.Merged(ctx, open, pods, out, labels(pods))
	}
	if s.All {
		return podlogs.Labelled(ctx, open, pods, s.Follow, out, labels(pods))
	}
	pod, err := chosen(summary(o), pods, s)
	if err != nil {
		return err
	}
	return pod.Log(ctx, open, s.Follow, out)
}

// presentAttempt is an error if another attempt is wanted. Of those before it prints what is left. Evictions and
// leaving a node end attempts without being counted, so which of them is the one that is wanted is not known.
func presentAttempt(ctx context.Context, c client.Client, o explain.Objects, wanted int32, out io.Writer) error {
	err := ofAttempt(ctx, c, o, wanted)
	if err == nil || o.AppWrapper == nil || wanted >= attemptOf(o.AppWrapper) {
		return err
	}
	if left := whatAttemptsLeft(o.AppWrapper); left != "" {
		fmt.Fprint(out, left)
		err = fmt.Errorf("%w; what is left of the last attempts is above, and in status.lastAttempts of the AppWrapper", err)
	}
	return err
}

// PodOf is the one pod in which a command is to be run. It runs.
func PodOf(ctx context.Context, c client.Client, o explain.Objects, s Selection) (corev1.Pod, error) {
	if o.Run != nil && len(o.Run.Status.Steps) > 0 {
		return corev1.Pod{}, fmt.Errorf("%s %s has steps: name the AppWrapper of one: 'mlbatch status %s' lists them", v1alpha1.RunKind, o.Run.Name, o.Run.Name)
	}
	if o.AppWrapper == nil && o.Job == nil {
		return corev1.Pod{}, fmt.Errorf("%s %s has no pods: it is %s: see 'mlbatch why %s'", v1alpha1.RunKind, o.Run.Name, o.Run.Status.Phase, o.Run.Name)
	}
	pods, err := podsThatAre(ctx, c, o, s)
	if err != nil {
		return corev1.Pod{}, err
	}
	pod, err := chosen(summary(o), pods, s)
	if err != nil {
		return corev1.Pod{}, err
	}
	if pod.Stored.Status.Phase != corev1.PodRunning {
		return corev1.Pod{}, fmt.Errorf("pod %s does not run: it is %s", pod.Name, pod.State)
	}
	return pod.Stored, nil
}

func logsOfRun(ctx context.Context, c client.Client, open podlogs.Open, o explain.Objects, s Selection, out io.Writer) error {
	name := o.Run.Name
	if s.Pod != "" {
		return fmt.Errorf("the pods of a Run are chosen with --rank: use 'mlbatch logs %s --rank N'", name)
	}
	if err := ofAttempt(ctx, c, o, s.Attempt); err != nil {
		return err
	}
	wanted := runs.Selection{Step: s.Step, All: s.All, Follow: s.Follow}
	if s.Rank != nil {
		wanted.Worker = *s.Rank
	}
	return runs.Logs(ctx, c, open, client.ObjectKeyFromObject(o.Run), wanted, out)
}

// podsThatAre are the pods that exist. One that another pod of the same rank has replaced is there only by its name.
func podsThatAre(ctx context.Context, c client.Client, o explain.Objects, s Selection) ([]podlogs.Pod, error) {
	i := summary(o)
	label := why.PodLabel(i.Kind)
	if o.AppWrapper != nil {
		label = v1beta2.AppWrapperLabel
	}
	if label == "" {
		return nil, fmt.Errorf("the pods of a %s cannot be found by a label: use 'kubectl get pods' and 'kubectl logs'", i.Kind)
	}
	stored, err := clusterstate.List[corev1.Pod](ctx, c, &corev1.PodList{}, client.InNamespace(i.Namespace), client.MatchingLabels{label: i.Name})
	if err != nil {
		return nil, clusterstate.Failed(err, clusterstate.Request{Verb: "list", Resource: "pods", Namespace: i.Namespace})
	}
	if len(stored) == 0 {
		return nil, noPods(o)
	}
	pods, seen := podlogs.Sorted(stored), map[string]bool{}
	if s.Pod != "" {
		return pods, nil
	}
	return slices.DeleteFunc(pods, func(p podlogs.Pod) bool {
		key := fmt.Sprintf("%s/%d", makerOf(p), p.Worker)
		replaced := p.Worker >= 0 && seen[key]
		seen[key] = true
		return replaced
	}), nil
}

// makerOf is the component, or a part of it, that has made a pod. Within it ranks are unique.
func makerOf(p podlogs.Pod) types.UID {
	if owner := metav1.GetControllerOf(&p.Stored); owner != nil {
		return owner.UID
	}
	return ""
}

// noPods says why there are none.
func noPods(o explain.Objects) error {
	i, when := summary(o), "yet"
	if aw := o.AppWrapper; aw != nil && aw.Status.Retries+aw.Status.Migrations > 0 ||
		slices.Contains([]string{"Succeeded", "Failed", "Ended", "Terminating", "Resetting", "Suspending"}, i.State) {
		when = "any more, and their logs are gone with them"
	}
	text := fmt.Sprintf("%s %s has no pods %s: it is %s", i.Kind, i.Name, when, i.State)
	if o.AppWrapper != nil {
		if f := lastFailure(o.AppWrapper, nil); f != nil {
			text += ": " + cmp.Or(f.Message, f.Reason)
		}
	}
	return errors.New(text + ": see 'mlbatch why " + i.Name + "'")
}

// chosen is the one pod that is meant.
func chosen(i Item, pods []podlogs.Pod, s Selection) (podlogs.Pod, error) {
	wanted := func(p podlogs.Pod) bool { return p.Worker == 0 }
	switch {
	case s.Pod != "":
		wanted = func(p podlogs.Pod) bool { return p.Name == s.Pod }
	case s.Rank != nil:
		wanted = func(p podlogs.Pod) bool { return p.Worker == *s.Rank }
	case len(pods) == 1:
		wanted = func(podlogs.Pod) bool { return true }
	}
	var found []podlogs.Pod
	for _, p := range pods {
		if wanted(p) {
			found = append(found, p)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return podlogs.Pod{}, ambiguous(i, pods, found, s)
}

func ambiguous(i Item, pods, found []podlogs.Pod, s Selection) error {
	work := i.Kind + " " + i.Name
	switch {
	case s.Pod != "":
		return fmt.Errorf("%s has no pod %s: its pods are %s", work, s.Pod, names(pods))
	case s.Rank != nil && len(found) == 0:
		return fmt.Errorf("no pod of %s has rank %d: its pods are %s: choose one with --pod", work, *s.Rank, names(pods))
	case len(found) > 1:
		return fmt.Errorf("%d pods of %s have rank %d: choose one with --pod: %s", len(found), work, found[0].Worker, names(found))
	}
	return fmt.Errorf("the pods of %s have no ranks: choose one with --pod, or use --all: %s", work, names(pods))
}

// names are those of some pods, with their ranks.
func names(pods []podlogs.Pod) string {
	var all []string
	for _, p := range pods[:min(len(pods), 10)] {
		name := p.Name
		if p.Worker >= 0 {
			name += " (rank " + p.Number() + ")"
		}
		all = append(all, name)
	}
	if len(pods) > 10 {
		all = append(all, fmt.Sprintf("and %d more", len(pods)-10))
	}
	return strings.Join(all, ", ")
}

// labels are ranks if these are unique, and else names.
func labels(pods []podlogs.Pod) func(podlogs.Pod) string {
	seen := map[int]bool{}
	for _, p := range pods {
		if p.Worker >= 0 && seen[p.Worker] {
			return func(p podlogs.Pod) string { return p.Name }
		}
		seen[p.Worker] = true
	}
	return func(p podlogs.Pod) string { return cmp.Or(p.Number(), p.Name) }
}
