// SPDX-License-Identifier: Apache-2.0

// Package runadmission holds the webhooks of Runs: they record who created a Run and what that
// user may wrap, because the controller of Runs creates AppWrappers in the author's name. What a
// Run may say is in its CRD.
package runadmission

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
	"github.com/mlbatch/mlbatch/controller/internal/fieldowners"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// The paths are those that controller-runtime would derive from the kind.
const (
	mutatingPath   = "/mutate-codeflare-dev-v1alpha1-run"
	validatingPath = "/validate-codeflare-dev-v1alpha1-run"
)

// written are the annotations that only these webhooks write.
var written = []string{v1alpha1.AuthorAnnotation, v1alpha1.AuthorUIDAnnotation, v1alpha1.AuthorMayAnnotation, v1alpha1.AuthorGroupsAnnotation}

// Setup serves both webhooks. They read metadata, and where the Application is: what is wrong with a
// Run, its CRD says, and what is written in another way than Go writes it stays so. A Run cannot be
// changed, and applying its manifest again must not look like a change.
func Setup(mgr ctrl.Manager, authors accessreview.Authors) error {
	server := mgr.GetWebhookServer()
	server.Register(mutatingPath, &admission.Webhook{Handler: recorder{authors}})
	server.Register(validatingPath, &admission.Webhook{Handler: keeper{review: accessreview.With(mgr.GetClient())}})
	return nil
}

// recorder writes down who creates a Run.
type recorder struct{ accessreview.Authors }

// Handle overwrites whatever was sent. If a review fails, the Run is not created: without a record
// of rights it would never run.
func (r recorder) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create {
		return admission.Allowed("")
	}
	run, err := metadataOf(request.Object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	may, err := r.may(ctx, request.UserInfo, request.Namespace)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	groups, err := accessreview.Record(request.UserInfo)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if len(groups) > accessreview.LongestRecord {
		return admission.Denied(fmt.Sprintf("user %q has too many groups: their names have %d bytes, and a Run keeps at most %d: ask an administrator", request.UserInfo.Username, len(groups), accessreview.LongestRecord))
	}
	sent := run.Annotations
	if sent == nil {
		sent = map[string]string{}
	}
	sent[v1alpha1.AuthorAnnotation] = request.UserInfo.Username
	sent[v1alpha1.AuthorUIDAnnotation] = request.UserInfo.UID
	sent[v1alpha1.AuthorMayAnnotation] = strings.Join(may, ",")
	sent[v1alpha1.AuthorGroupsAnnotation] = groups
	patches := []jsonpatch.JsonPatchOperation{jsonpatch.NewOperation("add", "/metadata/annotations", sent)}
	if len(run.ManagedFields) > 0 && !fieldowners.Needed(run.ManagedFields) {
		patches = append(patches, jsonpatch.NewOperation("remove", "/metadata/managedFields", nil))
	}
	return admission.Patched("", patches...)
}

// may lists what a user may have in an AppWrapper of their own.
func (r recorder) may(ctx context.Context, user authenticationv1.UserInfo, namespace string) ([]string, error) {
	var all []string
	appWrappers := v1beta2.GroupVersion.WithResource("appwrappers")
	allowed, err := r.Review.Allows(ctx, user, namespace, "create", appWrappers)
	if err != nil {
		return nil, err
	}
	if allowed {
		all = append(all, appWrappers.GroupResource().String())
	}
	for _, resource := range runplan.Wrapped {
		allowed, err := r.MayWrap(ctx, user, namespace, resource)
		if err != nil {
			return nil, err
		}
		if allowed {
			all = append(all, resource.GroupResource().String())
		}
	}
	slices.Sort(all)
	return all, nil
}

// keeper refuses Runs whose record is not what the recorder wrote, and those of Applications that
// their authors may not get.
type keeper struct {
	review accessreview.Review
}

// Handle judges creations and updates.
func (k keeper) Handle(ctx context.Context, request admission.Request) admission.Response {
	after, err := annotationsOf(request.Object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	switch request.Operation {
	case admissionv1.Create:
		if response := recorded(after, request.UserInfo); !response.Allowed {
			return response
		}
		return k.mayGet(ctx, request)
	case admissionv1.Update:
		before, err := annotationsOf(request.OldObject)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		return kept(before, after)
	}
	return admission.Allowed("")
}

// recorded makes sure that the recorder was called, and that no other webhook has changed the
// author since.
func recorded(annotations map[string]string, user authenticationv1.UserInfo) admission.Response {
	groups, err := accessreview.Record(user)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	_, judged := annotations[v1alpha1.AuthorMayAnnotation]
	// A recorder of an earlier release, which may still answer during an upgrade, writes no groups.
	said, grouped := annotations[v1alpha1.AuthorGroupsAnnotation]
	if judged && (!grouped || said == groups) && annotations[v1alpha1.AuthorAnnotation] == user.Username && annotations[v1alpha1.AuthorUIDAnnotation] == user.UID {
		return admission.Allowed("")
	}
	return admission.Denied(fmt.Sprintf("the annotation %s must be the user who creates the Run, %q, but the mutating webhook of Runs was not "+
		"called, or another one changed what it wrote: ask an administrator", v1alpha1.AuthorAnnotation, user.Username))
}

// mayGet: the controller reads the Application of another namespace, and the Run shows what it says.
func (k keeper) mayGet(ctx context.Context, request admission.Request) admission.Response {
	var run struct {
		Spec struct {
			Application struct {
				Namespace string `json:"namespace"`
			} `json:"application"`
		} `json:"spec"`
	}
	// encoding/json would also take Namespace, which is another field.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(request.Object.Raw, &run); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("cannot read where the Application of the Run is: %w", err))
	}
	namespace := run.Spec.Application.Namespace
	if namespace == "" || namespace == request.Namespace {
		return admission.Allowed("")
	}
	allowed, err := k.review.Allows(ctx, request.UserInfo, namespace, "get", v1alpha1.GroupVersion.WithResource("applications"))
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case !allowed:
		return admission.Denied(fmt.Sprintf("user %q may not get applications in namespace %q", request.UserInfo.Username, namespace))
	}
	return admission.Allowed("")
}

func kept(before, after map[string]string) admission.Response {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if is, has := after[name]; fixed(name) && (!has || is != before[name]) {
			return changed(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, had := before[name]; fixed(name) && !had {
			return changed(name)
		}
	}
	return admission.Allowed("")
}

// fixed: an annotation says who created the Run, or becomes a part of the AppWrapper, which counts
// as the author's.
func fixed(name string) bool {
	return slices.Contains(written, name) || slices.ContainsFunc(runplan.CopiedAnnotations, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func changed(name string) admission.Response {
	return admission.Denied(fmt.Sprintf("the annotation %s is that of the Run's author: leave it as it is, or make another Run", name))
}

func annotationsOf(object runtime.RawExtension) (map[string]string, error) {
	run, err := metadataOf(object)
	return run.Annotations, err
}

func metadataOf(object runtime.RawExtension) (run metav1.PartialObjectMetadata, err error) {
	if err := json.Unmarshal(object.Raw, &run); err != nil {
		return run, fmt.Errorf("cannot read the metadata of the Run: %w", err)
	}
	return run, nil
}
