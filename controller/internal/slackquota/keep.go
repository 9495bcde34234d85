// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"encoding/json"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Verb says how a queue is written.
type Verb int

// The verbs.
const (
	Leave Verb = iota
	// Make applies Body, which is the whole queue.
	Make
	// Patch sends Body, a JSON patch.
	Patch
	// Remove deletes the queue.
	Remove
)

// Step is what to do with one slack queue.
type Step struct {
	Verb Verb
	Body []byte
	// Why is for logs.
	Why string
}

// Keep decides about one slack queue, which is nil if there is none. A queue that the controller has made
// follows the teams file. Of all others only the lending limits are written, and they are never removed.
func Keep(name string, q *kueue.ClusterQueue, all Declarations, missing Missing) Step {
	declared, listed := all[name]
	switch {
	case q == nil && declared != nil:
		return declared.make(name, missing)
	case q == nil || q.DeletionTimestamp != nil:
		return Step{}
	case made(q) && !listed:
		return Step{Verb: Remove, Why: "the teams file does not have it any more"}
	case made(q) && declared != nil:
		return declared.follow(q, missing)
	}
	d := Decide(q, missing)
	if d.Nothing() {
		return Step{}
	}
	return Step{Verb: Patch, Body: d.Patch(q), Why: fmt.Sprint(d.Changes)}
}

func (d *Declaration) make(name string, missing Missing) Step {
	q := d.settle(&kueue.ClusterQueue{}, missing)
	body, _ := json.Marshal(map[string]any{ // cannot fail: it was decoded from YAML
		"apiVersion": kueue.SchemeGroupVersion.String(), "kind": "ClusterQueue",
		"metadata": map[string]any{"name": name, "annotations": q.Annotations},
		"spec":     map[string]any{"cohortName": q.Spec.CohortName, "resourceGroups": q.Spec.ResourceGroups},
	})
	return Step{Verb: Make, Body: body, Why: "the teams file has it"}
}

// follow writes what is not as the file wants it. All of it is one write, which fails if the queue has changed.
func (d *Declaration) follow(q *kueue.ClusterQueue, missing Missing) Step {
	wanted := d.settle(q, missing)
	if apiequality.Semantic.DeepEqual(wanted.Spec, q.Spec) && apiequality.Semantic.DeepEqual(wanted.Annotations, q.Annotations) {
		return Step{}
	}
	body, _ := json.Marshal([]operation{ // likewise
		{"replace", "/metadata/resourceVersion", q.ResourceVersion},
		{"add", "/metadata/annotations", wanted.Annotations},
		{"add", "/spec/cohortName", wanted.Spec.CohortName},
		{"add", "/spec/resourceGroups", wanted.Spec.ResourceGroups},
	})
	return Step{Verb: Patch, Body: body, Why: "the teams file or the nodes have changed"}
}

// settle is the queue as the file wants it, with limits that the nodes allow.
func (d *Declaration) settle(q *kueue.ClusterQueue, missing Missing) *kueue.ClusterQueue {
	wanted := d.on(q)
	decision := Decide(wanted, missing)
	for _, c := range decision.Changes {
		wanted.Spec.ResourceGroups[c.Group].Flavors[c.Flavor].Resources[c.Resource].LendingLimit = c.After
	}
	wanted.Annotations = annotated(wanted.Annotations, v1beta2.LoweredLendingLimitsAnnotation, decision.Note)
	return wanted
}
