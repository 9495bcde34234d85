// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/test/patience"
)

// applyManifestsOf2023 has a member, and for the sizes an administrator, apply them with kubectl, which
// validates strictly. They are those that runplan plans, too.
func (s *story) applyManifestsOf2023(ctx context.Context) []*unstructured.Unstructured {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "controller", "runplan", "testdata", "manifests-of-2023.in.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	data := s.t.TempDir()
	if err := os.Chmod(data, 0o755); err != nil { //nolint:gosec // Its reader is another user.
		s.t.Fatal(err)
	}
	s.claim(ctx, "glue-small", data)
	all := s.objectsIn(s.of2023(string(text), s.serveGit(ctx)))
	var sizes, others []*unstructured.Unstructured
	for _, o := range all {
		if s.created = append(s.created, o); o.GetKind() == v1alpha1.RunSizeConfigurationKind {
			sizes = append(sizes, o)
		} else {
			others = append(others, o)
		}
	}
	s.kubectlApplies(ctx, sizes)
	s.kubectlApplies(ctx, others, "--as=ruth", "--as-group=system:authenticated")
	return all
}

// of2023 is the text with what is here: images and where the program is in them, a git server, and sizes
// of its administrator.
func (s *story) of2023(text, git string) string {
	return strings.NewReplacer(
		"namespace: blue", "namespace: "+s.namespace,
		"busybox:1.37", here.Training.Name, "digits:1", here.Training.Name, "rayproject/ray:2.46.0", here.Ray.Name,
		"python3 -u train.py", "python3 -u /workspace/train.py", "python3 tune.py", "bash hello.sh",
		"https://github.com/org/repo/tree/main/tune", git+"/org/repo/tree/feature/x/src",
		"      cpu: 2\n      memory: 8Gi\n      gpu: 1\n", "      cpu: 250m\n      memory: 600Mi\n      gpu: 0\n",
	).Replace(text)
}

// kubectlApplies applies manifests with kubectl.
func (s *story) kubectlApplies(ctx context.Context, objects []*unstructured.Unstructured, who ...string) {
	s.t.Helper()
	var manifests bytes.Buffer
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			s.t.Fatal(err)
		}
		manifests.WriteString("---\n" + string(text))
	}
	ctx, cancel := patience.Context(ctx)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(site.Cluster.Dir(), "bin", "kubectl"), append(who, "apply", "--validate=strict", "-f", "-")...) //nolint:gosec // It is the cluster's.
	command.Env = append(os.Environ(), "KUBECONFIG="+site.Cluster.KubeconfigPath())
	command.Stdin = &manifests
	if said, err := command.CombinedOutput(); err != nil {
		s.t.Fatalf("kubectl apply: %v\n%s", err, said)
	}
}
