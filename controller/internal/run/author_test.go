// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// A Run may wait for days, and meanwhile its author may leave the team.
func TestWorkOfALeaverDoesNotStart(t *testing.T) {
	c := newCluster(t)
	sizes := runplan.DefaultSizes()
	c.put(v1alpha1.RunSizeConfigurationKind, &sizes)
	run := givenRun()
	run.Annotations[v1alpha1.AuthorGroupsAnnotation] = `{"groups":["blue"]}`
	c.put(v1alpha1.RunKind, run)
	c.await("there is no Application digits in namespace blue yet")
	c.api.Allows = func(string, string) bool { return false }
	c.put(v1alpha1.ApplicationKind, givenApplication())
	c.await(`user "alice@example.com", who made this Run, may no longer create appwrappers.workload.codeflare.dev in namespace "blue"`)
	if got := meta.FindStatusCondition(c.status().Conditions, v1alpha1.Accepted); got.Reason != runlife.Forbidden || got.Status != "False" {
		t.Errorf("the Run says %+v", got)
	}
	if aw := c.api.Get("appwrappers", theRun); aw != nil {
		t.Error("there is an AppWrapper")
	}
	if requests := c.api.Requests(); slices.ContainsFunc(requests, func(q string) bool { return strings.HasPrefix(q, "POST") && strings.Contains(q, "/appwrappers") }) {
		t.Errorf("it was tried: %q", requests)
	}
}

// Every right that was needed then is needed now.
func TestTheRightsOfAnAuthorAreReviewedAgain(t *testing.T) {
	rights := []string{"create appwrappers blue", "get applications red", "wrap jobs blue"}
	for name, tc := range map[string]struct {
		rights  []string
		record  string
		away    bool
		want    string
		failure string
	}{
		"all":                      {rights: rights, record: `{"groups":["blue"],"extra":{"scopes":["a"]}}`},
		"creates instead of wraps": {rights: []string{rights[0], rights[1], "create jobs blue"}, record: `{"groups":["blue"],"extra":{"scopes":["a"]}}`},
		"none":                     {record: `{"groups":["blue"],"extra":{"scopes":["a"]}}`, want: "may no longer create appwrappers"},
		"not the Application":      {rights: []string{rights[0], rights[2]}, record: `{"groups":["blue"],"extra":{"scopes":["a"]}}`, want: `may no longer get applications.codeflare.dev in namespace "red"`},
		"not the Job":              {rights: rights[:2], record: `{"groups":["blue"],"extra":{"scopes":["a"]}}`, want: `may no longer create or wrap jobs.batch in namespace "blue"`},
		"those of other groups":    {rights: rights, record: `{}`, want: "may no longer create appwrappers"},
		"an API server that fails": {away: true, record: `{"groups":["blue"],"extra":{"scopes":["a"]}}`, failure: "away"},
		"a record that is none":    {rights: rights, record: `{`, failure: "cannot read the groups"},
	} {
		t.Run(name, func(t *testing.T) {
			review := accessreview.Review(func(_ context.Context, q *authorizationv1.SubjectAccessReview) error {
				if tc.away {
					return errors.New("away")
				}
				a := q.Spec.ResourceAttributes
				q.Status.Allowed = q.Spec.User == "alice@example.com" && q.Spec.UID == "uid-of-alice" && slices.Equal(q.Spec.Groups, []string{"blue"}) &&
					slices.Equal(q.Spec.Extra["scopes"], authorizationv1.ExtraValue{"a"}) && slices.Contains(tc.rights, a.Verb+" "+a.Resource+" "+a.Namespace)
				return nil
			})
			r := &Reconciler{authors: accessreview.Authors{Review: review, MayWrap: review.MayWrap}}
			s := &runlife.Snapshot{Run: givenRun(), Plan: runlife.Plan{Planned: []*runplan.Planned{{AppWrapper: aroundAJob()}}}}
			s.Run.Spec.Application.Namespace = "red"
			s.Run.Annotations[v1alpha1.AuthorGroupsAnnotation] = tc.record
			got, err := r.left(t.Context(), s)
			if (err != nil) != (tc.failure != "") || err != nil && !strings.Contains(err.Error(), tc.failure) {
				t.Errorf("got %v", err)
			}
			if err == nil && ((got == "") != (tc.want == "") || !strings.Contains(got, tc.want)) {
				t.Errorf("want %q, got %q", tc.want, got)
			}
			delete(s.Run.Annotations, v1alpha1.AuthorGroupsAnnotation)
			if got, err := (&Reconciler{}).left(t.Context(), s); got != "" || err != nil {
				t.Errorf("a Run of an earlier release: %q, %v", got, err)
			}
		})
	}
}

func aroundAJob() *v1beta2.AppWrapper {
	aw := &v1beta2.AppWrapper{Spec: v1beta2.AppWrapperSpec{Components: make([]v1beta2.AppWrapperComponent, 1)}}
	aw.Spec.Components[0].Template.Raw = []byte(`{"apiVersion":"batch/v1","kind":"Job"}`)
	return aw
}
