// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// turnsAnnotation and endsAnnotation are what a cached AppWrapper has of its templates to tell when pods come and how
// they end. No stored object has them.
const (
	turnsAnnotation = v1beta2.AnnotationPrefix + "turns"
	endsAnnotation  = v1beta2.AnnotationPrefix + "ends"
)

// perPath says something of the pod sets of each component, by path; empty if there is nothing to say.
func perPath[T any](templates []*unstructured.Unstructured, of func(kinds.Kind, *unstructured.Unstructured) map[string]T) string {
	all, some := make([]map[string]T, len(templates)), false
	for i, template := range templates {
		if template == nil {
			continue
		}
		all[i] = of(kinds.For(template.GroupVersionKind()), template)
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
	readPerPath(o, turnsAnnotation, func(c *lifecycle.Component, turns map[string]kinds.Turn) { c.Turns = turns })
	readPerPath(o, endsAnnotation, func(c *lifecycle.Component, ends map[string]kinds.Ends) { c.Ends = ends })
}

func readPerPath[T any](o *observation, annotation string, set func(*lifecycle.Component, map[string]T)) {
	text, kept := o.aw.Annotations[annotation]
	var all []map[string]T
	if !kept || json.Unmarshal([]byte(text), &all) != nil || len(all) != len(o.snapshot.Components) {
		return
	}
	for i := range all {
		set(&o.snapshot.Components[i], all[i])
	}
}
