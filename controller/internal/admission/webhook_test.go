// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
	"github.com/mlbatch/mlbatch/test/given"
)

// request is the API server's request when ada sends the AppWrapper.
func request(t *testing.T, operation admissionv1.Operation, before, after *v1beta2.AppWrapper) admission.Request {
	t.Helper()
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: operation,
		Namespace: given.Namespace,
		UserInfo:  authenticationv1.UserInfo{Username: "ada", UID: "u-1"},
		Object:    runtime.RawExtension{Raw: encoded(t, after)},
	}}
	if before != nil {
		r.OldObject = runtime.RawExtension{Raw: encoded(t, before)}
	}
	return r
}

func encoded(t *testing.T, aw *v1beta2.AppWrapper) []byte {
	t.Helper()
	text, err := json.Marshal(aw)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1beta2.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// asWritten is an AppWrapper as a user sends it: fields in any order, and without the fields
// that Go adds. The last fields belong to a version that this one does not know.
const asWritten = `{
	"kind": "AppWrapper", "apiVersion": "workload.codeflare.dev/v1beta2",
	"metadata": {"name": "a", "namespace": "team-a"},
	"spec": {"components": [
		{"template": {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "j", "labels": {"zone": "b", "app": "<c>"}},
			"spec": {"parallelism": 1.0, "template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 0.5}}}]}}}}},
		{"template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}, "data": null},
			"podSets": [{"path": "template"}], "later": true}
	], "tomorrow": 1}
}`

func TestTheMutatingWebhookOnlyAddsLabels(t *testing.T) {
	hook := admission.WithDefaulter(scheme(t), &defaulter{queue: "default-queue", namespaces: plain, surroundings: none})
	r := request(t, admissionv1.Create, nil, given.AppWrapper("a").Build())
	r.Object.Raw = []byte(asWritten)
	response := hook.Handle(t.Context(), r)
	if !response.Allowed {
		t.Fatal(response.Result)
	}
	for _, patch := range response.Patches {
		if patch.Operation != "add" || !strings.HasPrefix(patch.Path, "/metadata/labels") {
			t.Errorf("unexpected patch %+v", patch)
		}
	}
	if len(response.Patches) == 0 {
		t.Error("no labels were added")
	}
}

// Nothing else of what is stored may change with it.
func TestTheMutatingWebhookDropsARecordOfWhoWroteWhat(t *testing.T) {
	hook := admission.WithDefaulter(scheme(t), &defaulter{namespaces: plain, surroundings: none})
	for operation, want := range map[string]int{"Update": 1, "Apply": 0} {
		t.Run(operation, func(t *testing.T) {
			r := request(t, admissionv1.Create, nil, given.AppWrapper("a").Build())
			record := fmt.Sprintf(`"managedFields": [{"manager": "m", "operation": %q, "apiVersion": "workload.codeflare.dev/v1beta2",`+
				`"fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}], "name": "a"`, operation)
			r.Object.Raw = []byte(strings.Replace(asWritten, `"name": "a"`, record, 1))
			dropped := 0
			for _, patch := range hook.Handle(t.Context(), r).Patches {
				if patch.Operation == "remove" && patch.Path == "/metadata/managedFields" {
					dropped++
				} else if patch.Operation != "add" || !strings.HasPrefix(patch.Path, "/metadata/labels") {
					t.Errorf("unexpected patch %+v", patch)
				}
			}
			if dropped != want {
				t.Errorf("dropped %d times, want %d", dropped, want)
			}
		})
	}
}

func TestTheValidatingWebhook(t *testing.T) {
	good := given.AppWrapper("a").With(given.Job("j", 1)).WithFinalizer().Build()
	bad := given.AppWrapper("a").With(given.ConfigMap("c")).WithFinalizer().Build()
	released := bad.DeepCopy()
	released.Finalizers = nil
	running := given.AppWrapper("a").Unsuspended().With(given.Job("j", 1).Admitted(onFlavor("a100"))).Build()
	elsewhere := given.AppWrapper("a").Unsuspended().With(given.Job("j", 1).Admitted(onFlavor("free"))).Build()
	for name, tc := range map[string]struct {
		operation     admissionv1.Operation
		before, after *v1beta2.AppWrapper
		grants        string
		unchecked     bool
		refusal       string
	}{
		"lets an author wrap what they may create": {
			operation: admissionv1.Create, after: good, grants: "create jobs"},
		"refuses what an author may not create": {
			operation: admissionv1.Create, after: good, refusal: `spec.components[0].template: Forbidden: user "ada"`},
		"does not ask when it is told not to": {
			operation: admissionv1.Create, after: good, unchecked: true},
		"refuses what cannot be deployed": {
			operation: admissionv1.Create, after: bad, unchecked: true, refusal: "at least one pod set"},
		"lets a finalizer go from what it would refuse today": {
			operation: admissionv1.Update, before: bad, after: released},
		"refuses another template": {
			operation: admissionv1.Update, before: good, after: bad, refusal: "spec.components[0].template: Forbidden: is immutable"},
		"refuses other podSetInfos, which nobody has put back": {
			operation: admissionv1.Update, before: running, after: elsewhere, refusal: "spec.components: Forbidden: only Kueue may change podSetInfos"},
		"lets those be that were put back": {
			operation: admissionv1.Update, before: running, after: running.DeepCopy()},
		"lets everything be deleted": {
			operation: admissionv1.Delete, before: bad, after: bad},
	} {
		t.Run(name, func(t *testing.T) {
			v := &validator{limits: admissionrules.DefaultLimits, namespaces: team, surroundings: none, own: &ownRights{resourceOf: mapper().RESTMapping}}
			if !tc.unchecked {
				v.access = &access{resourceOf: mapper().RESTMapping, mayWrap: accessreview.Review((&grants{allowed: tc.grants}).review).MayWrap}
			}
			response := admission.WithValidator(scheme(t), v).Handle(t.Context(), request(t, tc.operation, tc.before, tc.after))
			if response.Allowed != (tc.refusal == "") {
				t.Fatalf("allowed %t: %v", response.Allowed, response.Result)
			}
			if !response.Allowed && !strings.Contains(response.Result.Message, tc.refusal) {
				t.Errorf("says %q, want %q in it", response.Result.Message, tc.refusal)
			}
		})
	}
}

func TestARequestThatCannotBeReadIsNobodysPermission(t *testing.T) {
	aw := given.AppWrapper("a").With(given.Job("j", 1)).Build()
	if _, err := (&validator{limits: admissionrules.DefaultLimits}).ValidateCreate(context.Background(), aw); err == nil {
		t.Error("accepted without a request")
	}
	if err := (&defaulter{}).Default(context.Background(), aw); err == nil {
		t.Error("defaulted without a request")
	}
}
