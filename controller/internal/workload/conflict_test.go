// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// synced is the registration of a handler that has seen all.
type synced struct {
	toolscache.ResourceEventHandlerRegistration
}

func (synced) HasSynced() bool { return true }

// A conflict of the AppWrapper itself is dropped, because its change causes another look. If that of a
// Workload were one, too, nobody would ask again.
func TestAWorkloadThatOthersKeepChangingIsAskedForAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	yes := true
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "w", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "workload.codeflare.dev/v1beta2", Kind: "AppWrapper", Name: "train", UID: "of-train", Controller: &yes,
	}}}}
	w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(w).WithIndex(&kueue.Workload{}, byOwner, ownerOf).Build()
	writes := 0
	changing := interceptor.NewClient(api, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			writes++
			return apierrors.NewConflict(schema.GroupResource{Resource: "workloads"}, "w", nil)
		},
	})
	e := &Evictions{cached: api, watched: synced{}, live: &editor{reader: api, client: changing}}
	err := e.GiveBack(t.Context(), "of-train", "why")
	if err == nil || apierrors.IsConflict(err) || writes < 3 {
		t.Errorf("after %d writes: %v", writes, err)
	}
}
