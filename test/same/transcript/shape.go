// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"encoding/json"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
)

// shapeOf are the fields of a pod that somebody has decided, by their paths.
func shapeOf(pod *corev1.Pod) map[string]string {
	text, err := json.Marshal(map[string]any{"labels": pod.Labels, "annotations": pod.Annotations, "spec": pod.Spec})
	var fields any
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	shape := map[string]string{}
	flatten(shape, "", fields, pod.Namespace)
	return shape
}

func flatten(into map[string]string, path string, value any, namespace string) {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			flatten(into, path+"."+key, below, namespace)
		}
	case []any:
		for i, below := range v {
			flatten(into, fmt.Sprintf("%s[%d]", path, i), below, namespace)
		}
	case nil:
	default:
		into[path] = withoutChance(fmt.Sprint(v), namespace)
	}
}

// chance is the part of a value that is drawn anew for each object, and the namespace.
var chance = regexp.MustCompile(`-[a-z0-9]{5}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b`)

func withoutChance(text, namespace string) string {
	return chance.ReplaceAllString(regexp.MustCompile(regexp.QuoteMeta(namespace)).ReplaceAllString(text, "NAMESPACE"), "-RANDOM")
}
