// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package helm_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// site is a cluster on which nothing is installed yet.
type site struct {
	// dir is the folder of the cluster.
	kubeconfig, dir string

	api     kubernetes.Interface
	objects ctrl.Client
}

// begin starts a simulated cluster with all programs of the platform.
func begin(t *testing.T) site {
	t.Helper()
	cluster, err := localcluster.New(localcluster.Config{
		Name: "helm", Mode: localcluster.Simulated, Port: 26571, SimulatedNodes: 2, Checkout: checkout,
	}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Down(); err != nil { // left by a killed run
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Down(); err != nil {
			t.Error(err)
		}
	})
	s := platform.Site{Cluster: cluster, Checkout: checkout, Progress: os.Stderr}
	if _, err := s.Build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.LoadImages(t.Context()); err != nil {
		t.Fatal(err)
	}
	config, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := ctrl.New(config, ctrl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return site{kubeconfig: cluster.KubeconfigPath(), dir: cluster.Dir(), api: api, objects: objects}
}

// Each step starts from the result of the previous one.
func TestBothHelmsInstallAndUpgrade(t *testing.T) {
	s := begin(t)
	if !t.Run("kubectl installs the controller alone", s.kubectlInstalls) {
		return
	}
	three, four := clients[0], clients[1]
	for i, step := range []struct {
		what, verb string
		client     client
	}{
		{"Helm 3 installs", "install", three},
		{"Helm 3 upgrades", "upgrade", three},
		{"Helm 4 upgrades what Helm 3 has installed", "upgrade", four},
		{"Helm 4 uninstalls", "uninstall", four},
		{"Helm 4 installs, onto what stays", "install", four},
		{"Helm 4 upgrades", "upgrade", four},
	} {
		if !t.Run(step.what, func(t *testing.T) { s.take(t, step.client, step.verb, fmt.Sprintf("step-%d", i)) }) {
			return
		}
	}
	s.wantServerSideApply(t)
}

// take runs a step for both releases, in the order of docs/install.md, and checks for the mark
// in the step's values.
func (s site) take(t *testing.T, c client, verb, mark string) {
	t.Helper()
	if verb == "uninstall" {
		manifests := s.says(t, c, "get", "manifest", "mlbatch") + "\n---\n" + s.says(t, c, "get", "manifest", "teams")
		s.says(t, c, "uninstall", "teams", "--wait")
		s.says(t, c, "uninstall", "mlbatch", "--wait")
		s.wantGone(t, manifests)
		return
	}
	s.says(t, c, verb, "mlbatch", packaged("mlbatch"), "--create-namespace", "--wait", "--timeout", patience.For(5*time.Minute).String(),
		"--values", filepath.Join(checkout, "setup/profiles/localcluster.yaml"), "--set", "appwrapper.podAnnotations.mark="+mark)
	s.says(t, c, verb, "teams", packaged("teams"), "--values", filepath.Join(checkout, "setup/teams/simulated.yaml"),
		"--set", "dashboards.users={"+mark+"}")
	s.wantMark(t, mark)
	s.wantDeployed(t, c)
}

func (s site) says(t *testing.T, c client, args ...string) string {
	t.Helper()
	return c.says(t, append(args, "--namespace", namespace, "--kubeconfig", s.kubeconfig)...)
}

const controller = "appwrapper-controller-manager"

func (s site) deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	d, err := s.api.AppsV1().Deployments(namespace).Get(t.Context(), controller, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// wantMark checks an object of each release for the mark.
func (s site) wantMark(t *testing.T, mark string) {
	t.Helper()
	d := s.deployment(t)
	if got := d.Spec.Template.Annotations["mark"]; got != mark {
		t.Errorf("the controller's pods have the mark %q, want %q", got, mark)
	}
	if d.Status.UpdatedReplicas != 1 || d.Status.AvailableReplicas != 1 {
		t.Errorf("Helm did not wait for the controller: %+v", d.Status)
	}
	bindings, err := s.api.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=teams"})
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range bindings.Items {
		for _, subject := range binding.Subjects {
			if subject.Kind == rbacv1.UserKind && subject.Name == mark {
				return
			}
		}
	}
	t.Errorf("none of %d ClusterRoleBindings has the user %s", len(bindings.Items), mark)
}

func (s site) wantDeployed(t *testing.T, c client) {
	t.Helper()
	var releases []struct{ Name, Status string }
	if err := json.Unmarshal([]byte(s.says(t, c, "list", "--output", "json")), &releases); err != nil {
		t.Fatal(err)
	}
	if len(releases) != 2 {
		t.Errorf("the releases are %v", releases)
	}
	for _, r := range releases {
		if r.Status != "deployed" {
			t.Errorf("the release %s is %s", r.Name, r.Status)
		}
	}
}

// wantGone fails if an object of the releases is left, except those that must stay.
func (s site) wantGone(t *testing.T, manifests string) {
	t.Helper()
	gone, left := 0, []string{}
	for _, document := range documents(manifests) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if len(object.Object) == 0 || object.GetAnnotations()["helm.sh/resource-policy"] == "keep" {
			continue
		}
		if s.isThere(t, object) {
			left = append(left, object.GetKind()+" "+object.GetName())
		}
		gone++
	}
	if len(left) > 0 || gone < 50 {
		t.Errorf("checked %d objects, want at least 50; %d are left: %q", gone, len(left), left)
	}
}

func (s site) isThere(t *testing.T, object *unstructured.Unstructured) bool {
	t.Helper()
	namespaced, err := s.objects.IsObjectNamespaced(object)
	if err != nil {
		t.Fatal(err)
	}
	if namespaced && object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	err = s.objects.Get(t.Context(), ctrl.ObjectKeyFromObject(object), object)
	if ctrl.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// wantServerSideApply checks that Helm 4 used its default, server-side apply.
func (s site) wantServerSideApply(t *testing.T) {
	t.Helper()
	for _, entry := range s.deployment(t).ManagedFields {
		if entry.Manager == "helm" && entry.Operation == metav1.ManagedFieldsOperationApply {
			return
		}
	}
	t.Error("Helm 4 did not use server-side apply")
}
