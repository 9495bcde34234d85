// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"fmt"
	"path"
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

// forArtifactHub adds the annotations that Artifact Hub reads and Chart.yaml does not have:
// license, category, links, images, and whether it is a prerelease.
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
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations["artifacthub.io/license"] = "Apache-2.0"
	m.Annotations["artifacthub.io/category"] = "ai-machine-learning"
	m.Annotations["artifacthub.io/prerelease"] = fmt.Sprint(strings.Contains(b.versions.Version, "-"))
	for name, list := range map[string][]named{"links": links, "images": images} {
		if len(list) == 0 {
			continue
		}
		text, err := yaml.Marshal(list)
		if err != nil {
			return fmt.Errorf("cannot encode the %s of chart %s: %w", name, m.Name, err)
		}
		m.Annotations["artifacthub.io/"+name] = string(text)
	}
	return nil
}
