// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
)

// workloadOf is the Workload that Kueue makes for an AppWrapper.
func workloadOf(aw *v1beta2.AppWrapper) *kueue.Workload {
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: aw.Namespace, Name: "appwrapper-" + aw.Name,
		Labels: map[string]string{jobUIDLabel: string(aw.UID)}, Finalizers: []string{kueue.ResourceInUseFinalizerName}}}
	w.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(aw, v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind))}
	return w
}

func TestADeletionInTheForegroundKeepsTheWorkload(t *testing.T) {
	started := given.AppWrapper("a").With(given.Job("j", 1)).WithFinalizer().Build()
	started.UID = "of-a"
	waiting := started.DeepCopy()
	waiting.Finalizers = nil
	other := started.DeepCopy()
	other.Name, other.UID = "b", "of-b"
	spoofed := workloadOf(other)
	spoofed.Name, spoofed.Labels[jobUIDLabel] = "spoofed", "of-a"
	for sentence, c := range map[string]struct {
		deleted *v1beta2.AppWrapper
		dryRun  bool
		kept    []string
	}{
		"of what runs":                       {started, false, []string{"appwrapper-a"}},
		"not for a trial":                    {started, true, nil},
		"not of what has never been started": {waiting, false, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			stored := fake.NewClientBuilder().WithScheme(withKueue(t)).WithObjects(workloadOf(started), workloadOf(other), spoofed).Build()
			request := request(t, admissionv1.Delete, c.deleted, c.deleted)
			request.DryRun = ptr.To(c.dryRun)
			if response := (&foreground{reader: stored, client: stored, decode: admission.NewDecoder(withKueue(t))}).Handle(t.Context(), request); !response.Allowed {
				t.Error(response.Result)
			}
			var all kueue.WorkloadList
			if err := stored.List(t.Context(), &all); err != nil {
				t.Fatal(err)
			}
			var kept []string
			for _, w := range all.Items {
				if slices.Contains(w.Finalizers, v1beta2.AppWrapperFinalizer) {
					kept = append(kept, w.Name)
				}
				if !slices.Contains(w.Finalizers, kueue.ResourceInUseFinalizerName) {
					t.Errorf("%s has lost the finalizer of Kueue", w.Name)
				}
			}
			if !slices.Equal(kept, c.kept) {
				t.Errorf("kept %v, want %v", kept, c.kept)
			}
		})
	}
}

// Without the finalizer, pods would run on without quota. So whoever deletes tries again, or in the background.
func TestADeletionInTheForegroundThatCannotKeepTheWorkloadIsRefused(t *testing.T) {
	started := given.AppWrapper("a").With(given.Job("j", 1)).WithFinalizer().Build()
	started.UID = "of-a"
	refusing := interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return errors.New("no answer")
	}}
	stored := fake.NewClientBuilder().WithScheme(withKueue(t)).WithObjects(workloadOf(started)).WithInterceptorFuncs(refusing).Build()
	response := (&foreground{reader: stored, client: stored, decode: admission.NewDecoder(withKueue(t))}).Handle(t.Context(), request(t, admissionv1.Delete, started, started))
	if response.Allowed {
		t.Error("it is allowed")
	}
}

func withKueue(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := scheme(t)
	if err := kueue.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}
