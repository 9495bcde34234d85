// SPDX-License-Identifier: Apache-2.0

package runadmission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
)

// sent is a Run as a user sends it: values that Go would write in another way, that the CRD will
// refuse, and of a later version, and annotations that claim to be another user's.
const sent = `{
	"kind": "Run", "apiVersion": "codeflare.dev/v1alpha1",
	"metadata": {"name": "digits-1", "annotations": {"mine": "<1>", "codeflare.dev/author": "boss",
		"codeflare.dev/author-uid": "0", "codeflare.dev/author-may": "jobs.batch,secrets"}},
	"spec": {"resources": {"cpu": 0.5}, "workers": "many", "tomorrow": 1, "application": {"name": "digits"}}
}`

func call(t *testing.T, operation admissionv1.Operation, user authenticationv1.UserInfo, object, old string) admission.Request {
	t.Helper()
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: operation, Namespace: "blue", UserInfo: user, Object: runtime.RawExtension{Raw: []byte(object)},
	}}
	if old != "" {
		r.OldObject = runtime.RawExtension{Raw: []byte(old)}
	}
	return r
}

// holding answers reviews: a user holds these rights in namespace blue, each as "verb resource".
func holding(t *testing.T, user authenticationv1.UserInfo, rights ...string) recorder {
	t.Helper()
	return asking(func(_ context.Context, r *authorizationv1.SubjectAccessReview) error {
		if r.Spec.User != user.Username || r.Spec.UID != user.UID || !slices.Equal(r.Spec.Groups, user.Groups) || len(r.Spec.Extra) != len(user.Extra) {
			t.Errorf("the review is about %+v", r.Spec)
		}
		a := r.Spec.ResourceAttributes
		r.Status.Allowed = a.Namespace == "blue" && slices.Contains(rights, a.Verb+" "+a.Resource)
		return nil
	})
}

// asking is a recorder that remembers nothing.
func asking(review accessreview.Review) recorder {
	return recorder{accessreview.Authors{Review: review, MayWrap: review.MayWrap}}
}

func TestTheAuthorIsWhoeverCreatesTheRun(t *testing.T) {
	everything := []string{"create appwrappers", "wrap pytorchjobs", "create jobsets", "wrap rayjobs", "wrap rayclusters", "wrap jobs",
		"create services", "create configmaps", "create podgroups", "create secrets", "create pods"}
	for name, tc := range map[string]struct {
		user   authenticationv1.UserInfo
		rights []string
		may    string
	}{
		"a member of a team": {
			authenticationv1.UserInfo{Username: "ada", UID: "u-1", Groups: []string{"blue"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a"}}}, everything,
			"appwrappers.workload.codeflare.dev,configmaps,jobs.batch,jobsets.jobset.x-k8s.io,podgroups.scheduling.x-k8s.io," +
				"pytorchjobs.kubeflow.org,rayclusters.ray.io,rayjobs.ray.io,services",
		},
		"a service account": {
			authenticationv1.UserInfo{Username: "system:serviceaccount:blue:nightly", UID: "u-2"}, []string{"create appwrappers", "wrap jobs"},
			"appwrappers.workload.codeflare.dev,jobs.batch",
		},
		"somebody who may create Runs alone": {authenticationv1.UserInfo{Username: "eve", UID: "u-3"}, []string{"create runs"}, ""},
		// AppWrappers cannot be wrapped.
		"wrap is not create for AppWrappers": {authenticationv1.UserInfo{Username: "eve"}, []string{"wrap appwrappers"}, ""},
		"a name that is no label":            {authenticationv1.UserInfo{Username: "a,b\n\"ü\" " + strings.Repeat("x", 5000)}, []string{"create jobs"}, "jobs.batch"},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{
				"mine": "<1>", "codeflare.dev/author": tc.user.Username, "codeflare.dev/author-uid": tc.user.UID, "codeflare.dev/author-may": tc.may,
				"codeflare.dev/author-groups": recordOf(t, tc.user),
			}
			a := holding(t, tc.user, tc.rights...)
			response := a.Handle(t.Context(), call(t, admissionv1.Create, tc.user, sent, ""))
			if !response.Allowed || len(response.Patches) != 1 || response.Patches[0].Path != "/metadata/annotations" {
				t.Fatalf("got %+v", response)
			}
			got := response.Patches[0].Value
			if diff := cmp.Diff(any(want), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func recordOf(t *testing.T, user authenticationv1.UserInfo) string {
	t.Helper()
	record, err := accessreview.Record(user)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// The API server takes 256 KiB of annotations.
func TestAnAuthorOfTooManyGroupsIsTold(t *testing.T) {
	user := authenticationv1.UserInfo{Username: "ada", Groups: []string{strings.Repeat("x", accessreview.LongestRecord)}}
	response := holding(t, user).Handle(t.Context(), call(t, admissionv1.Create, user, sent, ""))
	if response.Allowed || !strings.Contains(response.Result.Message, `user "ada" has too many groups`) {
		t.Errorf("got %+v", response.Result)
	}
}

func TestARunWithoutAnnotationsGetsThem(t *testing.T) {
	user := authenticationv1.UserInfo{Username: "ada"}
	response := holding(t, user).Handle(t.Context(), call(t, admissionv1.Create, user, `{"metadata": {"name": "a"}}`, ""))
	want := map[string]string{"codeflare.dev/author": "ada", "codeflare.dev/author-uid": "", "codeflare.dev/author-may": "", "codeflare.dev/author-groups": "{}"}
	if len(response.Patches) != 1 || !cmp.Equal(response.Patches[0].Value, any(want)) {
		t.Errorf("got %+v", response)
	}
}

func TestARunHasNoRecordOfWhoWroteWhatUnlessItIsApplied(t *testing.T) {
	user := authenticationv1.UserInfo{Username: "ada"}
	for operation, want := range map[string]bool{"Update": true, "Apply": false} {
		run := fmt.Sprintf(`{"metadata": {"name": "a", "managedFields": [{"manager": "m", "operation": %q}]}}`, operation)
		response := holding(t, user).Handle(t.Context(), call(t, admissionv1.Create, user, run, ""))
		dropped := slices.ContainsFunc(response.Patches, func(p jsonpatch.JsonPatchOperation) bool {
			return p.Operation == "remove" && p.Path == "/metadata/managedFields"
		})
		if dropped != want || !response.Allowed {
			t.Errorf("%s: dropped %t, and got %+v", operation, dropped, response)
		}
	}
}

func TestAnUpdateByAnotherUserMakesNobodyTheAuthor(t *testing.T) {
	// Without a review, a question would panic.
	response := recorder{}.Handle(t.Context(), call(t, admissionv1.Update, authenticationv1.UserInfo{Username: "eve"}, sent, sent))
	if !response.Allowed || len(response.Patches) > 0 {
		t.Errorf("got %+v", response)
	}
}

// A Run without a record of rights would stay Forbidden.
func TestAReviewThatFailsCreatesNoRun(t *testing.T) {
	for _, failing := range []string{"appwrappers", "podgroups"} {
		a := asking(func(_ context.Context, r *authorizationv1.SubjectAccessReview) error {
			r.Status.Allowed = true
			if r.Spec.ResourceAttributes.Resource == failing {
				return errors.New("the API server is away")
			}
			return nil
		})
		response := a.Handle(t.Context(), call(t, admissionv1.Create, authenticationv1.UserInfo{Username: "ada"}, sent, ""))
		if response.Allowed || !strings.Contains(response.Result.Message, "cannot check whether ada may create "+failing) {
			t.Errorf("%s: got %+v", failing, response.Result)
		}
	}
}

func TestARunThatCannotBeReadIsRefused(t *testing.T) {
	user, wrong := authenticationv1.UserInfo{Username: "ada"}, `{"metadata": {"annotations": []}}`
	for name, response := range map[string]admission.Response{
		"created":                holding(t, user).Handle(t.Context(), call(t, admissionv1.Create, user, wrong, "")),
		"created, judged":        keeper{}.Handle(t.Context(), call(t, admissionv1.Create, user, wrong, "")),
		"changed, and old wrong": keeper{}.Handle(t.Context(), call(t, admissionv1.Update, user, sent, wrong)),
	} {
		if response.Allowed || !strings.Contains(response.Result.Message, "cannot read the metadata of the Run") {
			t.Errorf("%s: got %+v", name, response)
		}
	}
}

// Only the API server's word counts: with another spelling a user would name a field that nobody reads.
func TestAnApplicationOfAnotherNamespace(t *testing.T) {
	ada := authenticationv1.UserInfo{Username: "ada", UID: "u-1", Groups: []string{"blue"}}
	for name, tc := range map[string]struct {
		application, refusal string
		rights               []string
	}{
		"none is named":                {application: `{"name": "a"}`},
		"the Run's own":                {application: `{"name": "a", "namespace": "blue"}`},
		"one where the author may":     {application: `{"name": "a", "namespace": "red"}`, rights: []string{"get applications in red"}},
		"one where the author may not": {application: `{"name": "a", "namespace": "red"}`, refusal: `user "ada" may not get applications in namespace "red"`},
		"a right to list them":         {application: `{"name": "a", "namespace": "red"}`, rights: []string{"list applications in red", "get applications in blue"}, refusal: "may not get"},
		"a name that looks like it":    {application: `{"name": "a", "namespace": "red", "Namespace": "blue"}`, refusal: `may not get applications in namespace "red"`},
		"no name of a namespace":       {application: `{"name": "a", "namespace": 1}`, refusal: "cannot read where the Application of the Run is"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			k := keeper{review: func(_ context.Context, r *authorizationv1.SubjectAccessReview) error {
				asked++
				a := r.Spec.ResourceAttributes
				r.Status.Allowed = r.Spec.User == "ada" && slices.Equal(r.Spec.Groups, ada.Groups) && a.Group == "codeflare.dev" &&
					slices.Contains(tc.rights, a.Verb+" "+a.Resource+" in "+a.Namespace)
				return nil
			}}
			run := `{"metadata": {"annotations": {"codeflare.dev/author": "ada", "codeflare.dev/author-uid": "u-1", "codeflare.dev/author-may": "", "codeflare.dev/author-groups": "{\"groups\":[\"blue\"]}"}}, "spec": {"application": ` + tc.application + `}}`
			response := k.Handle(t.Context(), call(t, admissionv1.Create, ada, run, ""))
			if response.Allowed != (tc.refusal == "") || !response.Allowed && !strings.Contains(response.Result.Message, tc.refusal) {
				t.Errorf("allowed %t: %v", response.Allowed, response.Result)
			}
			if here := !strings.Contains(tc.application, "red"); here && asked > 0 {
				t.Error("the API server was asked for nothing")
			}
		})
	}
	k := keeper{review: func(context.Context, *authorizationv1.SubjectAccessReview) error {
		return errors.New("the API server is away")
	}}
	run := `{"metadata": {"annotations": {"codeflare.dev/author": "ada", "codeflare.dev/author-uid": "u-1", "codeflare.dev/author-may": "", "codeflare.dev/author-groups": "{\"groups\":[\"blue\"]}"}}, "spec": {"application": {"namespace": "red"}}}`
	if response := k.Handle(t.Context(), call(t, admissionv1.Create, ada, run, "")); response.Allowed || !strings.Contains(response.Result.Message, "the API server is away") {
		t.Errorf("if the API server is away, it says %v", response.Result)
	}
}

func TestTheRecordOfTheAuthorIsKept(t *testing.T) {
	ada := authenticationv1.UserInfo{Username: "ada", UID: "u-1"}
	recorded := map[string]string{"codeflare.dev/author": "ada", "codeflare.dev/author-uid": "u-1", "codeflare.dev/author-may": "jobs.batch", "codeflare.dev/author-groups": "{}"}
	but := func(name, value string) map[string]string {
		changed := map[string]string{}
		for k, v := range recorded {
			changed[k] = v
		}
		if changed[name] = value; value == "" {
			delete(changed, name)
		}
		return changed
	}
	for name, tc := range map[string]struct {
		operation     admissionv1.Operation
		before, after map[string]string
		refusal       string
	}{
		"created as recorded":                     {operation: admissionv1.Create, after: recorded},
		"created, and the record is not made":     {operation: admissionv1.Create, after: nil, refusal: `must be the user who creates the Run, "ada"`},
		"created with another author":             {operation: admissionv1.Create, after: but("codeflare.dev/author", "boss"), refusal: `must be the user who creates the Run, "ada"`},
		"created with another UID":                {operation: admissionv1.Create, after: but("codeflare.dev/author-uid", "0"), refusal: `must be the user who creates the Run, "ada"`},
		"created without rights":                  {operation: admissionv1.Create, after: but("codeflare.dev/author-may", ""), refusal: `must be the user who creates the Run, "ada"`},
		"created during an upgrade":               {operation: admissionv1.Create, after: but("codeflare.dev/author-groups", "")},
		"created with groups of others":           {operation: admissionv1.Create, after: but("codeflare.dev/author-groups", `{"groups":["admins"]}`), refusal: `must be the user who creates the Run, "ada"`},
		"given to another group":                  {operation: admissionv1.Update, before: recorded, after: but("codeflare.dev/author-groups", `{"groups":["admins"]}`), refusal: "codeflare.dev/author-groups is"},
		"touched":                                 {operation: admissionv1.Update, before: recorded, after: but("mine", "1")},
		"touched, and it never had a record":      {operation: admissionv1.Update, before: nil, after: map[string]string{"mine": "1"}},
		"given to another author":                 {operation: admissionv1.Update, before: recorded, after: but("codeflare.dev/author", "boss"), refusal: "codeflare.dev/author is"},
		"given to another UID":                    {operation: admissionv1.Update, before: recorded, after: but("codeflare.dev/author-uid", "0"), refusal: "codeflare.dev/author-uid is"},
		"given more rights":                       {operation: admissionv1.Update, before: recorded, after: but("codeflare.dev/author-may", "jobs.batch,pods"), refusal: "codeflare.dev/author-may is"},
		"given what its AppWrapper gets":          {operation: admissionv1.Update, before: recorded, after: but("workload.codeflare.dev.appwrapper/retryLimit", "9"), refusal: "make another Run"},
		"given what its pods get":                 {operation: admissionv1.Update, before: recorded, after: but("kueue.x-k8s.io/podset-required-topology", "rack"), refusal: "make another Run"},
		"without its record":                      {operation: admissionv1.Update, before: recorded, after: but("codeflare.dev/author-may", ""), refusal: "leave it as it is"},
		"given a record that it never had":        {operation: admissionv1.Update, before: nil, after: recorded, refusal: "leave it as it is"},
		"given an empty record that it never had": {operation: admissionv1.Update, before: nil, after: map[string]string{"codeflare.dev/author-may": ""}, refusal: "leave it as it is"},
	} {
		t.Run(name, func(t *testing.T) {
			encoded := func(annotations map[string]string) string {
				text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			response := keeper{}.Handle(t.Context(), call(t, tc.operation, ada, encoded(tc.after), encoded(tc.before)))
			if response.Allowed != (tc.refusal == "") {
				t.Fatalf("allowed %t: %v", response.Allowed, response.Result)
			}
			if !response.Allowed && !strings.Contains(response.Result.Message, tc.refusal) {
				t.Errorf("says %q, want %q in it", response.Result.Message, tc.refusal)
			}
		})
	}
}
