// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package argocd_test

import (
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
)

// argocd is Argo CD's program, which acts as the one whose name it is given, and a Redis.
var argocd = components.Component{
	Name: "argocd", Folder: "argocd", Binaries: []string{"cmd", "redis"},
	Packages: []string{"github.com/argoproj/argo-cd/v3/cmd", "./redis"},
}

// build builds Argo CD and the Helm that it calls.
func (s *site) build() {
	s.Helper()
	cache, err := components.UserCache(s.checkout)
	if err != nil {
		s.Fatal(err)
	}
	helm, _ := components.Helm()
	if s.programs, err = cache.Get(s.Context(), os.Stderr, argocd, helm); err != nil {
		s.Fatal(err)
	}
}

// install creates what Argo CD's own manifests have for these programs. The project is one that
// its API server would create.
func (s *site) install() {
	s.Helper()
	s.apply(object("v1", "Namespace", "", namespace))
	for _, files := range []string{
		"crds/*-crd.yaml", "base/config/argocd-*.yaml", "base/application-controller-roles/argocd-*.yaml", "cluster-rbac/application-controller/argocd-*.yaml",
	} {
		s.apply(s.manifests(files)...)
	}
	project := object(applications, "AppProject", namespace, "default")
	project.Object["spec"] = map[string]any{
		"sourceRepos":              []any{"*"},
		"destinations":             []any{map[string]any{"server": "*", "namespace": "*"}},
		"clusterResourceWhitelist": []any{map[string]any{"group": "*", "kind": "*"}},
	}
	s.await("Argo CD's kinds are served", func() error { return s.tryToApply(project) })
}

// manifests reads files of Argo CD's module, whose objects are for its namespace.
func (s *site) manifests(pattern string) (objects []*unstructured.Unstructured) {
	s.Helper()
	module, err := components.Source(s.Context(), components.Module(s.checkout, argocd.Folder), "github.com/argoproj/argo-cd/v3")
	if err != nil {
		s.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(module, "manifests", pattern))
	if err != nil || len(files) == 0 {
		s.Fatalf("Argo CD has no manifests %s: %v", pattern, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			s.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &o.Object); err != nil {
			s.Fatalf("%s: %v", file, err)
		}
		if !strings.HasPrefix(o.GetKind(), "Cluster") && !strings.HasPrefix(o.GetKind(), "Custom") {
			o.SetNamespace(namespace)
		}
		objects = append(objects, o)
	}
	return objects
}

// start starts Argo CD's programs outside the cluster, with the rights that they have inside.
func (s *site) start() {
	s.Helper()
	redis, repositories, metrics := sandbox.FreeAddress(s.T), sandbox.FreeAddress(s.T), sandbox.FreeAddress(s.T)
	s.environment = append(os.Environ(),
		"KUBECONFIG="+s.kubeconfig(), "ARGOCD_FAKE_IN_CLUSTER=true", "HOME="+s.TempDir(), "TMPDIR="+s.TempDir(),
		"PATH="+filepath.Dir(s.programs["helm"])+":"+os.Getenv("PATH"),
		"SSL_CERT_FILE="+s.authority(), "ARGOCD_GPG_ENABLED=false", "ARGOCD_ASK_PASS_SOCK="+filepath.Join(s.TempDir(), "ask"),
	)
	s.run("redis", s.programs["redis"], redis)
	s.run("argocd-repo-server", s.programs["cmd"], "--logformat=text", "--redis="+redis,
		"--address=127.0.0.1", "--port="+port(repositories), "--metrics-address=127.0.0.1", "--metrics-port="+port(metrics))
	s.listens(redis)
	s.listens(repositories)
	s.run("argocd-application-controller", s.programs["cmd"], "--logformat=text", "--redis="+redis,
		"--repo-server="+repositories, "--metrics-port="+port(sandbox.FreeAddress(s.T)))
}

// kubeconfig writes one for the service account of the application controller.
func (s *site) kubeconfig() (file string) {
	s.Helper()
	config, err := clientcmd.LoadFromFile(s.cluster.KubeconfigPath())
	if err != nil {
		s.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:" + namespace + ":argocd-application-controller"
	}
	for _, c := range config.Contexts {
		c.Namespace = namespace
	}
	file = filepath.Join(s.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		s.Fatal(err)
	}
	return file
}

// authority writes the certificate of the registry.
func (s *site) authority() (file string) {
	s.Helper()
	file = filepath.Join(s.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.charts.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		s.Fatal(err)
	}
	return file
}

// run starts a program, which ends with the test. If the test fails, its log is kept.
func (s *site) run(name, program string, args ...string) {
	s.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(s.environment, "ARGOCD_BINARY_NAME="+name)
	sandbox.Run(s.T, name, cmd)
}

func (s *site) listens(address string) {
	s.Helper()
	s.await(address+" is served", func() error {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			err = connection.Close()
		}
		return err
	})
}

func port(address string) string {
	_, port, _ := strings.Cut(address, ":")
	return port
}
