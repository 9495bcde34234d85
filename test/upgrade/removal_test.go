// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package upgrade_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

var leaving = client.ObjectKey{Namespace: "red", Name: "leaving"}

// removeForNow uninstalls both releases while work runs. The work must continue.
func (s *site) removeForNow() {
	s.Helper()
	gone := s.submit("leaving", "leaving")
	s.untilPhase(leaving, workload.AppWrapperRunning)
	s.must(s.quota.End(s.Context())) // its watches end with Kueue's CRDs, whose CA bundle changes
	kept := s.definitions()
	w := s.witness()
	s.uninstall("teams")
	s.uninstall("mlbatch")
	w.sawNothing("the platform was removed")
	s.wantNobody()
	if diff := cmp.Diff(kept, s.definitions()); diff != "" {
		s.Errorf("CustomResourceDefinitions (-before +after):\n%s", diff)
	}
	s.must(s.admin.Delete(s.Context(), gone))
}

// wantNobody checks that nothing of the platform is left that could act on objects or refuse
// them, and that no object is stuck in deletion.
func (s *site) wantNobody() {
	s.Helper()
	s.until("no pod of the platform is left", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := s.admin.List(ctx, pods, client.InNamespace(platform.Namespace)); err != nil || len(pods.Items) == 0 {
			return err
		}
		return fmt.Errorf("%d are", len(pods.Items))
	})
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		webhooks := listOf("admissionregistration.k8s.io/v1", kind)
		s.must(s.admin.List(s.Context(), webhooks))
		for _, w := range webhooks.Items {
			s.Errorf("%s %s is left", kind, w.GetName())
		}
	}
	services := listOf("apiregistration.k8s.io/v1", "APIService")
	s.must(s.admin.List(s.Context(), services))
	for _, service := range services.Items {
		if dig(service.Object, []string{"spec", "service"}) != nil {
			s.Errorf("APIService %s is left", service.GetName())
		}
	}
}

// reinstall installs the platform again, and checks that it manages what still exists,
// including what was deleted in between.
func (s *site) reinstall() {
	s.Helper()
	w := s.witness()
	s.applyNext("mlbatch", nextPlatform...)
	s.applyNext("teams", moreForGreen)
	s.untilGone(leaving)
	s.everybodyIsAtWork("again")
	w.sawNothing("the platform was installed again")
	s.untilPhase(client.ObjectKey{Namespace: "blue", Name: "held"}, workload.AppWrapperSuspended)
	s.wantGPUs("12")
}

// wantGPUs checks that the queue that was kept has the quota of the new teams' file.
func (s *site) wantGPUs(want string) {
	s.Helper()
	queue := &kueue.ClusterQueue{}
	s.must(s.admin.Get(s.Context(), client.ObjectKey{Name: "green-cluster-queue"}, queue))
	for _, r := range queue.Spec.ResourceGroups[0].Flavors[0].Resources {
		if got := r.NominalQuota.String(); r.Name == "nvidia.com/gpu" && got != want {
			s.Errorf("the queue that was kept has %s GPUs, not %s", got, want)
		}
	}
}

// removeForGood runs the commands of docs/remove.md.
func (s *site) removeForGood() {
	s.Helper()
	for _, line := range s.documented("remove.md", "## For good") {
		if release, ours := strings.CutPrefix(line, "helm uninstall "); ours {
			name, _, _ := strings.Cut(release, " ")
			s.uninstall(name)
			continue
		}
		s.timed(line, func() { s.shell(line) })
	}
	if left := s.definitions(); len(left) > 0 {
		s.Errorf("CustomResourceDefinitions are left: %v", slices.Sorted(maps.Keys(left)))
	}
	s.wantNobody()
	namespaces := &corev1.NamespaceList{}
	s.must(s.admin.List(s.Context(), namespaces))
	for _, ns := range namespaces.Items {
		if ns.Name == platform.Namespace || slices.Contains([]string{"blue", "green", "red"}, ns.Name) {
			s.Errorf("namespace %s is left", ns.Name)
		}
	}
}

// documented returns the commands of the block that follows these words in a page of docs.
func (s *site) documented(page, words string) []string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.Checkout, "docs", page))
	s.must(err)
	_, after, found := strings.Cut(string(text), words)
	_, after, _ = strings.Cut(after, "```sh\n")
	block, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		s.Fatalf("docs/%s has no commands after %q", page, words)
	}
	return strings.Split(strings.TrimSpace(strings.ReplaceAll(block, "\\\n", "")), "\n")
}

// shell runs a command as an administrator does.
func (s *site) shell(line string) {
	s.Helper()
	ctx, cancel := patience.Context(s.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", line)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Cluster.KubeconfigPath(), "PATH="+filepath.Dir(s.Cluster.KubectlPath())+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("%s: %v\n%s", line, err, out)
	}
}
