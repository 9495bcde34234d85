// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package helm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// registryFolder is REGISTRY of make release.
const registryFolder = "registry.example.com/platform"

// kubectlInstalls applies, upgrades and deletes install.yaml as docs/own-operators.md says, on a cluster that has Kueue
// and nothing else of the platform. An older kubectl installs, a newer one upgrades and deletes.
func (s site) kubectlInstalls(t *testing.T) {
	older, newer := s.kubectl(t, "1.30"), s.kubectl(t, "1.37")
	before, now := s.released(t, "0.0.9"), s.released(t, versions.Version)
	queue := filepath.Join(checkout, "test/helm/testdata/kueue.yaml")
	operators := s.kueueAlone(t)

	older.says(t, "create", "namespace", namespace)
	s.asPlatform(t, func() { s.applied(t, older, operators, namespace) })
	s.asPlatform(t, func() { s.applied(t, older, before, system) })
	s.hasImage(t, "0.0.9")
	// Kueue has looked for the CRD before it was there. It looks again after some minutes, or when it restarts.
	s.asPlatform(t, func() {
		older.says(t, "rollout", "restart", "deployment", "--namespace", namespace)
		older.says(t, "rollout", "status", "deployment", "--namespace", namespace, "--timeout", patience.For(4*time.Minute).String())
	})
	s.eventually(t, "Kueue takes no queue", func() bool {
		_, err := older.run(t, "apply", "--server-side", "--filename", queue)
		return err == nil
	})
	s.runs(t, older, "long", "1h", "Running")
	pods := older.says(t, "get", "pods", "--output", "name")

	s.asPlatform(t, func() { s.applied(t, newer, now, system) })
	s.hasImage(t, versions.Version)
	s.applied(t, newer, now, system) // again
	s.applied(t, older, now, system)
	s.runs(t, newer, "short", "1s", "Succeeded")
	if after := newer.says(t, "get", "pods", "--output", "name", "--selector", "workload.codeflare.dev/appwrapper=long"); after != pods {
		t.Errorf("the pods of a job were %q before the upgrade, and are %q", pods, after)
	}

	newer.says(t, "delete", "appwrappers", "--all", "--all-namespaces")
	newer.says(t, "delete", "--filename", now)
	newer.says(t, "delete", "--filename", queue)
	newer.says(t, "delete", "--filename", operators)
	newer.says(t, "delete", "namespace", namespace)
	for _, file := range []string{now, queue, operators} {
		for _, o := range objectsIn(t, file) {
			if s.isServed(t, o) && s.isThere(t, o) {
				t.Errorf("%s %s is still there", o.GetKind(), o.GetName())
			}
		}
	}
}

// system is the namespace of install.yaml.
const system = "appwrapper-system"

// kubectl is a version of it.
type kubectl struct{ path, kubeconfig string }

func (s site) kubectl(t *testing.T, minor string) kubectl {
	t.Helper()
	v, err := versions.On(minor)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := components.UserCache(checkout)
	if err != nil {
		t.Fatal(err)
	}
	built, err := cache.Get(t.Context(), os.Stderr, components.Kubectl(v))
	if err != nil {
		t.Fatal(err)
	}
	return kubectl{built["kubectl"], s.kubeconfig}
}

func (k kubectl) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), k.path, append(args, "--kubeconfig", k.kubeconfig, "--cache-dir", t.TempDir())...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (k kubectl) says(t *testing.T, args ...string) string {
	t.Helper()
	out, err := k.run(t, args...)
	if err != nil {
		t.Fatalf("kubectl %q: %v\n%s", args, err, out)
	}
	return out
}

// released writes the install.yaml of a version, as make release REGISTRY=… does, and lets nodes run its image.
func (s site) released(t *testing.T, version string) (file string) {
	t.Helper()
	v, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]plan.Image{}
	if err := plan.Read(s.dir, plan.ImagesFile, &images); err != nil {
		t.Fatal(err)
	}
	program := images[v.ControllerImage()]
	v = v.ReleasedTo(registryFolder)
	v.Version = version
	images[v.ControllerImage()] = program
	if err := plan.Write(s.dir, plan.ImagesFile, images); err != nil {
		t.Fatal(err)
	}
	released, err := packaging.BuildAs(t.Context(), checkout, v)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, "install-"+version+".yaml", released.InstallYAML)
}

func written(t *testing.T, name string, text []byte) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// kueueAlone writes the manifests of Kueue, as the platform configures it.
func (s site) kueueAlone(t *testing.T) (file string) {
	t.Helper()
	args := []string{
		"template", "kueue", packaged("mlbatch"), "--namespace", namespace, "--kube-version", versions.LocalCluster.Kubernetes,
		"--values", filepath.Join(checkout, "setup/profiles/localcluster.yaml"),
	}
	for _, part := range []string{"appwrapper", "coscheduler", "training-operator", "kuberay-operator", "jobset", "leaderworkerset"} {
		args = append(args, "--set", part+".enabled=false")
	}
	return written(t, "kueue.yaml", []byte(clients[0].says(t, args...)))
}

// applied applies a file, and waits for the Deployments of its namespace.
func (s site) applied(t *testing.T, k kubectl, file, namespace string) {
	t.Helper()
	k.says(t, "apply", "--server-side", "--filename", file)
	k.says(t, "rollout", "status", "deployment", "--namespace", namespace, "--timeout", patience.For(4*time.Minute).String())
}

// asPlatform lets pods run where the platform's do, though they tolerate nothing. Elsewhere, nodes run no programs.
func (s site) asPlatform(t *testing.T, do func()) {
	t.Helper()
	taints := s.setNodes(t, true, nil)
	do()
	s.setNodes(t, false, taints)
}

// setNodes closes the simulated nodes and opens the real one, or restores them. It returns the taints of the real one.
func (s site) setNodes(t *testing.T, open bool, taints []corev1.Taint) (before []corev1.Taint) {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := s.objects.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		old := node.DeepCopy()
		if node.Labels["localcluster.mlbatch.dev/real"] == "true" {
			before, node.Spec.Taints = node.Spec.Taints, taints
		} else {
			node.Spec.Unschedulable = open
		}
		if err := s.objects.Patch(t.Context(), &node, ctrl.MergeFrom(old)); err != nil {
			t.Fatal(err)
		}
	}
	return before
}

func (s site) hasImage(t *testing.T, version string) {
	t.Helper()
	d, err := s.api.AppsV1().Deployments(system).Get(t.Context(), controller, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if image, want := d.Spec.Template.Spec.Containers[0].Image, registryFolder+"/controller:"+version; image != want {
		t.Errorf("the image is %s, want %s", image, want)
	}
}

// runs creates an AppWrapper, whose pod runs for a while, and waits for its phase.
func (s site) runs(t *testing.T, k kubectl, name, runFor, phase string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkout, "test/helm/testdata/appwrapper.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := written(t, name+".yaml", []byte(strings.NewReplacer("$NAME", name, "$FOR", runFor).Replace(string(text))))
	k.says(t, "apply", "--server-side", "--filename", file)
	aw := &unstructured.Unstructured{}
	aw.SetAPIVersion("workload.codeflare.dev/v1beta2")
	aw.SetKind("AppWrapper")
	s.eventually(t, name+" is not "+phase, func() bool {
		if err := s.objects.Get(t.Context(), ctrl.ObjectKey{Namespace: "default", Name: name}, aw); err != nil {
			t.Fatal(err)
		}
		is, _, _ := unstructured.NestedString(aw.Object, "status", "phase")
		return is == phase
	})
}

func objectsIn(t *testing.T, file string) (objects []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range documents(string(text)) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", file, err))
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// isServed says whether the kind of an object is.
func (s site) isServed(t *testing.T, o *unstructured.Unstructured) bool {
	t.Helper()
	resources, err := s.api.Discovery().ServerResourcesForGroupVersion(o.GetAPIVersion())
	if err != nil {
		return false
	}
	for _, r := range resources.APIResources {
		if r.Kind == o.GetKind() {
			return true
		}
	}
	return false
}

// eventually waits until something is true.
func (s site) eventually(t *testing.T, otherwise string, is func() bool) {
	t.Helper()
	err := patience.Poll(t.Context(), 200*time.Millisecond, func(context.Context) (bool, error) {
		return is(), nil
	})
	if err != nil {
		t.Fatal(errors.Join(errors.New(otherwise), err))
	}
}
