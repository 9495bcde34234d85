// SPDX-License-Identifier: Apache-2.0

// Package fakecluster builds clusters in memory, and objects in them, for tests of the
// installer.
package fakecluster

import (
	"context"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
)

// API serves Deployments, CRDs, and ClusterQueues of an old version.
func API(typed *fake.Clientset, objects ...client.Object) access.API {
	return Serving(typed, nil, objects...)
}

// Serving also serves more kinds, whose objects are in no namespace.
func Serving(typed *fake.Clientset, more []schema.GroupVersionKind, objects ...client.Object) access.API {
	old := schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta1", Kind: "ClusterQueue"}
	kinds := append([]schema.GroupVersionKind{old}, more...)
	var versions []schema.GroupVersion
	for _, kind := range kinds {
		versions = append(versions, kind.GroupVersion())
	}
	mapper := meta.NewDefaultRESTMapper(versions)
	for _, kind := range kinds {
		mapper.Add(kind, meta.RESTScopeRoot)
	}
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, meta.RESTScopeRoot)
	objectClient := fakeclient.NewClientBuilder().WithRESTMapper(mapper).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{Get: getServed}).Build()
	return access.API{Interface: typed, Client: objectClient}
}

// getServed does not find the kinds that are not served, as a real client.
func getServed(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	kind, err := c.GroupVersionKindFor(o)
	if err != nil {
		return err
	}
	if _, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return err
	}
	return c.Get(ctx, key, o, options...)
}

// User is a client for a user whose access reviews are answered by may.
func User(may func(authorizationv1.ResourceAttributes) bool) *fake.Clientset {
	typed := fake.NewClientset()
	typed.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		review.Status.Allowed = may(*review.Spec.ResourceAttributes)
		return true, review, nil
	})
	return typed
}

// Everything allows what only an administrator may do.
func Everything(a authorizationv1.ResourceAttributes) bool { return a.Verb == "*" }

// CRDs returns CRDs for these kinds, each written as group/kind.
func CRDs(kinds ...string) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, k := range kinds {
		group, kind, _ := strings.Cut(k, "/")
		all = append(all, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": strings.ToLower(kind) + "s." + group},
			"spec":     map[string]any{"group": group, "names": map[string]any{"kind": kind}},
		}})
	}
	return all
}

// ConvertedCRD is the CRD of Cohorts with a conversion webhook, left in the cluster by the
// release mlbatch of this namespace.
func ConvertedCRD(namespace string, stored ...string) *unstructured.Unstructured {
	crd := CRDs("kueue.x-k8s.io/Cohort")[0]
	crd.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "mlbatch", "meta.helm.sh/release-namespace": namespace, "helm.sh/resource-policy": "keep"})
	_ = unstructured.SetNestedField(crd.Object, "Webhook", "spec", "conversion", "strategy")
	_ = unstructured.SetNestedStringMap(crd.Object, map[string]string{"namespace": namespace, "name": "kueue-webhook-service"}, "spec", "conversion", "webhook", "clientConfig", "service")
	_ = unstructured.SetNestedSlice(crd.Object, []any{
		map[string]any{"name": "v1beta1", "storage": false}, map[string]any{"name": "v1beta2", "storage": true},
	}, "spec", "versions")
	_ = unstructured.SetNestedStringSlice(crd.Object, stored, "status", "storedVersions")
	return crd
}

// Conversion returns the conversion strategy of a CRD in the cluster.
func Conversion(t *testing.T, api client.Client, crd *unstructured.Unstructured) string {
	t.Helper()
	got := crd.DeepCopy()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	strategy, _, _ := unstructured.NestedString(got.Object, "spec", "conversion", "strategy")
	return strategy
}

// KueueDeployment is Kueue's Deployment as in a manifest.
func KueueDeployment(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "kueue-controller-manager", "namespace": namespace},
	}}
}

// ClusterQueue is one that its release leaves behind.
func ClusterQueue() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue",
		"metadata": map[string]any{"name": "blue", "annotations": map[string]any{"helm.sh/resource-policy": "keep"}},
	}}
}

// Revision is Helm's record of the release mlbatch.
func Revision(number int, status release.Status, values map[string]any) *release.Release {
	return &release.Release{
		Name: "mlbatch", Version: number, Info: &release.Info{Status: status}, Config: values, Manifest: "the manifest",
		Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "mlbatch", Version: "0.1.0"}},
	}
}
