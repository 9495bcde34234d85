// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package flux_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
)

const (
	sourceController = "source-controller"
	helmController   = "helm-controller"
)

// flux has Flux's controllers that the samples need.
var flux = components.Component{
	Name: "flux", Folder: "flux", Binaries: []string{helmController, sourceController},
	Packages: []string{"github.com/fluxcd/" + helmController, "github.com/fluxcd/" + sourceController},
}

// startFlux installs Flux's CRDs and starts its controllers, outside the cluster.
func (s *site) startFlux() {
	s.Helper()
	cache, err := components.UserCache(s.checkout)
	if err != nil {
		s.Fatal(err)
	}
	programs, err := cache.Get(s.Context(), os.Stderr, flux)
	if err != nil {
		s.Fatal(err)
	}
	sandbox.Create(s.T, s.admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	for _, controller := range []string{sourceController, helmController} {
		s.createCRDs(controller)
	}
	artifacts := sandbox.FreeAddress(s.T)
	s.run(programs[sourceController], "--storage-path="+s.TempDir(), "--storage-addr="+artifacts, "--storage-adv-addr="+artifacts)
	s.run(programs[helmController])
}

// createCRDs creates those in the module of a controller.
func (s *site) createCRDs(controller string) {
	s.Helper()
	module, err := components.Source(s.Context(), components.Module(s.checkout, flux.Folder), "github.com/fluxcd/"+controller)
	if err != nil {
		s.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(module, "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		s.Fatalf("%s has no CRDs: %v", controller, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			s.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			s.Fatal(err)
		}
		sandbox.Create(s.T, s.admin, crd)
		s.await(crd.Name+" is served", func() error { return s.isServed(crd) })
	}
}

func (s *site) isServed(crd *apiextensionsv1.CustomResourceDefinition) error {
	if err := s.admin.Get(s.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		return err
	}
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return nil
		}
	}
	return errors.New("it is not established")
}

// run starts a controller, which ends with the test. If the test fails, its log is kept.
func (s *site) run(program string, args ...string) {
	s.Helper()
	name := filepath.Base(program)
	cmd := exec.Command(program,
		append(args, "--watch-all-namespaces", "--metrics-addr=0", "--health-addr=0", "--log-encoding=console")...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.KubeconfigPath(), "RUNTIME_NAMESPACE="+namespace)
	sandbox.Run(s.T, name, cmd)
}
