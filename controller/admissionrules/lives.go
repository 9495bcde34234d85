// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// shortestTimeToLive, in seconds, leaves time to see a finished component even while another
// replica of the controller becomes the leader.
const shortestTimeToLive = 60

// timeToLive is the field, by API group, after which finished objects remove themselves. Ray's
// field of that name is about a RayJob's cluster.
var timeToLive = map[string][]string{
	"batch":           {"spec", "ttlSecondsAfterFinished"},
	"jobset.x-k8s.io": {"spec", "ttlSecondsAfterFinished"},
	"kubeflow.org":    {"spec", "runPolicy", "ttlSecondsAfterFinished"},
}

// timesToLive are warnings about components that remove themselves soon after they finish. If
// the controller does not see one before, it is missing, which is a failure.
func (d Decoded) timesToLive() []string {
	var warnings []string
	for i, template := range d.Templates {
		if template == nil {
			continue
		}
		path, told := timeToLive[template.GroupVersionKind().Group]
		if !told {
			continue
		}
		seconds, set, err := unstructured.NestedInt64(template.Object, path...)
		if err != nil || !set || seconds >= shortestTimeToLive {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s is %d: a component that is removed before the controller has seen its result counts as missing, and the AppWrapper fails; "+
			"set at least %d seconds, or leave it out and set successTTLDuration on the AppWrapper",
			field.NewPath("spec", "components").Index(i).Child("template", path...), seconds, shortestTimeToLive))
	}
	return warnings
}
