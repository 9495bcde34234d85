// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// cluster returns a cluster with the default sizes, on which team blue has eight CPUs.
func cluster(t *testing.T, calls interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	sizes := runplan.DefaultSizes()
	return bare(t, calls, append(objects, &sizes)...)
}

// bare is a cluster without sizes.
func bare(t *testing.T, calls interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := runs.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	local := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "default-queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "blue-queue"}}
	objects = append(objects, local, clusterQueue(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "blue"}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "default-priority"}})
	stored := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(kinds(scheme)).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Run{}).Build()
	return interceptor.NewClient(interceptor.NewClient(stored, interceptor.Funcs{Create: tryCreate, Apply: tryApply}), calls)
}

func clusterQueue() *kueue.ClusterQueue {
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "blue-queue"}, Spec: kueue.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{}}}
	flavor := kueue.FlavorQuotas{Name: "nodes"}
	for name, amount := range map[corev1.ResourceName]string{"cpu": "8", "memory": "1Ti"} {
		flavor.Resources = append(flavor.Resources, kueue.ResourceQuota{Name: name, NominalQuota: resource.MustParse(amount)})
	}
	q.Spec.ResourceGroups = []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu", "memory"}, Flavors: []kueue.FlavorQuotas{flavor}}}
	return q
}

// kinds are those that the cluster serves: JobSet is none of them.
func kinds(scheme *runtime.Scheme) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	mapper.Add(schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}, meta.RESTScopeNamespace)
	return mapper
}

// tryCreate refuses what exists in a dry run, too, as a real API server.
func tryCreate(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
	var all client.CreateOptions
	if all.ApplyOptions(options); !slices.Contains(all.DryRun, metav1.DryRunAll) {
		return c.Create(ctx, o, options...)
	}
	there := o.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), there); err == nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "runs"}, o.GetName())
	}
	return nil
}

// tryApply changes nothing in a dry run.
func tryApply(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	var all client.ApplyOptions
	if all.ApplyOptions(options); slices.Contains(all.DryRun, metav1.DryRunAll) {
		return nil
	}
	return c.Apply(ctx, o, options...)
}

// forbidden is the answer to a user without a right.
func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: resource}, "survey", errors.New("no role"))
}

// noDefinitions is an API server without the kinds of codeflare.dev.
func noDefinitions(t *testing.T) client.WithWatch {
	t.Helper()
	return dial(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answers := map[string]string{
			"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
			"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		}
		if answer, known := answers[r.URL.Path]; known {
			_, _ = w.Write([]byte(answer))
			return
		}
		http.NotFound(w, r)
	})
}

// definitionsGone is one whose definitions were deleted after the client had found them.
func definitionsGone(t *testing.T) client.WithWatch {
	t.Helper()
	return dial(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answers := map[string]string{
			"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
			"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"codeflare.dev","versions":[{"groupVersion":"codeflare.dev/v1alpha1","version":"v1alpha1"}]}]}`,
			"/apis/codeflare.dev/v1alpha1": `{"kind":"APIResourceList","groupVersion":"codeflare.dev/v1alpha1","resources":[
				{"name":"runs","kind":"Run","namespaced":true},{"name":"runsizeconfigurations","kind":"RunSizeConfiguration"}]}`,
		}
		if answer, known := answers[r.URL.Path]; known {
			_, _ = w.Write([]byte(answer))
			return
		}
		http.Error(w, "404 page not found", http.StatusNotFound)
	})
}

// gone is an API server that does not answer.
func gone(t *testing.T) client.WithWatch {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	return clientOf(t, server.URL)
}

// dial returns a real client of a server.
func dial(t *testing.T, answer http.HandlerFunc) client.WithWatch {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return clientOf(t, server.URL)
}

func clientOf(t *testing.T, url string) client.WithWatch {
	t.Helper()
	scheme, err := runs.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(&rest.Config{Host: url}, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
