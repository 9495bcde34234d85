// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/test/given"
)

// That the finalizer goes is taken back by nobody. When the work succeeded, the API server was asked for pods.
func TestPodsAreAskedForAgainUnlessNothingCanHaveMadeAny(t *testing.T) {
	jobSet := schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}
	stranger := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Job"}
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for name, tc := range map[string]struct {
		kinds     []schema.GroupVersionKind
		succeeded []int
		phase     v1beta2.AppWrapperPhase
		effect    lifecycle.Effect
		want      bool
	}{
		"a Job that has succeeded":               {kinds: []schema.GroupVersionKind{jobKind}, succeeded: []int{0}},
		"with what makes no pods":                {kinds: []schema.GroupVersionKind{jobKind, configMap}, succeeded: []int{0}},
		"two":                                    {kinds: []schema.GroupVersionKind{jobKind, jobKind}, succeeded: []int{0, 1}},
		"another controller has seen the second": {kinds: []schema.GroupVersionKind{jobKind, jobKind}, succeeded: []int{0}, want: true},
		"another controller has seen it":         {kinds: []schema.GroupVersionKind{jobKind}, want: true},
		"it makes pods when it likes":            {kinds: []schema.GroupVersionKind{jobSet}, succeeded: []int{0}, want: true},
		"beside a Job":                           {kinds: []schema.GroupVersionKind{jobKind, jobSet}, succeeded: []int{0, 1}, want: true},
		"a kind that nobody knows":               {kinds: []schema.GroupVersionKind{stranger}, succeeded: []int{0}, want: true},
		"a bare pod":                             {kinds: []schema.GroupVersionKind{podKind}, succeeded: []int{0}, want: true},
		"a template that does not decode":        {kinds: []schema.GroupVersionKind{{}}, succeeded: []int{0}, want: true},
		"it runs":                                {kinds: []schema.GroupVersionKind{jobKind}, succeeded: []int{0}, phase: v1beta2.AppWrapperRunning, want: true},
		"it has failed":                          {kinds: []schema.GroupVersionKind{jobKind}, succeeded: []int{0}, phase: v1beta2.AppWrapperFailed, want: true},
		"its removal takes long":                 {kinds: []schema.GroupVersionKind{jobKind}, succeeded: []int{0}, phase: v1beta2.AppWrapperTerminating, want: true},
		"nothing is lost by a mistake":           {kinds: []schema.GroupVersionKind{jobSet}, effect: lifecycle.Delete},
	} {
		t.Run(name, func(t *testing.T) {
			status := v1beta2.AppWrapperStatus{Phase: tc.phase}
			if tc.phase == "" {
				status.Phase = v1beta2.AppWrapperSucceeded
			}
			status.Conditions = []metav1.Condition{{Type: string(v1beta2.ResourcesDeployed), Status: metav1.ConditionTrue}}
			o := &observation{aw: given.AppWrapper("a").Build()}
			for i, gvk := range tc.kinds {
				o.components = append(o.components, component{kind: kinds.For(gvk)})
				c := v1beta2.AppWrapperComponentStatus{}
				if slices.Contains(tc.succeeded, i) {
					c.Conditions = []metav1.Condition{{Type: string(v1beta2.ComponentSucceeded), Status: metav1.ConditionTrue}}
				}
				status.ComponentStatus = append(status.ComponentStatus, c)
			}
			o.snapshot.Status = status
			if tc.effect == "" {
				tc.effect = lifecycle.RemoveFinalizer
			}
			if got := o.podsInDoubt(lifecycle.Decision{Status: status, Effect: tc.effect}); got != tc.want {
				t.Errorf("asks for pods: %t, want %t", got, tc.want)
			}
		})
	}
}

// A JobSet only names the Job that has failed it, and that has the deadline and the policy of its author.
func TestTheJobOfAJobSetSaysWhetherThereIsARetry(t *testing.T) {
	jobSet := schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}
	failed := func(reason, message string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True", "reason": reason, "message": message}}}
	}
	const byOne = "jobset failed due to one or more job failures (first failed job: set-w-0)"
	for name, tc := range map[string]struct {
		message, reason, owner, want string
	}{
		"its deadline has passed":     {message: byOne, reason: "DeadlineExceeded", owner: "uid-of-set", want: "DeadlineExceeded"},
		"its policy forbids it":       {message: byOne, reason: "PodFailurePolicy", owner: "uid-of-set", want: "PodFailurePolicy"},
		"its own retries are used up": {message: byOne, reason: "BackoffLimitExceeded", owner: "uid-of-set"},
		"it is of another JobSet":     {message: byOne, reason: "DeadlineExceeded", owner: "uid-of-another"},
		"it is gone":                  {message: "jobset failed (first failed job: set-w-1)", reason: "DeadlineExceeded", owner: "uid-of-set"},
		"no Job is named":             {message: "jobset failed", reason: "DeadlineExceeded", owner: "uid-of-set"},
		"it may not be read":          {message: byOne, reason: "DeadlineExceeded", owner: "uid-of-set"},
	} {
		t.Run(name, func(t *testing.T) {
			set, child := job("set", "a"), job("set-w-0", "")
			set.SetGroupVersionKind(jobSet)
			set.SetUID("uid-of-set")
			set.Object["status"], child.Object["status"] = failed("FailedJobs", tc.message), failed(tc.reason, "")
			child.SetOwnerReferences([]metav1.OwnerReference{{Kind: "JobSet", Name: "set", UID: types.UID(tc.owner), Controller: new(true)}})
			w := newWorld(t, set, child)
			if name == "it may not be read" {
				w.reconciler.live = interceptor.NewClient(w.api, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if key.Name == child.GetName() {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, key.Name, errors.New("no"))
					}
					return c.Get(ctx, key, o, options...)
				}})
			}
			o := &observation{aw: given.AppWrapper("a").Build(), components: []component{{kind: kinds.For(jobSet)}}}
			o.snapshot.Components = []lifecycle.Component{{Name: "set"}}
			if err := w.reconciler.readComponent(t.Context(), o, 0); err != nil {
				t.Fatal(err)
			}
			if c := o.snapshot.Components[0]; c.Verdict != kinds.Failed || c.Final != tc.want {
				t.Errorf("got %s, %q, want %q", c.Verdict, c.Final, tc.want)
			}
		})
	}
}
