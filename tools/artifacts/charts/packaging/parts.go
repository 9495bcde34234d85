// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"context"
	"errors"
	"path"
	"path/filepath"

	"github.com/mlbatch/mlbatch/setup"
)

// builder knows where the inputs are; it has one method a chart.
type builder struct {
	ctx      context.Context
	root     string
	versions setup.Versions
	tokens   map[string]string
}

// The CRDs that each operator's controller watches, and no others: the
// PodGroup controller also watches ElasticQuotas and stops without them, while
// KubeRay leaves RayCronJobs alone unless a feature gate is on.
var (
	coschedulerCRDs = []string{
		"config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
		"config/crd/bases/scheduling.x-k8s.io_elasticquotas.yaml",
	}
	trainingCRDs = []string{
		"manifests/base/crds/kubeflow.org_jaxjobs.yaml",
		"manifests/base/crds/kubeflow.org_mpijobs.yaml",
		"manifests/base/crds/kubeflow.org_paddlejobs.yaml",
		"manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
		"manifests/base/crds/kubeflow.org_tfjobs.yaml",
		"manifests/base/crds/kubeflow.org_xgboostjobs.yaml",
	}
	kuberayCRDs = []string{
		"config/crd/bases/ray.io_rayclusters.yaml",
		"config/crd/bases/ray.io_rayjobs.yaml",
		"config/crd/bases/ray.io_rayservices.yaml",
	}
)

// platform is the umbrella chart with all its parts inside.
func (b builder) platform() (Chart, error) {
	chart, err := b.ours("charts/mlbatch", b.versions.Version)
	if err != nil {
		return Chart{}, err
	}
	for _, build := range []func() (Chart, error){
		b.appwrapper, b.kueue, b.coscheduler, b.trainingOperator, b.kuberayOperator,
		b.jobset, b.leaderWorkerSet,
	} {
		part, err := build()
		if err != nil {
			return Chart{}, err
		}
		if err := chart.vendor(part); err != nil {
			return Chart{}, err
		}
		if err := chart.knowKeysOf(part); err != nil {
			return Chart{}, err
		}
	}
	return chart, nil
}

func (b builder) appwrapper() (Chart, error) {
	return b.ours("charts/appwrapper", b.versions.Version)
}

func (b builder) teams() (Chart, error) {
	return b.ours("charts/teams", b.versions.Version)
}

// generator is rendered without a cluster, hence for no version of one. Its
// appVersion is the API that it renders.
func (b builder) generator() (Chart, error) {
	chart, err := b.ours("tools/pytorchjob-generator/chart", "v1beta2")
	if err != nil {
		return Chart{}, err
	}
	return newChart(chart.Files, func(m *metadata) { m.KubeVersion = "" })
}

func (b builder) coscheduler() (Chart, error) {
	upstream := b.versions.Platform.Coscheduler
	return b.thin("charts/coscheduler", upstream, coschedulerCRDs, nil)
}

func (b builder) trainingOperator() (Chart, error) {
	upstream := b.versions.Platform.TrainingOperator
	return b.thin("charts/training-operator", upstream, trainingCRDs, map[string]string{
		"files/role.yaml":     "manifests/base/rbac/role.yaml",
		"files/webhooks.yaml": "manifests/base/webhook/manifests.yaml",
	})
}

func (b builder) kuberayOperator() (Chart, error) {
	upstream := b.versions.Platform.KuberayOperator
	return b.thin("charts/kuberay-operator", upstream, kuberayCRDs, map[string]string{
		"files/role.yaml": "config/rbac/role.yaml",
	})
}

// ours reads a chart of this repository and stamps what versions.yaml says into it.
func (b builder) ours(dir, appVersion string) (Chart, error) {
	files, err := readTree(filepath.Join(b.root, dir))
	if err != nil {
		return Chart{}, err
	}
	if err := stamp(files, b.tokens); err != nil {
		return Chart{}, err
	}
	var failed error
	chart, err := newChart(files, func(m *metadata) {
		failed = b.forArtifactHub(m)
		m.Version = b.versions.Version
		m.AppVersion = appVersion
		m.KubeVersion = b.versions.Supported.Kubernetes
		m.Home = "https://" + b.versions.Module
		if m.Sources == nil {
			m.Sources = []string{m.Home}
		}
	})
	return chart, errors.Join(err, failed)
}

// thin is one of our charts around facts of an upstream module: CRDs and
// copies (our path → path in the module).
func (b builder) thin(dir string, upstream setup.Operator, crds []string, copies map[string]string) (Chart, error) {
	chart, err := b.ours(dir, upstream.Version)
	if err != nil {
		return Chart{}, err
	}
	module, err := b.moduleDir(upstream.Module)
	if err != nil {
		return Chart{}, err
	}
	for _, file := range crds {
		crd, err := slimCRD(filepath.Join(module, file))
		if err != nil {
			return Chart{}, err
		}
		chart.Files["files/crds/"+path.Base(file)] = crd
	}
	for ours, theirs := range copies {
		text, err := readText(filepath.Join(module, theirs))
		if err != nil {
			return Chart{}, err
		}
		chart.Files[ours] = text
	}
	return chart, nil
}
