// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"encoding/json"
	"fmt"
	"strings"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Patch is the decision as a JSON patch, which touches nothing else of the queue, and fails if the
// queue has changed.
func (d Decision) Patch(q *kueue.ClusterQueue) []byte {
	operations := []operation{{"replace", "/metadata/resourceVersion", q.ResourceVersion}}
	for _, c := range d.Changes {
		path := fmt.Sprintf("/spec/resourceGroups/%d/flavors/%d/resources/%d/lendingLimit", c.Group, c.Flavor, c.Resource)
		if c.After == nil {
			operations = append(operations, operation{Op: "remove", Path: path})
		} else {
			operations = append(operations, operation{"add", path, c.After.String()})
		}
	}
	text, _ := json.Marshal(append(operations, d.annotate(q)...)) // cannot fail: there are only strings
	return text
}

func (d Decision) annotate(q *kueue.ClusterQueue) []operation {
	path := "/metadata/annotations/" + strings.ReplaceAll(v1beta2.LoweredLendingLimitsAnnotation, "/", "~1")
	switch {
	case !d.note:
		return nil
	case d.Note == "":
		return []operation{{Op: "remove", Path: path}}
	case len(q.Annotations) == 0:
		return []operation{{"add", "/metadata/annotations", map[string]string{v1beta2.LoweredLendingLimitsAnnotation: d.Note}}}
	}
	return []operation{{"add", path, d.Note}}
}

// String is for logs.
func (c Change) String() string {
	from, to := "none", "none"
	if c.Before != nil {
		from = c.Before.String()
	}
	if c.After != nil {
		to = c.After.String()
	}
	return fmt.Sprintf("%s of %s: %s instead of %s", c.ResourceName, c.FlavorName, to, from)
}
