// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/mlbatch/mlbatch/setup"
)

// TestModulesMatch compares every go.mod of the repository with versions.yaml.
func TestModulesMatch(t *testing.T) {
	v, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	root := goMod(t, "..")
	if got := root.Module.Mod.Path; got != v.Module {
		t.Errorf("go.mod declares module %s, versions.yaml says %s", got, v.Module)
	}
	for _, want := range []struct{ folder, module, version string }{
		{"..", v.Platform.Kueue.Module, v.Platform.Kueue.Version},
		{"..", v.Platform.Coscheduler.Module, v.Platform.Coscheduler.Version},
		{"..", v.Platform.TrainingOperator.Module, v.Platform.TrainingOperator.Version},
		{"..", v.Platform.KuberayOperator.Module, v.Platform.KuberayOperator.Version},
		{"../tools/artifacts/components/kueue", v.Platform.Kueue.Module, v.Platform.Kueue.Version},
		{"../tools/artifacts/components/kueue", "sigs.k8s.io/kwok", v.LocalCluster.KWOK},
		{"../tools/artifacts/components/kubernetes", v.Platform.TrainingOperator.Module, v.Platform.TrainingOperator.Version},
		{"../tools/artifacts/components/kubernetes", v.Platform.KuberayOperator.Module, v.Platform.KuberayOperator.Version},
		{"..", v.Platform.JobSet.Module, v.Platform.JobSet.Version},
		{"..", v.Platform.LeaderWorkerSet.Module, v.Platform.LeaderWorkerSet.Version},
		{"../tools/artifacts/components/kueue", v.Platform.JobSet.Module, v.Platform.JobSet.Version},
		{"../tools/artifacts/components/kueue", v.Platform.LeaderWorkerSet.Module, v.Platform.LeaderWorkerSet.Version},
		{"../tools/artifacts/components/helm3", "helm.sh/helm/v3", v.Helm.Three},
		{"..", "helm.sh/helm/v3", v.Helm.Three},
		{"../tools/artifacts/components/helm4", "helm.sh/helm/v4", v.Helm.Four},
		{"../tools/artifacts/components/kubernetes", v.Platform.Coscheduler.Module, v.Platform.Coscheduler.Version},
		{"../tools/artifacts/components/kubernetes", "k8s.io/kubernetes", v.LocalCluster.Kubernetes},
		{"../tools/artifacts/components/etcd", "go.etcd.io/etcd/server/v3", v.LocalCluster.Etcd},
		{"../tools/artifacts/components/kueue", "github.com/coredns/coredns", v.LocalCluster.CoreDNS},
		{"../tools/artifacts/components/kubernetes", "github.com/containerd/containerd/v2", v.LocalCluster.Containerd},
		{"../tools/artifacts/components/kubernetes", "github.com/containernetworking/plugins", v.LocalCluster.CNI},
	} {
		if got := version(goMod(t, want.folder), want.module); got != want.version {
			t.Errorf("%s/go.mod resolves %s to %q, versions.yaml says %s", want.folder, want.module, got, want.version)
		}
	}
}

// TestEtcdUsesTheDependenciesOfKubernetes keeps the versions of shared dependencies equal:
// otherwise their packages are compiled twice.
func TestEtcdUsesTheDependenciesOfKubernetes(t *testing.T) {
	kubernetes := goMod(t, "../tools/artifacts/components/kubernetes")
	for _, r := range goMod(t, "../tools/artifacts/components/etcd").Require {
		if want := version(kubernetes, r.Mod.Path); want != "" && want != r.Mod.Version {
			t.Errorf("tools/artifacts/components/etcd/go.mod has %s, Kubernetes's has %s", r.Mod, want)
		}
	}
}

// TestImageTagsMatchTheirVersion detects an image that an upgrade forgot. It omits the
// training operator, whose images are tagged by commit.
func TestImageTagsMatchTheirVersion(t *testing.T) {
	v, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	for image, version := range map[string]string{
		v.Platform.Kueue.Image:                 v.Platform.Kueue.Version,
		v.Platform.Coscheduler.Image:           v.Platform.Coscheduler.Version,
		v.Platform.Coscheduler.ControllerImage: v.Platform.Coscheduler.Version,
		v.Platform.KuberayOperator.Image:       v.Platform.KuberayOperator.Version,
		v.Platform.JobSet.Image:                v.Platform.JobSet.Version,
		v.Platform.LeaderWorkerSet.Image:       v.Platform.LeaderWorkerSet.Version,
	} {
		if !strings.HasSuffix(image, ":"+version) {
			t.Errorf("image %s does not have the tag %s", image, version)
		}
	}
}

func goMod(t *testing.T, folder string) *modfile.File {
	t.Helper()
	path := filepath.Join(folder, "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.Parse(path, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// version is the version of a module in a go.mod: a replacement takes precedence.
func version(f *modfile.File, module string) string {
	for _, r := range f.Replace {
		if r.Old.Path == module {
			return r.New.Version
		}
	}
	for _, r := range f.Require {
		if r.Mod.Path == module {
			return r.Mod.Version
		}
	}
	return ""
}
