// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package kustomize_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// old are the programs of the set-up. AppWrapper 0.30, which it has, cannot be compiled any more, because Kueue 0.8
// is not served. 1.0.4 has the same tasks, too: it makes the Workloads of AppWrappers, and Kueue 0.10 does not.
var old = components.Component{
	Name: "kueue-0.10", Folder: "kueue-0.10", Binaries: []string{"kueue", "cmd"},
	Packages: []string{"sigs.k8s.io/kueue/cmd/kueue", "github.com/project-codeflare/appwrapper/cmd"},
}

// images are those of the manifests in testdata, by program.
var images = map[string]string{"kueue": "registry.k8s.io/kueue/kueue:v0.10.2", "cmd": "quay.io/ibm/appwrapper:v1.0.4"}

func (s *site) buildOld() components.Binaries {
	s.Helper()
	cache, err := components.UserCache(s.checkout)
	s.Must(err)
	built, err := cache.Get(s.Context(), os.Stderr, old)
	s.Must(err)
	return built
}

// load lets the cluster have the programs of the platform, and the old ones.
func (s *site) load(programs components.Binaries) {
	s.Helper()
	s.Must(platform.Site{Cluster: s.cluster, Checkout: s.checkout, Progress: os.Stderr}.LoadImages(s.Context()))
	all := map[string]plan.Image{}
	s.Must(plan.Read(s.cluster.Dir(), plan.ImagesFile, &all))
	for program, image := range images {
		all[image] = plan.Image{File: programs[program], Path: "/manager"}
	}
	s.Must(s.cluster.RunInstead(all))
}

// setUp makes the set-up with these teams.
func (s *site) setUp(teams ...string) {
	s.Helper()
	s.apply("platform.yaml")
	for module, folder := range map[string]string{
		"sigs.k8s.io/scheduler-plugins":               "config/crd/bases",
		"github.com/kubeflow/training-operator":       "manifests/base/crds",
		"github.com/ray-project/kuberay/ray-operator": "config/crd/bases",
		"github.com/project-codeflare/appwrapper":     "config/crd/bases",
	} {
		s.define(filepath.Join(s.module(module), folder))
	}
	s.installScheduler()
	s.Must(os.CopyFS(filepath.Join(s.dir, "kueue"), os.DirFS("testdata/kueue")))
	s.Must(os.CopyFS(filepath.Join(s.dir, "kueue/config"), os.DirFS(filepath.Join(s.module("sigs.k8s.io/kueue"), "config"))))
	s.run("kubectl kustomize kueue | kubectl apply --server-side -f -")
	s.run("kubectl rollout status deployment --namespace mlbatch-system --timeout " + patience.For(3*time.Minute).String() + " kueue-controller-manager")
	s.apply("appwrapper.yaml")
	s.run("kubectl rollout status deployment --namespace mlbatch-system --timeout " + patience.For(3*time.Minute).String() + " appwrapper-controller-manager")
	s.apply("queues.yaml")
	for _, team := range teams {
		s.apply("team.yaml", "TEAM", team)
	}
}

// apply applies a file of testdata, until the webhooks let it.
func (s *site) apply(file string, replaced ...string) {
	s.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	s.Must(err)
	s.Must(os.WriteFile(filepath.Join(s.dir, "setup.yaml"), []byte(strings.NewReplacer(replaced...).Replace(string(text))), 0o600))
	s.Await(file+" is applied", func() error {
		_, err := s.try("kubectl apply --server-side -f setup.yaml")
		return err
	})
}

// define creates the CRDs in a folder.
func (s *site) define(folder string) {
	s.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_*.yaml"))
	if err != nil || len(files) == 0 {
		s.Fatalf("%s has no CRDs: %v", folder, err)
	}
	s.run("kubectl apply --server-side -f " + strings.Join(files, " -f "))
}

// module is the folder of a Go module, in the version of the old programs.
func (s *site) module(name string) string {
	s.Helper()
	folder := old.Folder
	if name == "sigs.k8s.io/scheduler-plugins" {
		folder = "coscheduler-0.30"
	}
	dir, err := components.Source(s.Context(), components.Module(s.checkout, folder), name)
	s.Must(err)
	return dir
}

// installScheduler installs the chart of scheduler-plugins 0.30 with the program of ours: the set-up's is older than
// all that are served.
func (s *site) installScheduler() {
	s.Helper()
	versions, err := s.cluster.Versions()
	s.Must(err)
	part, _ := parts.Named("coscheduler")
	onTheFirstNode := func(image parts.Image) map[string]any {
		return map[string]any{
			"image":        part.Reference(image, versions),
			"nodeSelector": map[string]any{"localcluster.mlbatch.dev/real": "true"},
			"tolerations":  []any{map[string]any{"key": "localcluster.mlbatch.dev/platform", "operator": "Exists"}},
		}
	}
	chart, err := loader.LoadDir(filepath.Join(s.module("sigs.k8s.io/scheduler-plugins"), "manifests/install/charts/as-a-second-scheduler"))
	s.Must(err)
	const release = "scheduler-plugins"
	config, err := access.Cluster{Kubeconfig: s.cluster.KubeconfigPath()}.Helm(release)
	s.Must(err)
	i := action.NewInstall(config)
	i.ReleaseName, i.Namespace, i.Wait, i.Timeout = release, release, true, sandbox.Limit
	_, err = i.RunWithContext(s.Context(), chart, map[string]any{
		"scheduler": onTheFirstNode(part.Images[0]), "controller": onTheFirstNode(part.Images[1]),
		"plugins": map[string]any{"enabled": []any{"Coscheduling"}},
		"pluginConfig": []any{
			map[string]any{"name": "Coscheduling", "args": map[string]any{"permitWaitingTimeSeconds": 300}},
			map[string]any{"name": "NodeResourcesFit", "args": map[string]any{"scoringStrategy": map[string]any{
				"type": "RequestedToCapacityRatio", "resources": []any{map[string]any{"name": "nvidia.com/gpu", "weight": 1}},
				"requestedToCapacityRatio": map[string]any{"shape": []any{
					map[string]any{"utilization": 0, "score": 0}, map[string]any{"utilization": 100, "score": 10},
				}},
			}}},
		},
	})
	if err != nil {
		s.Fatal(fmt.Errorf("cannot install the scheduler: %w", err))
	}
}
