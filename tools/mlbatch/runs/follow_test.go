// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// runOf is a Run in a phase.
func runOf(name string, phase v1alpha1.RunPhase, message string) *v1alpha1.Run {
	r := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: name, UID: types.UID(name)}}
	r.Spec.Application.Name = "survey"
	r.Status = v1alpha1.RunStatus{Phase: phase, Message: message}
	return r
}

// life runs the next step of a Run's life after each line that is printed.
type life struct {
	mutex sync.Mutex
	steps []func()
	said  []string
}

func (l *life) Write(line []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	_, what, _ := strings.Cut(strings.TrimSpace(string(line)), " ") // cut off the time
	l.said = append(l.said, what)
	if len(l.steps) > 0 {
		l.steps[0]()
		l.steps = l.steps[1:]
	}
	return len(line), nil
}

// becomes sets the phase of a Run.
func becomes(t *testing.T, c client.Client, name string, phase v1alpha1.RunPhase, message string) {
	t.Helper()
	r := &v1alpha1.Run{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "blue", Name: name}, r); err != nil {
		t.Error(err)
	}
	r.Status.Phase, r.Status.Message = phase, message
	if err := c.Status().Update(t.Context(), r); err != nil {
		t.Error(err)
	}
}

func deleted(t *testing.T, c client.Client, name string) {
	t.Helper()
	if err := c.Delete(t.Context(), runOf(name, "", "")); err != nil {
		t.Error(err)
	}
}

func TestARunIsFollowedToItsEnd(t *testing.T) {
	for name, row := range map[string]struct {
		end        func(*testing.T, client.Client)
		said, says string
	}{
		"success": {end: func(t *testing.T, c client.Client) { becomes(t, c, "a", v1alpha1.RunSucceeded, "") }, said: "a: Succeeded"},
		"success that is deleted at once": {end: func(t *testing.T, c client.Client) {
			becomes(t, c, "a", v1alpha1.RunSucceeded, "")
			deleted(t, c, "a")
		}, said: "a: Succeeded"},
		"failure":                   {end: func(t *testing.T, c client.Client) { becomes(t, c, "a", v1alpha1.RunFailed, "1 pod\nfailed") }, said: "a: Failed: 1 pod failed", says: "Run a has failed: 1 pod failed"},
		"failure without a message": {end: func(t *testing.T, c client.Client) { becomes(t, c, "a", v1alpha1.RunFailed, "") }, said: "a: Failed", says: "Run a has failed: see 'mlbatch status run/a'"},
		"cancelled":                 {end: func(t *testing.T, c client.Client) { becomes(t, c, "a", v1alpha1.RunCancelled, "") }, said: "a: Cancelled", says: "Run a was cancelled"},
		"deletion":                  {end: func(t *testing.T, c client.Client) { deleted(t, c, "a") }, says: "Run a was deleted before its end was seen"},
		"another one of its name": {end: func(t *testing.T, c client.Client) {
			deleted(t, c, "a")
			other := runOf("a", "", "")
			other.UID = "other"
			if err := c.Create(t.Context(), other); err != nil {
				t.Error(err)
			}
		}, says: "Run a was deleted before its end was seen"},
	} {
		t.Run(name, func(t *testing.T) {
			var down bool
			var current watch.Interface
			c := cluster(t, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if down {
						down = false
						return apierrors.NewInternalError(errors.New("no\nleader"))
					}
					return c.Get(ctx, key, o, options...)
				},
				Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (w watch.Interface, err error) {
					current, err = c.Watch(ctx, list, options...)
					return current, err
				},
			}, runOf("a", v1alpha1.RunPending, "there is no Application yet"))
			l := &life{}
			l.steps = []func(){
				func() { becomes(t, c, "a", v1alpha1.RunQueued, "it waits for quota") },
				func() { // an API server closes every watch after some minutes, and may then be away
					current.Stop()
					becomes(t, c, "a", v1alpha1.RunStarting, "")
					down = true
				},
				func() {},
				func() { becomes(t, c, "a", v1alpha1.RunRunning, "") },
				func() { row.end(t, c) },
			}
			err := runs.WaitWithPause(t.Context(), c, []client.Object{runOf("a", "", "")}, l, 0)
			if row.says == "" && err != nil {
				t.Error(err)
			}
			if row.says != "" {
				wording.OneSentence(t, "", err, row.says)
			}
			want := []string{
				"a: Pending: there is no Application yet", "a: Queued: it waits for quota",
				"a: unknown: cannot read the Run: Internal error occurred: no leader", "a: Starting", "a: Running",
			}
			if row.said != "" {
				want = append(want, row.said)
			}
			if diff := cmp.Diff(want, l.said); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestSeveralRunsAreFollowedTogether(t *testing.T) {
	a, b, last := runOf("a", v1alpha1.RunFailed, "1 pod failed"), runOf("b", v1alpha1.RunCancelled, ""), runOf("c", v1alpha1.RunSucceeded, "")
	c := cluster(t, interceptor.Funcs{}, a, b, last)
	l := &life{}
	err := runs.WaitWithPause(t.Context(), c, []client.Object{a, b, last}, l, 0)
	wording.OneSentence(t, "", err, "Run a has failed: 1 pod failed; Run b was cancelled")
	if len(l.said) != 3 {
		t.Errorf("it prints %q", l.said)
	}
}

// A Run, or a step of a workflow, whose Workload was deactivated waits for a person.
func TestNobodyWaitsForARunThatNobodyStartsAgain(t *testing.T) {
	active := false
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "w", Labels: map[string]string{"kueue.x-k8s.io/job-uid": "made"}, OwnerReferences: []metav1.OwnerReference{{UID: "made"}}}}
	w.Spec.Active = &active
	alone, flow := runOf("a", v1alpha1.RunQueued, ""), runOf("a", v1alpha1.RunQueued, "")
	made := &v1alpha1.AppWrapperReference{Name: "a", UID: "made"}
	alone.Status.AppWrapper = made
	flow.Status.Steps = []v1alpha1.StepStatus{{Phase: v1alpha1.RunQueued, AppWrapper: made}}
	for _, run := range []*v1alpha1.Run{alone, flow} {
		err := runs.WaitWithPause(t.Context(), cluster(t, interceptor.Funcs{}, run, w.DeepCopy()), []client.Object{run}, &life{}, 0)
		wording.OneSentence(t, "", err, "Run a is stopped: nobody starts AppWrapper a again: the Workload was deactivated")
	}
}

func TestAnInterruptedWaitSaysThatTheRunsContinue(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := runOf("a", v1alpha1.RunQueued, "")
	c := cluster(t, interceptor.Funcs{}, a)
	if err := runs.WaitWithPause(ctx, c, []client.Object{a}, &life{steps: []func(){cancel}}, 0); !errors.Is(err, runs.ErrInterrupted) {
		t.Errorf("got %v", err)
	}
}

// It is of no use to try these again.
func TestARunThatCannotBeFollowedContinues(t *testing.T) {
	for name, row := range map[string]struct {
		answer error
		says   string
	}{
		"without the right": {forbidden("runs"), "cannot follow Run a, but it continues: runs.codeflare.dev"},
		"without a login":   {apierrors.NewUnauthorized("expired"), "cannot follow Run a, but it continues: expired"},
	} {
		t.Run(name, func(t *testing.T) {
			a := runOf("a", v1alpha1.RunQueued, "")
			c := cluster(t, interceptor.Funcs{Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
				return nil, row.answer
			}}, a)
			wording.OneSentence(t, "", runs.WaitWithPause(t.Context(), c, []client.Object{a}, &life{}, 0), row.says)
		})
	}
	err := runs.WaitWithPause(t.Context(), definitionsGone(t), []client.Object{runOf("a", "", "")}, &life{}, 0)
	wording.OneSentence(t, "", err, "the cluster does not know Runs")
}

// While a cluster is away, the command waits for it.
func TestAClusterThatDisappearsIsWaitedFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := &life{steps: []func(){cancel}}
	err := runs.WaitWithPause(ctx, gone(t), []client.Object{runOf("a", "", "")}, l, 0)
	if !errors.Is(err, runs.ErrInterrupted) || len(l.said) != 1 || !strings.HasPrefix(l.said[0], "a: unknown: cannot read the Run: ") {
		t.Errorf("got %q, %v", l.said, err)
	}
}
