// SPDX-License-Identifier: Apache-2.0

// Package admission holds the webhooks: which defaults a new or changed AppWrapper gets, and
// whether it is stored at all. Rules that need no request are in admissionrules; this package
// also checks the rights of the author and of the controller with the API server.
package admission

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/fieldowners"
)

// appWrappers is the resource on which MLBatch has verbs of its own.
var appWrappers = v1beta2.GroupVersion.WithResource("appwrappers")

// updatePath is where the mutating webhook is called for updates. Another AppWrapper
// controller, which may still answer while this one replaces it, treats an update at the path
// for creation as a creation, and changes what must not change. It does not know this path,
// and the API server ignores the failure.
const updatePath = "/update-workload-codeflare-dev-v1beta2-appwrapper"

// Setup serves both webhooks at the paths that controller-runtime derives from the
// kind: /mutate- and /validate-workload-codeflare-dev-v1beta2-appwrapper. The
// controller runs in the namespace own.
func Setup(mgr ctrl.Manager, c config.AppWrapper, own string) error {
	kueue := users(c.Kueue.ServiceAccounts, own)
	review := accessreview.With(mgr.GetClient())
	managed, err := newManaged(c.Kueue.ManagedJobsNamespaceSelector)
	if err != nil {
		return err
	}
	namespaces := fromCache(mgr.GetAPIReader())
	validator := &validator{
		limits: admissionrules.Limits{Components: c.ComponentLimit, PodSets: c.PodSetLimit}, policies: c.Policies, healthTaints: c.NodeHealth.ToleratedTaints(),
		kueue: kueue, review: review, namespaces: together(namespaces), managed: managed, surroundings: surroundingsFrom(mgr.GetAPIReader()),
	}
	validator.own = &ownRights{
		resourceOf: mgr.GetRESTMapper().RESTMapping,
		allowed: func(ctx context.Context, namespace, verb string, resource schema.GroupVersionResource) (bool, error) {
			return accessreview.Self(ctx, mgr.GetClient(), namespace, verb, resource)
		},
	}
	if c.UserRBACAdmissionCheck {
		validator.access = &access{resourceOf: mgr.GetRESTMapper().RESTMapping, mayWrap: review.WrapsRemembering(accessreview.Kept, time.Now)}
	}
	defaulter := &defaulter{queue: c.DefaultQueueName, kueue: kueue, review: review, namespaces: recently(namespaces, defaultsFor, time.Now), decode: admission.NewDecoder(mgr.GetScheme()).DecodeRaw, surroundings: surroundingsFrom(mgr.GetAPIReader())}
	err = ctrl.NewWebhookManagedBy(mgr, &v1beta2.AppWrapper{}).WithDefaulter(defaulter).WithValidator(validator).Complete()
	if err != nil {
		return fmt.Errorf("cannot serve the AppWrapper webhooks: %w", err)
	}
	mgr.GetWebhookServer().Register(foregroundPath, &admission.Webhook{Handler: &foreground{
		reader: mgr.GetAPIReader(), client: mgr.GetClient(), decode: admission.NewDecoder(mgr.GetScheme()),
	}})
	mgr.GetWebhookServer().Register(updatePath, admission.WithDefaulter(mgr.GetScheme(), defaulter))
	return nil
}

type defaulter struct {
	queue string
	// kueue are the users that write podSetInfos.
	kueue  sets.Set[string]
	review accessreview.Review
	// namespaces is called for creations only.
	namespaces readNamespace
	// surroundings are read for creations only, too.
	surroundings readSurroundings
	decode       func(runtime.RawExtension, runtime.Object) error
}

// Default is called for every AppWrapper that is created or changed.
func (d *defaulter) Default(ctx context.Context, aw *v1beta2.AppWrapper) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	isKueue := d.kueue.Has(request.UserInfo.Username)
	if request.Operation == admissionv1.Create {
		attributed, err := d.attributed(ctx, request, aw)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		setDefaults(aw, d.queue, request.UserInfo, attributed)
		admissionrules.Inherit(aw, d.namespaces(ctx, request.Namespace).annotations)
		admissionrules.DeclarePodSets(aw)
		if !isKueue {
			removePodSetInfos(aw)
		}
		if !fieldowners.Needed(aw.ManagedFields) {
			aw.ManagedFields = nil
		}
		return d.addExtras(ctx, request.Namespace, aw)
	}
	if isKueue && aw.Spec.Suspend {
		return nil
	}
	stored := &v1beta2.AppWrapper{}
	if err := d.decode(request.OldObject, stored); err != nil {
		return apierrors.NewInternalError(err)
	}
	if !isKueue {
		keepWhatWasWritten(stored, aw)
		d.keepFromNodes(ctx, request.UserInfo, stored, aw)
	}
	guard(stored, aw)
	return nil
}

// guard adds our finalizer with the write that starts an AppWrapper, which saves the controller one of
// its own. Never earlier: what waits must go without a controller, and what another controller manages
// must go without this one. To what is being deleted the API server lets nobody add a finalizer.
func guard(stored, sent *v1beta2.AppWrapper) {
	if unsuspends(stored, sent) && sent.ManagedByThisController() && sent.DeletionTimestamp.IsZero() {
		controllerutil.AddFinalizer(sent, v1beta2.AppWrapperFinalizer)
	}
}

type validator struct {
	limits   admissionrules.Limits
	policies config.Policies
	// healthTaints may be tolerated by every team.
	healthTaints []string
	// kueue are the users that start what is queued.
	kueue  sets.Set[string]
	review accessreview.Review
	// namespaces is called at most once for a request.
	namespaces   readNamespace
	surroundings readSurroundings
	// managed is nil if managedJobsNamespaceSelector is not configured.
	managed *managed
	own     *ownRights
	// access is nil if authors may wrap what they may not create.
	access *access
}

// ValidateCreate reports all problems at once.
func (v *validator) ValidateCreate(ctx context.Context, aw *v1beta2.AppWrapper) (admission.Warnings, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	// The API server has checked that the two agree where the object names one.
	aw.Namespace = request.Namespace
	decoded := admissionrules.Decode(aw)
	problems := decoded.ValidateCreate(v.limits)
	kinds := wrappedKinds(decoded)
	found := v.namespaces(ctx, aw.Namespace)
	if v.arrivesStarted(aw, found) && !v.kueue.Has(request.UserInfo.Username) {
		problems = append(problems, mayUnsuspend(ctx, v.review, request.UserInfo, aw, field.NewPath("spec", "suspend"))...)
	}
	if v.access != nil {
		problems = append(problems, v.access.check(ctx, request.UserInfo, aw.Namespace, kinds)...)
	}
	// If another controller manages it, that one deploys it, perhaps in another cluster.
	var warnings admission.Warnings
	if aw.ManagedByThisController() {
		problems = append(problems, v.own.check(ctx, aw.Namespace, kinds)...)
		problems = append(problems, v.uncounted(ctx, decoded)...)
		refused, warned := found.check(decoded, v.policies, v.healthTaints)
		problems, warnings = append(problems, refused...), warned
	}
	warnings = slices.Concat(v.managed.warning(aw, found), admissionrules.WarningsOnInheritance(found.annotations), warnings, decoded.WarningsOnCreate())
	return warnings, invalid(aw, problems)
}

// ValidateUpdate validates what changes, and not what is stored already.
func (v *validator) ValidateUpdate(ctx context.Context, before, after *v1beta2.AppWrapper) (admission.Warnings, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	problems := admissionrules.ValidateUpdate(before, after)
	if !v.kueue.Has(request.UserInfo.Username) {
		problems = append(problems, mustBeKept(before, after)...)
	}
	if path := v.taken(ctx, before, after); path != nil && !v.kueue.Has(request.UserInfo.Username) {
		problems = append(problems, mayUnsuspend(ctx, v.review, request.UserInfo, after, path)...)
	}
	return admissionrules.WarningsOnUpdate(before, after), invalid(after, problems)
}

// ValidateDelete is never called: the webhook is not registered for deletions.
func (v *validator) ValidateDelete(context.Context, *v1beta2.AppWrapper) (admission.Warnings, error) {
	return nil, nil
}

// wrappedKinds leaves out templates that do not decode: validation refuses those.
func wrappedKinds(decoded admissionrules.Decoded) []wrapped {
	var all []wrapped
	for i, template := range decoded.Templates {
		if template != nil {
			all = append(all, wrapped{template.GroupVersionKind(), field.NewPath("spec", "components").Index(i).Child("template")})
		}
	}
	return all
}

func invalid(aw *v1beta2.AppWrapper, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	kind := v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind).GroupKind()
	return apierrors.NewInvalid(kind, aw.Name, problems)
}
