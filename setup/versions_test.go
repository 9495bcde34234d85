// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
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
	type pin struct{ folder, module, version string }
	pins := []pin{
		{"../tools/artifacts/components/kueue", "sigs.k8s.io/kwok", v.LocalCluster.KWOK},
		{"../tools/artifacts/components/helm3", "helm.sh/helm/v3", v.Helm.Three},
		{"..", "helm.sh/helm/v3", v.Helm.Three},
		{"../tools/artifacts/components/helm4", "helm.sh/helm/v4", v.Helm.Four},
		{"../tools/artifacts/components/kubernetes", "k8s.io/kubernetes", v.LocalCluster.Kubernetes},
		{"../tools/artifacts/components/etcd", "go.etcd.io/etcd/server/v3", v.LocalCluster.Etcd},
		{"../tools/artifacts/components/kueue", "github.com/coredns/coredns", v.LocalCluster.CoreDNS},
		{"../tools/artifacts/components/kubernetes", "github.com/containerd/containerd/v2", v.LocalCluster.Containerd},
		{"../tools/artifacts/components/kubernetes", "github.com/containernetworking/plugins", v.LocalCluster.CNI},
	}
	for _, p := range parts.All {
		if o := p.Operator(v); !p.Own {
			pins = append(pins, pin{"..", o.Module, o.Version}, pin{"../tools/artifacts/components/" + p.Component.Module, o.Module, o.Version})
		}
	}
	for minor, other := range v.LocalCluster.OtherKubernetes {
		pins = append(pins, pin{"../tools/artifacts/components/kubernetes-" + minor, "k8s.io/kubernetes", other.Kubernetes})
		if other.Coscheduler != "" {
			folder := "../tools/artifacts/components/coscheduler-" + setup.Minor(other.Coscheduler)
			pins = append(pins, pin{folder, "sigs.k8s.io/scheduler-plugins", other.Coscheduler})
		}
	}
	for _, want := range pins {
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
	for name, o := range v.Platform {
		images := []string{o.Image, o.ControllerImage}
		if name == "training-operator" {
			images = nil
		}
		for _, image := range images {
			if image != "" && !strings.HasSuffix(image, ":"+o.Version) {
				t.Errorf("image %s does not carry version %s", image, o.Version)
			}
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
