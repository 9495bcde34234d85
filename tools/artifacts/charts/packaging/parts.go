// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// builder has the inputs, and a method for each chart.
type builder struct {
	ctx      context.Context
	root     string
	versions setup.Versions
	tokens   map[string]string
}

// platform returns the umbrella chart, which contains the charts of all parts.
func (b builder) platform() (Chart, error) {
	chart, err := b.ours("charts/mlbatch", b.versions.Version)
	if err != nil {
		return Chart{}, err
	}
	for _, row := range parts.All {
		part, err := b.part(row)
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

// sharedFile has the templates that the charts of all parts use.
const sharedFile = "charts/shared/_platform.tpl"

// part returns the chart of a part.
func (b builder) part(row parts.Part) (Chart, error) {
	build := b.theirs
	switch {
	case row.Own:
		build = b.own
	case row.Chart.Folder != "":
		build = b.thin
	}
	chart, err := build(row)
	if err != nil {
		return Chart{}, err
	}
	chart.Files["templates/"+path.Base(sharedFile)], err = readText(filepath.Join(b.root, sharedFile))
	return chart, err
}

// own returns the chart of a controller of ours, with CRDs of the checkout.
func (b builder) own(row parts.Part) (Chart, error) {
	chart, err := b.ours(row.Chart.Folder, b.versions.Version)
	if err != nil {
		return Chart{}, err
	}
	for _, file := range row.Chart.CRDs {
		if chart.Files["files/crds/"+path.Base(file)], err = readText(filepath.Join(b.root, file)); err != nil {
			return Chart{}, err
		}
	}
	return chart, nil
}

// appwrapper returns the chart of our controller.
func (b builder) appwrapper() (Chart, error) {
	row, _ := parts.Named("appwrapper")
	return b.part(row)
}

func (b builder) teams() (Chart, error) {
	return b.ours("charts/teams", b.versions.Version)
}

// generator returns the chart of the generator. It has no kubeVersion, because it is rendered
// without a cluster. Its appVersion is the version of the API that it renders.
func (b builder) generator() (Chart, error) {
	chart, err := b.ours("tools/pytorchjob-generator/chart", "v1beta2")
	if err != nil {
		return Chart{}, err
	}
	return newChart(chart.Files, func(m *metadata) { m.KubeVersion = "" })
}

// ours reads a chart of this repository, and fills in the values of versions.yaml.
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

// thin returns our chart of an upstream operator, with CRDs and other files of the operator's module.
func (b builder) thin(row parts.Part) (Chart, error) {
	upstream := row.Operator(b.versions)
	chart, err := b.ours(row.Chart.Folder, upstream.Version)
	if err != nil {
		return Chart{}, err
	}
	module, err := b.moduleDir(upstream.Module)
	if err != nil {
		return Chart{}, err
	}
	for _, file := range row.Chart.CRDs {
		crd, err := slimCRD(filepath.Join(module, file))
		if err != nil {
			return Chart{}, err
		}
		chart.Files["files/crds/"+path.Base(file)] = crd
	}
	for ours, theirs := range row.Chart.Copies {
		text, err := readText(filepath.Join(module, theirs))
		if err != nil {
			return Chart{}, err
		}
		chart.Files[ours] = text
	}
	if upstream.OtherKubernetes != nil {
		chart.Files["files/tags.yaml"], err = b.tags(row, upstream)
	}
	return chart, err
}

// tags returns the tags of a part's images by the minor version of Kubernetes, and the default.
func (b builder) tags(row parts.Part, upstream setup.Operator) ([]byte, error) {
	all := map[string]map[string]string{}
	for _, i := range row.Images {
		all[i.Token] = map[string]string{"default": b.tokens[i.Token+".tag"]}
		maps.Copy(all[i.Token], upstream.OtherKubernetes)
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the tags of %s: %w", row.Name, err)
	}
	return text, nil
}
