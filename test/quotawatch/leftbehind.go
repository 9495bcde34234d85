// SPDX-License-Identifier: Apache-2.0

package quotawatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// LeftBehind excuses a pod whose controller had created it from a cache that lagged behind: what owns the pod did
// not exist any more at this revision, so nobody could have waited for the pod, and the garbage collector deletes it.
const LeftBehind audit.Excuse = "the owner of the pod was gone already, and the garbage collector deletes the pod"

// excuse returns the holders of a moment whose pods that use nodes are all left behind, and young.
func (w *Watch) excuse(ctx context.Context, m audit.Moment) (map[audit.Holder]bool, error) {
	excused := map[audit.Holder]bool{}
	for _, e := range m.Unexcused() {
		if _, known := excused[e.Holder]; known {
			continue
		}
		left := true
		for i := range m.Pods {
			if p := &m.Pods[i]; left && quota.UsesNode(p) && m.HolderOf(*p) == e.Holder {
				var err error
				if left, err = w.isLeftBehind(ctx, p, m.Revision); err != nil {
					return nil, err
				}
			}
		}
		excused[e.Holder] = left
	}
	return excused, nil
}

func (w *Watch) isLeftBehind(ctx context.Context, p *corev1.Pod, at string) (bool, error) {
	owner := metav1.GetControllerOf(p)
	if owner == nil || time.Since(p.CreationTimestamp.Time) > patience.For(patience.Short) {
		return false, nil
	}
	owners := &metav1.PartialObjectMetadataList{}
	owners.SetGroupVersionKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind+"List"))
	if err := w.api.List(ctx, owners, client.InNamespace(p.Namespace), exactly(at)); err != nil {
		if meta.IsNoMatchError(err) {
			return true, nil
		}
		return false, fmt.Errorf("cannot list the owners of pod %s at revision %s: %w", p.Name, at, err)
	}
	return !slices.ContainsFunc(owners.Items, func(o metav1.PartialObjectMetadata) bool { return o.UID == owner.UID }), nil
}
