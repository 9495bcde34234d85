// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Largest is the most of each resource that one of these nodes offers to pods, in use or not. It says nothing of a
// resource that none of them has, or that they count in pods.
func Largest(nodes []*corev1.Node) corev1.ResourceList {
	largest := corev1.ResourceList{}
	for _, node := range nodes {
		for name, amount := range node.Status.Allocatable {
			if most := largest[name]; name != corev1.ResourcePods && amount.Cmp(most) > 0 {
				largest[name] = amount
			}
		}
	}
	return largest
}

// Publish is the annotation of a flavor that says what the largest of its nodes have. It is empty without nodes. The
// health of nodes changes nothing: those that are repaired come back.
func Publish(flavor *kueue.ResourceFlavor, nodes []corev1.Node) string {
	var serving []*corev1.Node
	for i := range nodes {
		if nodes[i].DeletionTimestamp == nil && Serves(&nodes[i], flavor) {
			serving = append(serving, &nodes[i])
		}
	}
	largest := Largest(serving)
	if len(largest) == 0 {
		return ""
	}
	text, _ := json.Marshal(largest) // cannot fail, and sorts by name
	return string(text)
}

// Published is what the annotation of a flavor says; nothing if it has none that can be read.
func Published(flavor *kueue.ResourceFlavor) corev1.ResourceList {
	largest := corev1.ResourceList{}
	if err := json.Unmarshal([]byte(flavor.Annotations[v1beta2.LargestNodeAnnotation]), &largest); err != nil {
		return nil
	}
	return largest
}

// Beyond are the resources of which a pod requests more than the largest nodes have, so that it fits no node. Of what
// no node has, nothing is known: nodes may come when they are needed.
func Beyond(requests, largest corev1.ResourceList) (names []corev1.ResourceName) {
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		amount := requests[name]
		if most, known := largest[name]; known && amount.Cmp(most) > 0 {
			names = append(names, name)
		}
	}
	return names
}
