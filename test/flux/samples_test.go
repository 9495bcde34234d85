// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package flux_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/sandbox"
)

const (
	// namespace is where the samples are.
	namespace = "flux-system"
	releases  = "helm.toolkit.fluxcd.io/v2"
	// limit is for what may take Flux and the platform some minutes on a busy machine.
	limit = 8 * time.Minute
)

// samples returns the objects of samples/gitops/flux, changed as docs/gitops.md says: charts come
// from our registry, and values are those of the local cluster.
func (s *site) samples() (objects []*unstructured.Unstructured) {
	s.Helper()
	values := map[string]map[string]any{
		"mlbatch": s.values("setup/profiles/localcluster.yaml"), "teams": s.values("setup/teams/simulated.yaml"),
	}
	files, err := filepath.Glob(filepath.Join(s.checkout, "samples", "gitops", "flux", "*.yaml"))
	if err != nil {
		s.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			s.Fatal(err)
		}
		for _, document := range strings.Split(strings.ReplaceAll(string(text), "ghcr.io/mlbatch", s.registry), "\n---\n") {
			o := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(document), &o.Object); err != nil {
				s.Fatalf("%s: %v", file, err)
			}
			if o.GetKind() == "HelmRelease" {
				sandbox.Set(s.T, o, values[o.GetName()], "spec", "values")
			} else {
				sandbox.Set(s.T, o, true, "spec", "insecure") // the registry speaks HTTP
			}
			objects = append(objects, o)
		}
	}
	return objects
}

func (s *site) values(file string) map[string]any {
	s.Helper()
	return sandbox.Values(s.T, filepath.Join(s.checkout, file))
}

// commit applies objects as Flux's kustomize-controller does for what was committed.
func (s *site) commit(objects ...*unstructured.Unstructured) {
	s.Helper()
	for _, o := range objects {
		err := s.admin.Apply(s.Context(), client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("git"), client.ForceOwnership)
		if err != nil {
			s.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func (s *site) release(name string) *unstructured.Unstructured {
	s.Helper()
	return s.read(releases, "HelmRelease", namespace, name)
}

func (s *site) read(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	s.Helper()
	o, err := s.get(apiVersion, kind, namespace, name)
	if err != nil {
		s.Fatal(err)
	}
	return o
}

func (s *site) get(apiVersion, kind, namespace, name string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	return o, s.admin.Get(s.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
}

// untilReady waits until a release is ready in its newest generation, after Flux has looked at it
// once more.
func (s *site) untilReady(name string) {
	s.Helper()
	asked := time.Now().UTC().Format(time.RFC3339Nano)
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": %q}}}`, asked)
	if err := s.admin.Patch(s.Context(), s.release(name), client.RawPatch("application/merge-patch+json", patch)); err != nil {
		s.Fatal(err)
	}
	s.await(name+" is ready", func() error {
		o := s.release(name)
		handled, _, _ := unstructured.NestedString(o.Object, "status", "lastHandledReconcileAt")
		observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		if handled != asked || observed != o.GetGeneration() {
			return fmt.Errorf("Flux has not looked at it yet: %v", condition(o, "Ready"))
		}
		if ready := condition(o, "Ready"); ready["status"] != "True" {
			return fmt.Errorf("it is not: %v", ready)
		}
		return nil
	})
}

func condition(o *unstructured.Unstructured, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind {
			return c
		}
	}
	return nil
}

// history returns the Helm revisions of a release, newest first, as Flux tells them.
func history(o *unstructured.Unstructured) (revisions []string) {
	entries, _, _ := unstructured.NestedSlice(o.Object, "status", "history")
	for _, e := range entries {
		if e, ok := e.(map[string]any); ok {
			revisions = append(revisions, fmt.Sprintf("%v %v", e["version"], e["status"]))
		}
	}
	return revisions
}

func (s *site) await(what string, holds func() error) {
	s.Helper()
	if err := sandbox.Within(s.Context(), limit, holds); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

var errStillThere = errors.New("it is still there")
