// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// images returns the images that the pods of our chart run, including those of parts that are
// disabled by default.
func (b builder) images(chart string) []string {
	if row, known := parts.Named(chart); known {
		return row.References(b.versions)
	}
	if chart != "mlbatch" {
		return nil
	}
	all := slices.Clone(parts.All) // Kueue first, the rest by name
	slices.SortFunc(all[1:], func(a, b parts.Part) int { return strings.Compare(a.Name, b.Name) })
	return parts.References(b.versions, all...)
}

// changes returns what the changelog says of this version. The umbrella has them for all of its parts.
func (b builder) changes(chart string) ([]change, error) {
	if chart != "mlbatch" {
		return nil, nil
	}
	text, err := readText(filepath.Join(b.root, "CHANGELOG.md"))
	return changesOf(string(text), b.versions.Version), err
}

// forArtifactHub adds the annotations that Artifact Hub reads and Chart.yaml does not have:
// license, category, links, images, changes, and whether it is a prerelease.
func (b builder) forArtifactHub(m *metadata) error {
	type named struct {
		Name  string `json:"name"`
		URL   string `json:"url,omitempty"`
		Image string `json:"image,omitempty"`
	}
	home := "https://" + b.versions.Module
	links := []named{{Name: "documentation", URL: home + "/tree/main/docs"}, {Name: "support", URL: home + "/issues"}}
	var images []named
	for _, image := range b.images(m.Name) {
		name, _, _ := strings.Cut(path.Base(image), ":")
		images = append(images, named{Name: name, Image: image})
	}
	changes, err := b.changes(m.Name)
	if err != nil {
		return err
	}
	m.Icon = home + "/raw/main/docs/images/icon.svg"
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations["artifacthub.io/license"] = "Apache-2.0"
	m.Annotations["artifacthub.io/category"] = "ai-machine-learning"
	m.Annotations["artifacthub.io/prerelease"] = fmt.Sprint(strings.Contains(b.versions.Version, "-"))
	return errors.Join(annotate(m, "links", links), annotate(m, "images", images), annotate(m, "changes", changes))
}

// annotate adds a list as an annotation, unless it is empty.
func annotate[T any](m *metadata, name string, list []T) error {
	if len(list) == 0 {
		return nil
	}
	text, err := yaml.Marshal(list)
	if err != nil {
		return fmt.Errorf("cannot encode the %s of chart %s: %w", name, m.Name, err)
	}
	m.Annotations["artifacthub.io/"+name] = string(text)
	return nil
}
