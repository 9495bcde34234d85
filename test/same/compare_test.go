// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package same_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/same/corpus"
	"github.com/mlbatch/mlbatch/test/same/rows"
	"github.com/mlbatch/mlbatch/test/same/transcript"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

const (
	// calm is how long nothing happens before nothing more is expected: longer than what operators wait for.
	calm = 35 * time.Second
	// undecided is the same for an AppWrapper whose pods are not ready, longer than its graces, and for objects without
	// pods.
	undecided = 70 * time.Second
	// settled is how long an AppWrapper may do nothing after its component has ended: longer than any of its graces, which
	// were set when the machine may have been busier.
	settled = 2 * time.Minute
	// trailing is how long a run goes on after its end.
	trailing = 3 * time.Second
	limit    = 8 * time.Minute
)

// graces are shorter than by default, so that what they end is ended within a run; longer on a machine that is busy.
func graces() map[string]string {
	all := map[string]string{
		workload.AdmissionGracePeriodDurationAnnotation: patience.For(30 * time.Second).String(),
		workload.WarmupGracePeriodDurationAnnotation:    patience.For(45 * time.Second).String(),
		workload.FailureGracePeriodDurationAnnotation:   patience.For(20 * time.Second).String(),
		workload.RetryPausePeriodDurationAnnotation:     "5s",
	}
	if !*retries {
		all[workload.RetryLimitAnnotation] = "0"
	}
	return all
}

// result is what came of an object.
type result struct {
	rows.Result
	of            corpus.Case
	bare, wrapped *transcript.Transcript
	bareRefusal   string
}

// details are the manifest and both transcripts.
func (r *result) details() string {
	manifest, err := yaml.Marshal(r.of.Object)
	if err != nil {
		panic(err) // it was decoded from YAML
	}
	return fmt.Sprintf("## %s\n\n%s\n\n- %s\n\n```yaml\n%s```\n\nbare:\n\n```\n%s%s```\n\nwrapped:\n\n```\n%s%s```\n\n",
		r.Name, strings.Join([]string{r.What, r.of.Disturb}, " "), strings.Join(r.Differences, "\n- "), manifest, r.bare, r.bareRefusal, r.wrapped, r.Refusal)
}

// compare runs an object bare and wrapped.
func (w *world) compare(c corpus.Case, attempt int) *result {
	r := &result{Result: rows.Result{Name: c.Name, What: c.What, Sample: c.Sample}, of: c}
	ctx := w.t.Context()
	name := fmt.Sprintf("%s-%d", c.Name, attempt)
	r.bare, r.wrapped = w.open("b-"+name), w.open("w-"+name)
	bare, inside := c.Object.DeepCopy(), c.Object.DeepCopy()
	if err := errors.Join(w.prepare(ctx, "b-"+name, "w-"+name), w.keepApart(ctx, c, bare, "b-"+name), w.keepApart(ctx, c, inside, "w-"+name)); err != nil {
		r.Differences = []string{err.Error()}
		return r
	}
	bare.SetNamespace("b-" + name)
	wrapped := w.wrap(inside, "w-"+name)
	r.Refusal, r.bareRefusal = w.create(ctx, wrapped), w.create(ctx, bare)
	switch {
	case r.Refusal != "":
	case r.bareRefusal != "":
		r.Differences = w.neverRuns(ctx, r, "w-"+name)
	default:
		r.Differences = w.both(ctx, c, r, "b-"+name, "w-"+name)
	}
	w.remove(bare, wrapped)
	return r
}

// open begins the transcript of a namespace.
func (w *world) open(namespace string) *transcript.Transcript {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records[namespace] = transcript.New(time.Now(), patience.For(transcript.Race))
	return w.records[namespace]
}

// create returns why an object is refused for good, or "". The API server of a slow machine may not reach a webhook in
// time.
func (w *world) create(ctx context.Context, o client.Object) string {
	for end := time.Now().Add(patience.For(limit)); ; {
		err := w.admin.Create(ctx, o)
		if err == nil || apierrors.IsAlreadyExists(err) {
			return ""
		}
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || meta.IsNoMatchError(err) || time.Now().After(end) {
			return err.Error()
		}
		time.Sleep(time.Second)
	}
}

func (w *world) prepare(ctx context.Context, bare, wrapped string) error {
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bare}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: wrapped, Labels: sandbox.Team}},
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: wrapped, Name: queue}, Spec: kueue.LocalQueueSpec{ClusterQueue: queue}},
	} {
		if err := w.admin.Create(ctx, o); err != nil {
			return fmt.Errorf("cannot prepare a namespace: %w", err)
		}
	}
	return nil
}

func (w *world) wrap(o *unstructured.Unstructured, namespace string) *workload.AppWrapper {
	text, err := o.MarshalJSON()
	if err != nil {
		panic(err) // it was decoded from YAML
	}
	return &workload.AppWrapper{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.GetName(), Labels: map[string]string{workload.QueueNameLabel: queue}, Annotations: graces()},
		Spec:       workload.AppWrapperSpec{Components: []workload.AppWrapperComponent{{Template: runtime.RawExtension{Raw: text}}}},
	}
}

// both waits until both runs are over, and compares them.
func (w *world) both(ctx context.Context, c corpus.Case, r *result, bare, wrapped string) []string {
	go w.disturb(ctx, c.Disturb, bare)
	go w.disturb(ctx, c.Disturb, wrapped)
	end := time.Now().Add(patience.For(limit))
	for over := false; !over; {
		if time.Now().After(end) {
			return []string{fmt.Sprintf("it is not over within %s on a quiet machine", limit)}
		}
		select {
		case <-ctx.Done():
			return []string{"the test was ended"}
		case <-time.After(time.Second / 2):
		}
		over = w.look(r.bare, func(t *transcript.Transcript) bool { return bareOver(t, w.nodes.Busy(bare)) }) &&
			w.look(r.wrapped, func(t *transcript.Transcript) bool { return wrappedOver(t, w.nodes.Busy(wrapped)) })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.records, bare)
	delete(w.records, wrapped)
	a, b := r.bare.Summary(r.bare.Bare()), r.wrapped.Summary(r.wrapped.Wrapped())
	r.Bare, r.Wrapped = string(a.Outcome), string(b.Outcome)
	switch {
	case *retries:
		return transcript.WithRetries(a, b, c.Disturb != "", w.attempts[wrapped], w.causes)
	case c.Moves():
		return transcript.NotWorse(a, b)
	}
	return transcript.Compare(a, b)
}

func (w *world) look(t *transcript.Transcript, at func(*transcript.Transcript) bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return at(t)
}

// bareOver reports whether nothing more is expected of a bare object. One without pods may still get them.
func bareOver(t *transcript.Transcript, busy bool) bool {
	quiet := t.Quiet(time.Now())
	switch {
	case t.Restarts() >= transcript.Crashes:
		return true
	case busy:
		return false
	case t.Ended() != "":
		return quiet > patience.For(trailing)
	case t.HasPods():
		return quiet > patience.For(calm)
	}
	return quiet > patience.For(undecided)
}

// wrappedOver is the same for an AppWrapper. One that waits for Kueue or begins again goes on.
func wrappedOver(t *transcript.Transcript, busy bool) bool {
	quiet := t.Quiet(time.Now())
	switch {
	case t.Restarts() > transcript.Crashes+2: // longer than the grace, and the AppWrapper does nothing
		return true
	case busy || !t.Rests():
		return false
	case t.Ended() != "" && (t.Wrapped() == transcript.Ready || t.Wrapped() == transcript.NotReady):
		return quiet > patience.For(settled)
	case t.Wrapped() == transcript.Ready:
		return quiet > patience.For(calm)
	case t.Wrapped() == transcript.NotReady:
		return quiet > patience.For(undecided)
	}
	return quiet > patience.For(trailing)
}

// neverRuns waits for the end of an AppWrapper whose object the API server does not accept.
func (w *world) neverRuns(ctx context.Context, r *result, wrapped string) []string {
	err := sandbox.Within(ctx, patience.For(limit), func() error {
		if !w.look(r.wrapped, func(t *transcript.Transcript) bool { return t.Wrapped() == transcript.Failed }) {
			return fmt.Errorf("the API server refuses it (%s), and its AppWrapper goes on", r.bareRefusal)
		}
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.records, wrapped)
	r.Bare, r.Wrapped = string(transcript.Refused), string(r.wrapped.Wrapped())
	if err != nil {
		return []string{err.Error()}
	}
	return nil
}

// remove gives back what a run has used.
func (w *world) remove(objects ...client.Object) {
	for _, o := range objects {
		err := w.admin.Delete(context.WithoutCancel(w.t.Context()), o, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			w.t.Logf("cannot remove %s: %v", o.GetName(), err)
		}
	}
}
