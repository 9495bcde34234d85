// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
)

// waiting is a world with an AppWrapper of so many Jobs that waits for quota.
func waiting(t *testing.T, jobs int) *world {
	t.Helper()
	aw := given.AppWrapper("a")
	for i := range jobs {
		aw = aw.With(given.Job(fmt.Sprintf("j%d", i), 1))
	}
	w := newWorld(t, aw.Build())
	w.reconciler.dryRuns = newDryRuns()
	w.reconcile()
	w.writes = nil
	return w
}

// tried are the creations with dry run until some time has passed.
func (w *world) tried(after time.Duration) (tries int) {
	w.now = w.now.Add(after)
	for range 3 {
		w.reconcile()
	}
	for _, write := range w.writes {
		if strings.HasPrefix(write, "try ") {
			tries++
		}
	}
	return tries
}

var jobsOfBatch = schema.GroupResource{Group: "batch", Resource: "jobs"}

func TestWhatCanNeverRunDoesNotWait(t *testing.T) {
	webhook := func(code int32, says string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "w" denied the request: ` + says}}
	}
	for name, tc := range map[string]struct {
		refusal error
		// at once, or 10 seconds after the first answer; else it goes on waiting.
		fails, failsLater bool
		// tries are what it costs within an hour. Whoever does not answer is asked again, after 2 seconds and so on.
		tries int
	}{
		"it can be created":                       {tries: 1},
		"it is not valid":                         {refusal: apierrors.NewInvalid(jobKind.GroupKind(), "j0", nil), fails: true, tries: 1},
		"it cannot be decoded":                    {refusal: apierrors.NewBadRequest("json: cannot unmarshal number"), fails: true, tries: 1},
		"a webhook with side effects":             {refusal: apierrors.NewBadRequest(`admission webhook "w" does not support dry run`), tries: 1},
		"a webhook denies it, and does so again":  {refusal: webhook(403, "no such queue"), failsLater: true, tries: 2},
		"a webhook calls it invalid":              {refusal: webhook(422, "no such queue"), failsLater: true, tries: 2},
		"a quota is full":                         {refusal: apierrors.NewForbidden(jobsOfBatch, "j0", errors.New("exceeded quota: q")), tries: 1},
		"an account may come":                     {refusal: apierrors.NewForbidden(jobsOfBatch, "j0", errors.New("error looking up service account")), tries: 1},
		"the name is taken":                       {refusal: apierrors.NewAlreadyExists(jobsOfBatch, "j0"), tries: 1},
		"a conflict":                              {refusal: apierrors.NewConflict(jobsOfBatch, "j0", errors.New("changed")), tries: 1},
		"the API server is busy":                  {refusal: apierrors.NewTooManyRequestsError("later"), tries: 3},
		"a webhook does not answer":               {refusal: apierrors.NewInternalError(errors.New("failed calling webhook")), tries: 3},
		"the API server does not answer in time":  {refusal: apierrors.NewTimeoutError("no", 1), tries: 3},
		"the network is down":                     {refusal: errors.New("connection refused"), tries: 3},
		"a webhook hangs for longer than we wait": {refusal: errors.New("context deadline exceeded"), tries: 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := waiting(t, 1)
			w.refuse = func(client.Object) error { return tc.refusal }
			if tries := w.tried(time.Second / 2); tries != 0 {
				t.Errorf("%d creations with dry run within a second", tries)
			}
			w.tried(time.Second / 2)
			w.expectFailed(tc.fails)
			w.tried(9 * time.Second)
			w.expectFailed(tc.fails)
			w.tried(time.Second)
			w.expectFailed(tc.fails || tc.failsLater)
			if tries := w.tried(time.Hour); tries != tc.tries {
				t.Errorf("%d creations with dry run, want %d: %q", tries, tc.tries, w.writes)
			}
			if slices.ContainsFunc(w.writes, func(write string) bool { return strings.HasPrefix(write, "create ") }) {
				t.Errorf("something was created: %q", w.writes)
			}
		})
	}
}

// expectFailed compares the phase, and whether the status says why.
func (w *world) expectFailed(want bool) {
	w.Helper()
	aw := w.get()
	if failed := aw.Status.Phase == v1beta2.AppWrapperFailed; failed != want {
		w.Fatalf("it is %s after %q", aw.Status.Phase, w.writes)
	}
	unhealthy := condition(aw.Status, v1beta2.Unhealthy)
	if want && (unhealthy.Reason != v1beta2.ReasonCreateFailed || !strings.HasPrefix(unhealthy.Message, `Job "j0" could not be created: `)) {
		w.Errorf("its status says %+v", unhealthy)
	}
}

// A webhook that says something else each time is not believed, and not asked on and on.
func TestADenialWithOtherWordsIsNotBelieved(t *testing.T) {
	w := waiting(t, 1)
	said := 0
	w.refuse = func(client.Object) error {
		said++
		return apierrors.NewForbidden(jobsOfBatch, "j0", fmt.Errorf(`admission webhook "w" denied the request: at %d`, said))
	}
	for range 10 {
		w.tried(time.Minute)
	}
	w.expectFailed(false)
	if said != 2 {
		t.Errorf("it was asked %d times", said)
	}
}

// A dry run leaves nothing behind that a later component may need.
func TestAComponentThatNeedsAnEarlierOneMayBeDenied(t *testing.T) {
	w := waiting(t, 2)
	w.refuse = func(o client.Object) error {
		if o.GetName() == "j0" {
			return nil
		}
		return apierrors.NewForbidden(jobsOfBatch, o.GetName(), errors.New(`admission webhook "w" denied the request: there is no j0`))
	}
	w.tried(time.Second)
	w.tried(time.Minute)
	w.expectFailed(false)
}

func TestAllComponentsAreTriedUpToTheFirstRefusal(t *testing.T) {
	const components = 64
	w := waiting(t, components)
	if tries := w.tried(time.Second); tries != components {
		t.Errorf("%d of %d were tried", tries, components)
	}
	w = waiting(t, components)
	w.refuse = func(o client.Object) error {
		if o.GetName() == "j0" {
			return apierrors.NewInvalid(jobKind.GroupKind(), "j0", nil)
		}
		return nil
	}
	if tries := w.tried(time.Second); tries != 1 {
		t.Errorf("%d were tried after the first was refused", tries)
	}
}

func TestFewAreTriedAtATime(t *testing.T) {
	w := waiting(t, 1)
	for range askedAtATime {
		w.reconciler.dryRuns.asking <- struct{}{}
	}
	if tries := w.tried(time.Second); tries != 0 {
		t.Errorf("%d are tried while as many as may be are", tries)
	}
	if wait := w.reconcile().RequeueAfter; wait != untilFree {
		t.Errorf("it looks again in %s", wait)
	}
	w.liveReads = nil
	looks := 0
	for until := w.now.Add(10 * time.Minute); w.now.Before(until); looks++ {
		w.now = w.now.Add(w.reconcile().RequeueAfter)
	}
	if looks > 15 || len(w.liveReads) > 0 {
		t.Errorf("within ten minutes it looks %d times, with the requests %q", looks, w.liveReads)
	}
	<-w.reconciler.dryRuns.asking
	if tries := w.tried(longestUntilFree); tries != 1 {
		t.Errorf("%d are tried when there is room", tries)
	}
	if len(w.reconciler.dryRuns.asking) != askedAtATime-1 {
		t.Error("its place was not given back")
	}
}

// What has begun before has shown that it can be created.
func TestWhatRanBeforeIsNotTried(t *testing.T) {
	w := waiting(t, 1)
	w.tried(time.Second)
	w.reconciler.dryRuns = newDryRuns() // of a new process
	aw := w.get()
	aw.Status.ComponentStatus[0].Conditions = []metav1.Condition{{
		Type: string(v1beta2.ResourcesDeployed), Status: metav1.ConditionFalse, Reason: v1beta2.ReasonComponentDeleted, LastTransitionTime: metav1.Time{Time: w.now},
	}}
	if err := w.api.Status().Update(t.Context(), aw); err != nil {
		t.Fatal(err)
	}
	w.writes = nil
	if tries := w.tried(time.Minute); tries != 0 {
		t.Errorf("it was tried %d times", tries)
	}
}
