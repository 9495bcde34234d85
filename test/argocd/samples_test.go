// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package argocd_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/sandbox"
)

const (
	// namespace is where the samples are.
	namespace    = "argocd"
	applications = "argoproj.io/v1alpha1"
	// folder is where apps.yaml looks for the other samples in the git repository.
	folder = "clusters/production/mlbatch"
	// limit is for what may take Argo CD and the platform some minutes on a busy machine.
	limit = 8 * time.Minute
)

// sample returns the object of a file in samples/gitops/argocd, changed as docs/gitops.md says:
// charts come from our registry, and values are those of the local cluster.
func (s *site) sample(file string) *unstructured.Unstructured {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.checkout, "samples", "gitops", "argocd", file))
	if err != nil {
		s.Fatal(err)
	}
	changed := strings.NewReplacer(
		"ghcr.io/mlbatch", s.charts.Listener.Addr().String(),
		"https://git.example.com/platform/gitops.git", "file://"+s.repository,
	).Replace(string(text))
	o := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(changed), &o.Object); err != nil {
		s.Fatalf("%s: %v", file, err)
	}
	values := map[string]string{"mlbatch": "setup/profiles/localcluster.yaml", "teams": "setup/teams/simulated.yaml"}
	if values := values[o.GetName()]; values != "" {
		sandbox.Set(s.T, o, any(s.values(values)), "spec", "source", "helm", "valuesObject")
	}
	return o
}

func (s *site) values(file string) map[string]any {
	s.Helper()
	return sandbox.Values(s.T, filepath.Join(s.checkout, file))
}

// write writes a file of the repository, which commit commits.
func (s *site) write(file string, o *unstructured.Unstructured) {
	s.Helper()
	path := filepath.Join(s.repository, folder, file)
	text, err := yaml.Marshal(o.Object)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) commit(message string) {
	s.Helper()
	s.git("add", "--all")
	s.git("commit", "--quiet", "--message="+message)
}

func (s *site) git(args ...string) {
	s.Helper()
	all := append([]string{"-C", s.repository, "-c", "user.name=admin", "-c", "user.email=admin@example.com"}, args...)
	if out, err := exec.CommandContext(s.Context(), "git", all...).CombinedOutput(); err != nil {
		s.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// apply does what 'kubectl apply --server-side' does.
func (s *site) apply(objects ...*unstructured.Unstructured) {
	s.Helper()
	for _, o := range objects {
		if err := s.tryToApply(o); err != nil {
			s.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func (s *site) tryToApply(o *unstructured.Unstructured) error {
	return s.admin.Apply(s.Context(), client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("kubectl"), client.ForceOwnership)
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func (s *site) application(name string) *unstructured.Unstructured {
	s.Helper()
	return s.read(applications, "Application", namespace, name)
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
	o := object(apiVersion, kind, namespace, name)
	return o, s.admin.Get(s.Context(), client.ObjectKeyFromObject(o), o)
}

// untilSettled waits until an Application is as in git and works. Argo CD is asked to look each
// time: else it tells of health that has changed some minutes late.
func (s *site) untilSettled(name string) {
	s.Helper()
	s.await(name+" is settled", func() error {
		s.look(name, "hard")
		return unsettled(s.application(name))
	})
}

// look asks Argo CD to compare an Application with its source, and waits until it has.
func (s *site) look(name, how string) {
	s.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}}`, refresh, how))
	if err := s.admin.Patch(s.Context(), s.application(name), patch); err != nil {
		s.Fatal(err)
	}
	s.await("Argo CD looks at "+name, func() error {
		if _, asked := s.application(name).GetAnnotations()[refresh]; asked {
			return errors.New("it has not looked yet")
		}
		return nil
	})
}

const refresh = "argocd.argoproj.io/refresh"

// unsettled says what is missing.
func unsettled(o *unstructured.Unstructured) error {
	got := [3]string{said(o, "sync", "status"), said(o, "health", "status"), said(o, "operationState", "phase")}
	if got == [3]string{"Synced", "Healthy", "Succeeded"} {
		return nil
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	return fmt.Errorf("it is %q: %s %v", got, said(o, "operationState", "message"), conditions)
}

func said(o *unstructured.Unstructured, fields ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, append([]string{"status"}, fields...)...)
	return text
}

// retries counts how often the last synchronisation was tried again.
func retries(o *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, "status", "operationState", "retryCount")
	return n
}

// synchronisations counts those that changed something, or tried to.
func synchronisations(o *unstructured.Unstructured) int {
	history, _, _ := unstructured.NestedSlice(o.Object, "status", "history")
	return len(history)
}

func (s *site) await(what string, holds func() error) {
	s.Helper()
	if err := sandbox.Within(s.Context(), limit, holds); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// untilGone waits until there is no such object.
func (s *site) untilGone(apiVersion, kind, namespace, name string) {
	s.Helper()
	s.await(kind+" "+name+" is gone", func() error {
		_, err := s.get(apiVersion, kind, namespace, name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is still there"), err)
	})
}
