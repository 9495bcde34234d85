// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// shortestTimeToLive is for how many seconds what has finished should be there to be seen:
// longer than it takes another controller to begin where one has ended.
const shortestTimeToLive = 60

// timeToLive is where the kinds of a group, by API group, say when they are removed. What
// Ray calls so is about a RayJob's cluster.
var timeToLive = map[string][]string{
	"batch":           {"spec", "ttlSecondsAfterFinished"},
	"jobset.x-k8s.io": {"spec", "ttlSecondsAfterFinished"},
	"kubeflow.org":    {"spec", "runPolicy", "ttlSecondsAfterFinished"},
}

// timesToLive are warnings about components that remove themselves when they have finished.
// One that was not seen in between is missing, which is a failure.
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
		warnings = append(warnings, fmt.Sprintf("%s is %d: a component that goes before the controller has seen how it ended counts as missing and fails; "+
			"give it %d seconds, or none and successTTLDuration on the AppWrapper",
			field.NewPath("spec", "components").Index(i).Child("template", path...), seconds, shortestTimeToLive))
	}
	return warnings
}
