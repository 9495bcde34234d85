// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// byResource has something of each flavor and resource, as annotations keep it.
type byResource[T any] map[kueue.ResourceFlavorReference]map[corev1.ResourceName]*T

// read is nil if the annotation cannot be read.
func read[T any](annotation string) byResource[T] {
	var all byResource[T]
	if err := json.Unmarshal([]byte(annotation), &all); err != nil {
		return nil
	}
	return all
}

func (b byResource[T]) add(flavor kueue.ResourceFlavorReference, name corev1.ResourceName, it *T) {
	if b[flavor] == nil {
		b[flavor] = map[corev1.ResourceName]*T{}
	}
	b[flavor][name] = it
}

// String is the annotation, always the same for the same content.
func (b byResource[T]) String() string {
	if len(b) == 0 {
		return ""
	}
	text, _ := json.Marshal(b) // cannot fail: there are only strings
	return string(text)
}

// annotated are the annotations with another value; an empty one removes it.
func annotated(annotations map[string]string, key, value string) map[string]string {
	after := maps.Clone(annotations)
	if delete(after, key); value == "" {
		return after
	}
	if after == nil {
		after = map[string]string{}
	}
	after[key] = value
	return after
}
