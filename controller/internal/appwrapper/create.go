// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// create creates the targets in order and stops at the first refusal, which it records. An
// answer that has the component proves that it exists. A component that existed already has to
// be looked at, because some kinds are not watched.
func (r *Reconciler) create(ctx context.Context, o *observation, targets []int) (again time.Duration, more bool, err error) {
	more, o.untried, o.whole = true, false, false // what the save has told is used up
	for _, i := range targets {
		created, refusal, err := r.createComponent(ctx, o.aw, i, o.forItsPods(r.allPods))
		if err != nil {
			return 0, false, err
		}
		if refusal != nil {
			if _, err := r.save(ctx, o.aw, lifecycle.Refuse(o.aw.Status, i, refusal.Refusal, r.now())); err != nil {
				return 0, false, err
			}
			r.metrics.refused(refusal)
			return 0, false, nil
		}
		more = more && created != nil
		if created != nil {
			o.confirmed(i, created)
		}
	}
	return atOnce, more, nil
}

// refusal is a lifecycle.Refusal with what metrics call it.
type refusal struct {
	lifecycle.Refusal
	cause string
}

// The causes of refusals that are not reasons of the API server.
const (
	causeTemplate   = "Template"
	causeOccupied   = "NameOccupied"
	causeGoing      = "StillBeingDeleted"
	causeNoKind     = "KindNotServed"
	causePermission = "PermissionMissing"
	causeScope      = "ClusterScoped"
	causeOther      = "Other"
)

// createComponent returns an error only if the request could not be sent. What the API server
// answers is the component or a refusal, or neither if the component existed already.
func (r *Reconciler) createComponent(ctx context.Context, aw *v1beta2.AppWrapper, i int, all podtemplate.Edit) (*unstructured.Unstructured, *refusal, error) {
	object, err := assemble(aw, i, all)
	if err != nil {
		return nil, final(causeTemplate, err.Error()), nil
	}
	namespaced, err := r.client.IsObjectNamespaced(object)
	if err == nil && !namespaced {
		return nil, final(causeScope, object.GetKind()+" is a cluster-scoped kind; an AppWrapper can only own objects of its namespace"), nil
	}
	if err == nil {
		err = r.client.Create(ctx, object)
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err == nil {
		return object, nil, nil
	}
	refused, err := r.judge(ctx, aw, object, err)
	return nil, refused, err
}

// judge maps the error of a create to a refusal, or to nil if the component exists.
func (r *Reconciler) judge(ctx context.Context, aw *v1beta2.AppWrapper, object *unstructured.Unstructured, err error) (*refusal, error) {
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.adopt(ctx, aw, object), nil
	case meta.IsNoMatchError(err):
		return final(causeNoKind, err.Error()), nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return final(cause(err), err.Error()), nil
	case apierrors.IsForbidden(err):
		return r.forbidden(ctx, object, err)
	}
	refused := later(cause(err), err.Error())
	refused.Unanswered = unanswered(err)
	return refused, nil
}

// unanswered: the request did not arrive, or whoever should answer it did not. A webhook that denies a request with
// such a code has answered.
func unanswered(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return true
	}
	code := answer.Status().Code
	return (code >= http.StatusInternalServerError || code == http.StatusTooManyRequests) && !strings.Contains(err.Error(), " denied the request")
}

func final(cause, message string) *refusal {
	return &refusal{lifecycle.Refusal{Message: message, Final: true}, cause}
}

func later(cause, message string) *refusal {
	return &refusal{lifecycle.Refusal{Message: message}, cause}
}

func cause(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return causeOther
}

// adopt recognises an object that an earlier attempt created, by the UID of its owner: there
// may have been another AppWrapper of the same name.
func (r *Reconciler) adopt(ctx context.Context, aw *v1beta2.AppWrapper, object *unstructured.Unstructured) *refusal {
	existing := &metav1.PartialObjectMetadata{}
	existing.SetGroupVersionKind(object.GroupVersionKind())
	err := r.live.Get(ctx, client.ObjectKeyFromObject(object), existing)
	if apierrors.IsForbidden(err) {
		return later(causePermission, fmt.Sprintf("it exists, and the controller lacks the permission to get %s in namespace %q",
			object.GetKind(), object.GetNamespace()))
	}
	if err != nil {
		return later(cause(err), "it exists but cannot be read: "+err.Error())
	}
	if !existing.DeletionTimestamp.IsZero() {
		return later(causeGoing, "an earlier one is still being deleted")
	}
	if !belongsTo(existing, aw) {
		return later(causeOccupied, "an object of that name exists and does not belong to this AppWrapper")
	}
	return nil
}

// forbidden distinguishes a right that the controller lacks, which it may be given, and a quota, which may have room
// later, from admission, which is believed if it says the same again.
func (r *Reconciler) forbidden(ctx context.Context, object *unstructured.Unstructured, refused error) (*refusal, error) {
	byAdmission := later(cause(refused), refused.Error())
	byAdmission.Denied = !passes(refused)
	gvk := object.GroupVersionKind()
	mapping, err := r.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return byAdmission, nil
	}
	allowed, err := accessreview.Self(ctx, r.client, object.GetNamespace(), "create", mapping.Resource)
	if err != nil {
		return nil, err
	}
	if allowed {
		return byAdmission, nil
	}
	return later(causePermission, fmt.Sprintf("the controller lacks the permission to create %s in namespace %q",
		mapping.Resource.GroupResource(), object.GetNamespace())), nil
}

// ofQuota is what the API server says of a ResourceQuota that is full, or of which it does not know yet how full it is.
var ofQuota = []string{"exceeded quota: ", "status unknown for quota: ", "insufficient quota to "}

// passes: the same request may be allowed soon, although nobody changes anything about it.
func passes(forbidden error) bool {
	return apierrors.HasStatusCause(forbidden, corev1.NamespaceTerminatingCause) ||
		slices.ContainsFunc(ofQuota, func(words string) bool { return strings.Contains(forbidden.Error(), words) })
}
