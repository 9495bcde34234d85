// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// ofUpstream tells whether the limits of the first flavor are those that the AppWrapper controller
// of releases up to 1.0 has lowered: it was the last to change quotas. It kept no note, and never
// an administrator's limit there.
func ofUpstream(q *kueue.ClusterQueue) bool {
	_, noted := q.Annotations[v1beta2.LoweredLendingLimitsAnnotation]
	return !noted && slices.ContainsFunc(q.ManagedFields, wroteQuotas)
}

func wroteQuotas(f metav1.ManagedFieldsEntry) bool {
	return f.Manager == "manager" && f.Operation == metav1.ManagedFieldsOperationUpdate && f.FieldsV1 != nil &&
		strings.Contains(f.FieldsV1.GetRawString(), `"f:resourceGroups"`)
}
