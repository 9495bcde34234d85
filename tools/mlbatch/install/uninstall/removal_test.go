// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/test/fakecluster"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// goes returns a removal of the release mlbatch with the given objects. Its Helm deletes
// nothing, or fails.
func goes(t *testing.T, status release.Status, failure error, objects ...helmrelease.Object) *removal {
	t.Helper()
	releases := storage.Init(driver.NewMemory())
	last := fakecluster.Revision(1, status, nil)
	last.Manifest = ""
	if err := releases.Create(last); err != nil {
		t.Fatal(err)
	}
	helm := &action.Configuration{
		Releases: releases, Log: func(string, ...any) {},
		KubeClient: &kubefake.FailingKubeClient{PrintingKubeClient: kubefake.PrintingKubeClient{Out: io.Discard}, BuildError: failure},
	}
	return &removal{Release: helmrelease.Release{Name: "mlbatch", Namespace: helmrelease.DefaultNamespace}, History: helmrelease.History{Helm: helm, Last: last}, objects: objects}
}

func (m *removal) records(t *testing.T) []string {
	t.Helper()
	history, err := m.Helm.Releases.History(m.Name)
	if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		t.Fatal(err)
	}
	var all []string
	for _, r := range history {
		all = append(all, r.Info.Status.String())
	}
	return all
}

func TestAnUninstallSaysWhyItFails(t *testing.T) {
	m := goes(t, release.StatusDeployed, errors.New("deployments is forbidden"))
	err := m.remove(t.Context(), fakecluster.API(fake.NewClientset()), time.Second, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "deployments is forbidden") {
		t.Errorf("it says %v", err)
	}
}

func TestAnUninstallThatHasWaitedInVainIsGoneOnWith(t *testing.T) {
	held := fakecluster.KueueDeployment(helmrelease.DefaultNamespace)
	held.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "mlbatch", "meta.helm.sh/release-namespace": helmrelease.DefaultNamespace})
	held.SetFinalizers([]string{"somebody.dev/holds"})
	api := fakecluster.API(fake.NewClientset(), held.DeepCopy())
	m := goes(t, release.StatusDeployed, nil, helmrelease.Object{Unstructured: held})
	err := m.remove(t.Context(), api, time.Second, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "Deployment kueue-controller-manager is still there, held by somebody.dev/holds") {
		t.Errorf("it says %v", err)
	}
	if got := m.records(t); !cmp.Equal(got, []string{"uninstalled"}) {
		t.Fatalf("Helm remembers %q, by which the next run could go on", got)
	}
	there := held.DeepCopy()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(there), there); err != nil {
		t.Fatal(err)
	}
	there.SetFinalizers(nil)
	if err := api.Update(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	if err := m.remove(t.Context(), api, time.Minute, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := m.records(t); len(got) > 0 {
		t.Errorf("Helm remembers %q", got)
	}
}

// Without its webhooks, the controller would start work for authors whose rights nobody has checked.
func TestOurControllersGoBeforeTheirWebhooks(t *testing.T) {
	const webhooks = "MutatingWebhookConfiguration"
	var objects []helmrelease.Object
	var there []client.Object
	for _, o := range []struct{ apiVersion, kind, name string }{
		{"admissionregistration.k8s.io/v1", webhooks, "appwrapper-mutating-webhook-configuration"},
		{"apps/v1", "Deployment", "kueue-controller-manager"},
		{"apps/v1", "Deployment", "codeflare-controller-manager"},
		{"apps/v1", "Deployment", "appwrapper-controller-manager"},
	} {
		namespace := helmrelease.DefaultNamespace
		if o.kind == webhooks {
			namespace = ""
		}
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": o.apiVersion, "kind": o.kind, "metadata": map[string]any{
			"name": o.name, "namespace": namespace,
			"annotations": map[string]any{"meta.helm.sh/release-name": "mlbatch", "meta.helm.sh/release-namespace": helmrelease.DefaultNamespace},
		}}}
		objects, there = append(objects, helmrelease.Object{Unstructured: object}), append(there, object.DeepCopy())
	}
	kind := schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: webhooks}
	api := fakecluster.Serving(fake.NewClientset(), []schema.GroupVersionKind{kind}, there...)
	var deleted []string
	api.Client = interceptor.NewClient(api.Client.(client.WithWatch), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			how := (&client.DeleteOptions{}).ApplyOptions(options).PropagationPolicy
			what := o.GetName()
			if how != nil {
				what += " " + string(*how)
			}
			deleted = append(deleted, what)
			return c.Delete(ctx, o, options...)
		},
	})
	if err := goes(t, release.StatusDeployed, nil, objects...).remove(t.Context(), api, time.Minute, io.Discard); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"codeflare-controller-manager Foreground", "appwrapper-controller-manager Foreground", // until their pods are gone
		"appwrapper-mutating-webhook-configuration", "kueue-controller-manager",
	}
	if diff := cmp.Diff(want, deleted); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A cluster may have very many Workloads.
func TestWhatWouldBeStrandedIsListedInPages(t *testing.T) {
	pages := map[string]string{"": "2", "2": "3", "3": ""}
	api := fakecluster.API(fake.NewClientset())
	api.Client = interceptor.NewClient(api.Client.(client.WithWatch), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			asked := (&client.ListOptions{}).ApplyOptions(options)
			if asked.Limit == 0 {
				return errors.New("everything is listed at once")
			}
			held := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: "on-page-" + asked.Continue, Finalizers: []string{"kueue.x-k8s.io/resource-in-use"}, DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)},
			}}
			page := list.(*metav1.PartialObjectMetadataList)
			page.Continue, page.Items = pages[asked.Continue], []metav1.PartialObjectMetadata{held}
			return nil
		},
	})
	found, err := stuckOf(t.Context(), api, schema.GroupKind{Group: "kueue.x-k8s.io", Kind: "ClusterQueue"})
	if err != nil || len(found) != len(pages) || found[2].name != "/on-page-3" {
		t.Errorf("%v, %v", found, err)
	}
}

func TestForceDoesWithoutWhatADeadKueueHides(t *testing.T) {
	api := fakecluster.API(fake.NewClientset())
	api.Client = interceptor.NewClient(api.Client.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("conversion webhook for kueue.x-k8s.io/v1beta1, Kind=ClusterQueue failed")
		},
	})
	var progress strings.Builder
	platform := goes(t, release.StatusDeployed, nil, helmrelease.Object{Unstructured: fakecluster.CRDs("kueue.x-k8s.io/ClusterQueue")[0]})
	if _, err := (Uninstaller{Progress: &progress}).stuckWithout(t.Context(), api, platform); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("it says %v", err)
	}
	if _, err := (Uninstaller{Force: true, Progress: &progress}).stuckWithout(t.Context(), api, platform); err != nil || !strings.Contains(progress.String(), "warning: ") {
		t.Errorf("with --force: %v, and it says %q", err, progress.String())
	}
}

func TestAnUninstallDropsConversions(t *testing.T) {
	api := fakecluster.API(fake.NewClientset(), fakecluster.ConvertedCRD(helmrelease.DefaultNamespace, "v1beta2"))
	if err := goes(t, release.StatusDeployed, nil).remove(t.Context(), api, time.Minute, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := fakecluster.Conversion(t, api, fakecluster.ConvertedCRD(helmrelease.DefaultNamespace)); got != "None" {
		t.Errorf("its conversion is %s", got)
	}
}
