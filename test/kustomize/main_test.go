// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package kustomize_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// site is a cluster, and the folder in which an administrator works.
type site struct {
	sandbox.Story
	checkout, dir string
	cluster       *localcluster.Cluster
	admin         client.Client
	// alice is a member of all teams.
	alice client.Client
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Story: sandbox.Story{T: t}, dir: t.TempDir()}
	var err error
	s.checkout, err = localcluster.FindCheckout(".")
	s.Must(err)
	sandbox.Command(t, s.checkout, s.dir)
	programs := s.buildOld()
	s.admin, s.cluster = sandbox.Bare(t, "kustomize", 26681, 6)
	t.Cleanup(s.explain)
	s.load(programs)
	config, err := s.cluster.RESTConfig()
	s.Must(err)
	config.Impersonate = rest.ImpersonationConfig{UserName: "alice", Groups: []string{"system:authenticated"}}
	s.alice, err = client.New(config, client.Options{Scheme: scheme.Scheme})
	s.Must(err)
	return s
}

// explain logs what helps to find out why the test has failed.
func (s *site) explain() {
	if !s.Failed() {
		return
	}
	for _, line := range []string{
		"kubectl get events --all-namespaces --sort-by .metadata.creationTimestamp", "kubectl get nodes --output wide",
		"kubectl get clusterqueues,workloads,appwrappers --all-namespaces --output yaml",
	} {
		cmd := exec.Command("bash", "-c", line)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.KubeconfigPath(), "PATH="+filepath.Dir(s.cluster.KubectlPath())+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		s.Logf("$ %s\n%s%v", line, out, err)
	}
}

// run runs a line of a shell that must succeed, and returns what it prints.
func (s *site) run(line string) string {
	s.Helper()
	out, err := s.try(line)
	s.Must(err)
	return out
}

func (s *site) try(line string) (string, error) {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), "bash", "-euo", "pipefail", "-c", line)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.KubeconfigPath(),
		"PATH="+strings.Join([]string{s.dir, filepath.Dir(s.cluster.KubectlPath()), os.Getenv("PATH")}, ":"))
	var out, progress bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &progress
	err := cmd.Run()
	s.Logf("$ %s\n%s%s", line, progress.String(), out.String())
	if err != nil {
		err = errors.Join(err, errors.New(progress.String()))
	}
	return out.String(), err
}
