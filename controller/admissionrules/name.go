// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

const (
	// longestLabel is the most characters of a DNS label and of a label's value.
	longestLabel = 63
	// generatedSuffix is how many characters the API server adds to a generateName,
	// after cutting it so that the whole fits a label.
	generatedSuffix = 5
)

// validateName refuses names that could not be used later: the name
// becomes a label value of every pod and, in a queue, the beginning of a DNS
// label, <name>-<index of the pod set>, without which Kueue makes no Workload.
func validateName(aw *v1beta2.AppWrapper, podSets int) field.ErrorList {
	path, name := field.NewPath("metadata", "name"), aw.Name
	if name == "" {
		path, name = field.NewPath("metadata", "generateName"), generated(aw.GenerateName)
	}
	longest, why := longestLabel, "it becomes the value of a label of each pod"
	if queued(aw) {
		longest = longestLabel - len("-"+strconv.Itoa(podSets-1))
		why = "Kueue names the pod sets after it"
		if strings.Contains(name, ".") {
			return field.ErrorList{field.Invalid(path, name, "must not contain a dot in a queue, because "+why)}
		}
	}
	if len(name) > longest {
		return field.ErrorList{field.Invalid(path, name,
			fmt.Sprintf("has %d characters and may have at most %d, because %s", len(name), longest, why))}
	}
	return nil
}

// generated is as long as the name that the API server will make of a prefix.
func generated(prefix string) string {
	if cut := longestLabel - generatedSuffix; len(prefix) > cut {
		prefix = prefix[:cut]
	}
	return prefix + strings.Repeat("x", generatedSuffix)
}
