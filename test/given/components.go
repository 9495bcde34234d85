// SPDX-License-Identifier: Apache-2.0

package given

import (
	"encoding/json"
	"fmt"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// ComponentBuilder builds a component around a resource.
type ComponentBuilder struct {
	component v1beta2.AppWrapperComponent
	object    map[string]any
}

// Component is a component with any resource and no declared pod sets.
func Component(object map[string]any) *ComponentBuilder {
	return &ComponentBuilder{object: object}
}

// Job is a batch/v1 Job that runs this many pods in parallel and completes when each of them
// has succeeded.
func Job(name string, pods int64) *ComponentBuilder {
	return Component(map[string]any{
		"apiVersion": "batch/v1",
		"kind":       "Job",
		"metadata":   map[string]any{"name": name},
		"spec": map[string]any{
			"parallelism": pods,
			"completions": pods,
			"template":    template(),
		},
	})
}

// ConfigMap is a resource that creates no pods and never finishes.
func ConfigMap(name string) *ComponentBuilder {
	return Component(map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": name},
	})
}

// Declaring adds a declared pod set.
func (b *ComponentBuilder) Declaring(path string, replicas int32) *ComponentBuilder {
	b.component.DeclaredPodSets = append(b.component.DeclaredPodSets, v1beta2.AppWrapperPodSet{Path: path, Replicas: &replicas})
	return b
}

// Admitted adds what Kueue sets for the next pod set.
func (b *ComponentBuilder) Admitted(info v1beta2.AppWrapperPodSetInfo) *ComponentBuilder {
	b.component.PodSetInfos = append(b.component.PodSetInfos, info)
	return b
}

// Build returns the component.
func (b *ComponentBuilder) Build() v1beta2.AppWrapperComponent {
	component := *b.component.DeepCopy()
	raw, err := json.Marshal(b.object)
	if err != nil {
		panic(fmt.Sprintf("cannot encode a test object: %v", err))
	}
	component.Template.Raw = raw
	return component
}

func template() map[string]any {
	return map[string]any{"spec": map[string]any{
		"restartPolicy": "Never",
		"containers": []any{map[string]any{
			"name":  "main",
			"image": "registry.example/work:1",
			"resources": map[string]any{
				"requests": map[string]any{"cpu": "100m"},
			},
		}},
	}}
}
