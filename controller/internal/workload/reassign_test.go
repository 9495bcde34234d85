// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
	"github.com/mlbatch/mlbatch/controller/internal/preemptionpause"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
)

// byLabel is the label that work keeps away from, once it had to leave assigned nodes.
var byLabel = podtemplate.Avoidance{Taints: map[string][]corev1.Taint{
	"nvidia.com/gpu": {{Key: "health", Value: "EVICT", Effect: corev1.TaintEffectNoExecute}},
}}

const placedWorkload = `{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
	"metadata": {"name": "w", "namespace": "red", "uid": "u", "ownerReferences": [
		{"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "name": "train", "uid": "of-train", "controller": true}]},
	"spec": {"podSets": [{"name": "train-0", "count": 2, "template": {"spec": {"containers": [
		{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}}}]},
	"status": {"conditions": [
		{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "", "lastTransitionTime": "2026-01-01T00:01:00Z"}]}}`

// Kueue's part is in its controllers of Workloads and jobs: it evicts what is inactive, and takes the quota back when
// no pod is left.
const takenBack = `{"status": {"conditions": [
	{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "", "lastTransitionTime": "2026-01-01T00:02:00Z"},
	{"type": "Evicted", "status": "True", "reason": "Deactivated", "message": "", "lastTransitionTime": "2026-01-01T00:02:00Z"}]}}`

// The controller does its part without the pause of preempted work, too.
func TestKueueAssignsOtherNodes(t *testing.T) {
	evictions := &Evictions{}
	nodes := []v1beta2.AvoidedNode{{Name: "bad", Cause: "PodRejected", Until: metav1.NewTime(time.Now().Add(3 * time.Second))}}
	if err := evictions.Reassign(t.Context(), "of-train", nodes); err == nil {
		t.Error("nobody is asked before Workloads are watched, and nobody tries again")
	}
	api := startWith(t, preemptionpause.Pause{}, evictions, kueue.SchemeGroupVersion.WithKind("Workload"))
	if err := api.Put([]byte(placedWorkload)); err != nil {
		t.Fatal(err)
	}
	untilIs(t, api, "it is deactivated", func(ctx context.Context, w *kueue.Workload) (bool, error) {
		_ = evictions.Reassign(ctx, "of-train", nodes) // until Workloads are watched
		return w.Spec.Active != nil && !*w.Spec.Active, nil
	})
	if err := api.Patch("workloads", key, takenBack); err != nil {
		t.Fatal(err)
	}
	untilIs(t, api, "it is activated", func(_ context.Context, w *kueue.Workload) (bool, error) { return *w.Spec.Active, nil })
	if terms := termsOf(t, api); !strings.Contains(terms, `"health"`) || !strings.Contains(terms, `"bad"`) {
		t.Errorf("it may run on %s", terms)
	}
	untilIs(t, api, "the name is forgotten", func(context.Context, *kueue.Workload) (bool, error) {
		return !strings.Contains(termsOf(t, api), `"bad"`), nil
	})
	if terms := termsOf(t, api); !strings.Contains(terms, `"health"`) {
		t.Errorf("then it may run on %s", terms)
	}
	writes := slices.DeleteFunc(api.Requests(), func(r string) bool { return !strings.HasPrefix(r, "PATCH ") })
	if len(writes) != 3 {
		t.Errorf("it has written %v", writes)
	}
}

// read has all of the Workload.
func read(t *testing.T, api *fakeapiserver.Server) *kueue.Workload {
	t.Helper()
	w := &kueue.Workload{}
	fields := api.Get("workloads", key).Fields
	for name, into := range map[string]any{"spec": &w.Spec, "status": &w.Status, "metadata": &w.ObjectMeta} {
		if text := fields[name]; text != nil {
			if err := json.Unmarshal(text, into); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w
}

// termsOf are the nodes on which Kueue may place the pods, as JSON.
func termsOf(t *testing.T, api *fakeapiserver.Server) string {
	t.Helper()
	text, err := json.Marshal(read(t, api).Spec.PodSets[0].Template.Spec.Affinity)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func untilIs(t *testing.T, api *fakeapiserver.Server, what string, is func(context.Context, *kueue.Workload) (bool, error)) {
	t.Helper()
	err := patience.PollFor(t.Context(), 10*time.Millisecond, patience.Short, func(ctx context.Context) (bool, error) {
		return is(ctx, read(t, api))
	})
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w; the requests were %v", what, err, api.Requests()))
	}
}

// Kueue may change a Workload at the same moment. Nothing of the AppWrapper changes then, so nobody would ask again.
func TestKueueIsAskedAlthoughItChangesTheWorkload(t *testing.T) {
	for what, ask := range map[string]func(*Evictions) error{
		"other nodes": func(e *Evictions) error { return e.Reassign(t.Context(), "of-train", nil) },
		"the quota":   func(e *Evictions) error { return e.GiveBack(t.Context(), "of-train", "why") },
	} {
		t.Run(what, func(t *testing.T) {
			w, scheme := &kueue.Workload{}, runtime.NewScheme()
			err := json.Unmarshal([]byte(placedWorkload), w)
			if err == nil {
				err = kueue.AddToScheme(scheme)
			}
			if err != nil {
				t.Fatal(err)
			}
			conflict := func() error { return apierrors.NewConflict(schema.GroupResource{Resource: "workloads"}, w.Name, nil) }
			tries := 0
			api := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&kueue.Workload{}, byOwner, ownerOf).WithStatusSubresource(w).WithObjects(w).
				WithInterceptorFuncs(interceptor.Funcs{
					Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
						if tries++; tries == 1 {
							return conflict()
						}
						return c.Patch(ctx, o, p, opts...)
					},
					SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
						if tries++; tries == 1 {
							return conflict()
						}
						return c.SubResource(sub).Patch(ctx, o, p, opts...)
					},
				}).Build()
			watched := &beginning{}
			watched.over.Store(true)
			if err := ask(&Evictions{cached: api, watched: watched, live: &editor{reader: api, client: api}}); err != nil || tries != 2 {
				t.Errorf("%d tries: %v", tries, err)
			}
		})
	}
}
