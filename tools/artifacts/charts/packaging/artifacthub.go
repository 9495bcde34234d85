// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// images are those that the pods of a chart of ours run, parts that are off by default
// among them.
func (b builder) images(chart string) []string {
	p := b.versions.Platform
	all := map[string][]string{
		"appwrapper":        {b.versions.ControllerImage()},
		"coscheduler":       {p.Coscheduler.Image, p.Coscheduler.ControllerImage},
		"training-operator": {p.TrainingOperator.Image, p.TrainingOperator.InitImage},
		"kuberay-operator":  {p.KuberayOperator.Image},
		"jobset":            {p.JobSet.Image},
		"leaderworkerset":   {p.LeaderWorkerSet.Image},
	}
	if chart != "mlbatch" {
		return all[chart]
	}
	images := []string{p.Kueue.Image}
	for _, part := range sortedKeys(all) {
		images = append(images, all[part]...)
	}
	return images
}

// forArtifactHub adds what Artifact Hub shows of a chart and the chart's own file does
// not know: links, images, and whether it is a release.
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
