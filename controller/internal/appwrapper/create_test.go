// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
)

func TestWhatARefusalMeans(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	for name, tc := range map[string]struct {
		refusal   error
		permitted bool
		reason    string
		message   string
	}{
		"an invalid object stays invalid": {
			apierrors.NewInvalid(jobKind.GroupKind(), "j", nil), true, v1beta2.ReasonComponentCreationRejected, "is invalid"},
		"a request that cannot be decoded stays so": {
			apierrors.NewBadRequest("cannot be handled as a Job"), true, v1beta2.ReasonComponentCreationRejected, "cannot be handled"},
		"a kind that is not served": {
			&meta.NoKindMatchError{GroupKind: jobKind.GroupKind()}, true, v1beta2.ReasonComponentCreationRejected, "no matches for kind"},
		"a right that the controller lacks is named, and may be given": {
			apierrors.NewForbidden(jobs, "j", errors.New("no")), false, v1beta2.ReasonComponentCreationErrored,
			`lacks the permission to create jobs.batch in namespace "team-a"`},
		"a quota may have room later": {
			apierrors.NewForbidden(jobs, "j", errors.New("exceeded quota")), true, v1beta2.ReasonComponentCreationErrored, "exceeded quota"},
		"a webhook may come back": {
			apierrors.NewInternalError(errors.New("failed calling webhook")), true, v1beta2.ReasonComponentCreationErrored, "failed calling webhook"},
		"a network may come back": {
			errors.New("connection refused"), true, v1beta2.ReasonComponentCreationErrored, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
			w.refuse, w.permitted = func(client.Object) error { return tc.refusal }, tc.permitted
			expectRefusal(t, w, tc.reason, tc.message)
		})
	}
}

// expectRefusal reconciles until a create is refused.
func expectRefusal(t *testing.T, w *world, reason, message string) {
	t.Helper()
	for range 5 {
		w.reconcile()
		if got := componentCondition(w); got != nil && got.Reason == reason && strings.Contains(got.Message, message) {
			return
		}
	}
	t.Errorf("want %s with %q, got %+v", reason, message, componentCondition(w))
}

func componentCondition(w *world) *metav1.Condition {
	w.Helper()
	aw := w.get()
	if len(aw.Status.ComponentStatus) == 0 {
		return nil
	}
	return meta.FindStatusCondition(aw.Status.ComponentStatus[0].Conditions, string(v1beta2.ResourcesDeployed))
}

func TestWhoRefuses(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	terminating := apierrors.NewForbidden(jobs, "j", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	byWebhook := apierrors.NewInternalError(errors.New("no database"))
	byWebhook.ErrStatus.Message = `admission webhook "w" denied the request: no database`
	for name, tc := range map[string]struct {
		err                error
		denied, unanswered bool
	}{
		"a webhook denies it":                         {apierrors.NewForbidden(jobs, "j", errors.New(`admission webhook "w" denied the request: no`)), true, false},
		"an admission plugin denies it":               {apierrors.NewForbidden(jobs, "j", errors.New("the integer value of priority (0) must not be provided in pod spec")), true, false},
		"a quota is full":                             {apierrors.NewForbidden(jobs, "j", errors.New("exceeded quota: q, requested: pods=1")), false, false},
		"a quota is not counted yet":                  {apierrors.NewForbidden(jobs, "j", errors.New("status unknown for quota: q, resources: pods")), false, false},
		"no quota covers it":                          {apierrors.NewForbidden(jobs, "j", errors.New("insufficient quota to match these scopes: []")), false, false},
		"the namespace goes":                          {terminating, false, false},
		"somebody was faster":                         {apierrors.NewConflict(jobs, "j", errors.New("changed")), false, false},
		"a webhook has an error, and says so":         {byWebhook, false, false},
		"a webhook does not answer":                   {apierrors.NewInternalError(errors.New(`failed calling webhook "w": connection refused`)), false, true},
		"the API server has too much to do":           {apierrors.NewTooManyRequestsError("later"), false, true},
		"the API server does not answer in time":      {apierrors.NewTimeoutError("no", 1), false, true},
		"the API server is not there":                 {errors.New("connection refused"), false, true},
		"the API server is there, and not what it is": {apierrors.NewServiceUnavailable("no leader"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, given.AppWrapper("a").Build())
			w.permitted = true
			got, err := w.reconciler.judge(t.Context(), w.get(), job("j", "a"), tc.err)
			if err != nil || got == nil || got.Final || got.Denied != tc.denied || got.Unanswered != tc.unanswered {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestWhoseObjectIsAdopted(t *testing.T) {
	ofAnotherKind := job("j", "a")
	owner := metav1.GetControllerOf(ofAnotherKind)
	owner.Kind = "Job"
	ofAnotherKind.SetOwnerReferences([]metav1.OwnerReference{*owner})
	for name, tc := range map[string]struct {
		existing *unstructured.Unstructured
		reason   string
		message  string
	}{
		"our own is": {job("j", "a"), v1beta2.ReasonComponentCreatedSuccessfully, ""},
		"that of an earlier AppWrapper of the name is not": {
			job("j", "an earlier one"), v1beta2.ReasonComponentCreationErrored, "does not belong to this AppWrapper"},
		"that of an owner of another kind is not, whatever its UID": {
			ofAnotherKind, v1beta2.ReasonComponentCreationErrored, "does not belong to this AppWrapper"},
		"that of nobody is not": {
			job("j", ""), v1beta2.ReasonComponentCreationErrored, "does not belong to this AppWrapper"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
			w.add(tc.existing)
			expectRefusal(t, w, tc.reason, tc.message)
		})
	}
	for name, owner := range map[string]string{
		"our own that is going makes room":       "a",
		"so does that of an earlier AppWrapper":  "an earlier one",
		"so does that of nobody that is deleted": "",
	} {
		t.Run(name, func(t *testing.T) {
			going := job("j", owner)
			going.SetFinalizers([]string{"example.com/keep"})
			w := newWorld(t, given.AppWrapper("a").Build(), going)
			if err := w.api.Delete(t.Context(), going); err != nil {
				t.Fatal(err)
			}
			if got := w.reconciler.adopt(t.Context(), w.get(), going); got == nil || got.Final || got.cause != causeGoing {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Others may remove what has the name, or give the right, as a rollout does that installs them in any order.
func TestNamesAndRightsMayComeLater(t *testing.T) {
	taken := func(w *world) { w.add(job("j", "")) }
	freed := func(w *world) {
		if err := w.api.Delete(w.Context(), job("j", "")); err != nil {
			w.Fatal(err)
		}
	}
	without := func(w *world) {
		w.permitted = false
		w.refuse = func(client.Object) error {
			if w.permitted {
				return nil
			}
			return apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "j", errors.New("no"))
		}
	}
	granted := func(w *world) { w.permitted = true }
	for name, tc := range map[string]struct {
		before, comes func(*world)
		message       string
	}{
		"the name is taken":      {taken, freed, "an object of that name exists"},
		"the controller may not": {without, granted, "lacks the permission to create"},
	} {
		t.Run(name+" for a while", func(t *testing.T) {
			w := refusedOnce(t, tc.before)
			w.now = w.now.Add(30 * time.Second)
			w.settle()
			tc.comes(w)
			w.now = w.now.Add(15 * time.Second)
			w.settle()
			w.expectPhase(v1beta2.AppWrapperRunning)
		})
		t.Run(name+" for longer than the grace", func(t *testing.T) {
			w := refusedOnce(t, tc.before)
			existed := w.exists(jobKind, "j")
			for range 30 { // more often than attempts are due, because their delay would not count
				w.now = w.now.Add(5 * time.Second)
				w.settle()
			}
			w.expectPhase(v1beta2.AppWrapperFailed)
			unhealthy := meta.FindStatusCondition(w.get().Status.Conditions, string(v1beta2.Unhealthy))
			if unhealthy == nil || !strings.Contains(unhealthy.Message, tc.message) {
				t.Errorf("got %+v, want %q", unhealthy, tc.message)
			}
			if w.exists(jobKind, "j") != existed {
				t.Error("it removed what another has")
			}
		})
	}
}

// refusedOnce is a world with work that has no retry, after the first refusal of its Job.
func refusedOnce(t *testing.T, before func(*world)) *world {
	t.Helper()
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	w.change(func(aw *v1beta2.AppWrapper) { aw.Annotations = map[string]string{v1beta2.RetryLimitAnnotation: "0"} })
	before(w)
	w.settle()
	w.expectPhase(v1beta2.AppWrapperResuming)
	return w
}

func TestARightToReadThatIsMissingIsNamedAtOnce(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").Build())
	w.reconciler.live = interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, key.Name, errors.New("no"))
		},
	})
	got := w.reconciler.adopt(t.Context(), w.get(), job("j", "a"))
	if got == nil || got.Final || got.cause != causePermission || !strings.Contains(got.Message, "lacks the permission to get Job") {
		t.Errorf("got %+v", got)
	}
}

func TestObjectsThatCannotBeOwnedAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		kind    schema.GroupVersionKind
		message string
	}{
		"a cluster-scoped kind":     {nodeKind, "cluster-scoped"},
		"a kind that nobody serves": {customKind, "no matches for kind"},
	} {
		t.Run(name, func(t *testing.T) {
			component := given.Component(map[string]any{
				"apiVersion": tc.kind.GroupVersion().String(), "kind": tc.kind.Kind, "metadata": map[string]any{"name": "x"},
			})
			w := newWorld(t, given.AppWrapper("a").With(component).Unsuspended().Build())
			expectRefusal(t, w, v1beta2.ReasonComponentCreationRejected, tc.message)
		})
	}
}

func TestACrashAfterTheCreateMakesNoSecondObject(t *testing.T) {
	generated := given.Component(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "c-"},
	})
	w := newWorld(t, given.AppWrapper("a").With(generated).Unsuspended().Build())
	w.dieAt(4) // the save that all components exist
	w.expectPhase(v1beta2.AppWrapperResuming)
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(configMapKind.GroupVersion().WithKind("ConfigMapList"))
	if err := w.api.List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if len(all.Items) != 1 {
		t.Errorf("there are %d objects, want one", len(all.Items))
	}
}

func TestARefusalThatCouldNotBeSavedIsNotCounted(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	refused := false
	w.refuse = func(client.Object) error {
		refused = true
		w.change(func(aw *v1beta2.AppWrapper) { aw.Labels = map[string]string{"changed": "meanwhile"} })
		return errors.New("connection refused")
	}
	for !refused {
		w.reconcile()
	}
	for _, s := range scrape(t, w.reconciler.metrics) {
		if s.name == "appwrapper_creation_failures_total" {
			t.Errorf("a refusal is counted that is not in the status: %s", s)
		}
	}
}
