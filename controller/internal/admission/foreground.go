// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// foregroundPath is where the webhook is called for deletions in the foreground, and for no others.
const foregroundPath = "/foreground-workload-codeflare-dev-v1beta2-appwrapper"

// jobUIDLabel is how Kueue names the owner of a Workload.
const jobUIDLabel = "kueue.x-k8s.io/job-uid"

// foreground keeps the Workload of an AppWrapper that is about to be deleted in the foreground. The garbage collector
// would delete it at once, before the pods, and Kueue would give their quota to others. Our finalizer must be there
// first: what is being deleted gets none any more. Package workload removes it after the last pod.
type foreground struct {
	reader client.Reader
	client client.Client
	decode admission.Decoder
}

// Handle refuses the deletion if the quota cannot be kept.
func (f *foreground) Handle(ctx context.Context, request admission.Request) admission.Response {
	aw := &metav1.PartialObjectMetadata{}
	if err := f.decode.DecodeRaw(request.OldObject, aw); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if request.DryRun != nil && *request.DryRun || !controllerutil.ContainsFinalizer(aw, v1beta2.AppWrapperFinalizer) {
		return admission.Allowed("")
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return f.keep(ctx, aw) })
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("cannot keep the quota until the pods have ended: "+
			"try again, or delete it with --cascade=background: %w", err))
	}
	return admission.Allowed("")
}

func (f *foreground) keep(ctx context.Context, aw *metav1.PartialObjectMetadata) error {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind("WorkloadList"))
	err := f.reader.List(ctx, all, client.InNamespace(aw.Namespace), client.MatchingLabels{jobUIDLabel: string(aw.UID)})
	if meta.IsNoMatchError(err) {
		return nil // there is no Kueue
	}
	if err != nil {
		return fmt.Errorf("cannot list Workloads: %w", err)
	}
	for i := range all.Items {
		w := &all.Items[i]
		before := w.DeepCopy()
		if !w.DeletionTimestamp.IsZero() || !metav1.IsControlledBy(w, aw) || !controllerutil.AddFinalizer(w, v1beta2.AppWrapperFinalizer) {
			continue
		}
		w.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind("Workload"))
		before.SetGroupVersionKind(w.GroupVersionKind())
		if err := f.client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot write Workload %s: %w", w.Name, err)
		}
	}
	return nil
}
