// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// turnsAnnotation is what a cached AppWrapper has of its templates to tell when pods come. No stored object has it.
const turnsAnnotation = v1beta2.AnnotationPrefix + "turns"

// turnsOf says, for each component, when pods come that do not come with it; empty if there are none.
func turnsOf(templates []*unstructured.Unstructured) string {
	all, some := make([]map[string]kinds.Turn, len(templates)), false
	for i, template := range templates {
		if template == nil {
			continue
		}
		all[i] = kinds.For(template.GroupVersionKind()).Turns(template)
		some = some || len(all[i]) > 0
	}
	text, err := json.Marshal(all)
	if err != nil || !some {
		return ""
	}
	return string(text)
}

// observeTurns reads what the cache has kept of the templates. It keeps that of all that is deployed.
func (o *observation) observeTurns() {
	text, kept := o.aw.Annotations[turnsAnnotation]
	var turns []map[string]kinds.Turn
	if !kept || json.Unmarshal([]byte(text), &turns) != nil || len(turns) != len(o.snapshot.Components) {
		return
	}
	for i := range turns {
		o.snapshot.Components[i].Turns = turns[i]
	}
}
