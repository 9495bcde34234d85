// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package simulated_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// Someone installed the platform with kubectl, and now wants Helm to manage it. The objects of
// our controller have the same names as upstream's.
func helmTakesOwnership(t *testing.T, p person, admin client.Client) {
	t.Helper()
	config := helm(t, p)
	installed, err := config.Releases.Last("mlbatch")
	if err != nil {
		t.Fatal(err)
	}
	before := &workload.AppWrapper{}
	if err := admin.Get(t.Context(), key(), before); err != nil {
		t.Fatal(err)
	}
	// The chart that Helm stores in a release lacks its subcharts.
	archives, err := filepath.Glob(filepath.Join(p.dir(), "platform", "charts", "mlbatch-*.tgz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("the packaged charts are %q: %v", archives, err)
	}
	if installed.Chart, err = loader.Load(archives[0]); err != nil {
		t.Fatal(err)
	}
	forgetHelm(t, admin, installed)
	if err := install(t, config, installed, false); err == nil || !strings.Contains(err.Error(), "cannot be imported") {
		t.Errorf("without --take-ownership it says %v", err)
	}
	if err := install(t, config, installed, true); err != nil {
		t.Fatalf("with --take-ownership: %v", err)
	}
	after := &workload.AppWrapper{}
	if err := admin.Get(t.Context(), key(), after); err != nil || after.UID != before.UID || after.Status.Phase != before.Status.Phase {
		t.Errorf("the AppWrapper was %s %s and is %s %s: %v", before.UID, before.Status.Phase, after.UID, after.Status.Phase, err)
	}
	await(t, "the controller works on", func(ctx context.Context) error {
		if err := client.IgnoreNotFound(admin.Delete(ctx, after)); err != nil {
			return err
		}
		err := admin.Get(ctx, key(), &workload.AppWrapper{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("the AppWrapper is still there"))
	})
}

func helm(t *testing.T, p person) *action.Configuration {
	t.Helper()
	kubeconfig, namespace := filepath.Join(p.dir(), "kubeconfig"), platform.Namespace
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	config := &action.Configuration{}
	if err := config.Init(flags, namespace, "secret", func(string, ...any) {}); err != nil {
		t.Fatal(err)
	}
	return config
}

func install(t *testing.T, config *action.Configuration, as *release.Release, takeOwnership bool) error {
	t.Helper()
	i := action.NewInstall(config)
	i.ReleaseName, i.Namespace, i.TakeOwnership = as.Name, as.Namespace, takeOwnership
	i.Wait, i.Timeout = true, patience.For(patience.Limit)
	made, err := i.RunWithContext(t.Context(), as.Chart, as.Config)
	if err == nil && !strings.Contains(made.Manifest, "name: appwrapper-controller-manager") {
		t.Error("our controller is not part of the release")
	}
	return err
}

// forgetHelm removes everything by which Helm recognizes its objects.
func forgetHelm(t *testing.T, admin client.Client, of *release.Release) {
	t.Helper()
	for _, document := range strings.Split(of.Manifest, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if len(object.Object) == 0 {
			continue
		}
		patch := `{"metadata":{"annotations":{"meta.helm.sh/release-name":null,"meta.helm.sh/release-namespace":null},` +
			`"labels":{"app.kubernetes.io/managed-by":"kubectl"}}}`
		if object.GetNamespace() == "" {
			object.SetNamespace(of.Namespace)
		}
		err := admin.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch)))
		if err != nil {
			t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	secrets := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace}}
	if err := admin.DeleteAllOf(t.Context(), secrets, client.InNamespace(of.Namespace), client.MatchingLabels{"owner": "helm", "name": of.Name}); err != nil {
		t.Fatal(err)
	}
}
