// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
)

// FitsNoNode returns a sentence for each pod set whose pods request more than any node has, whichever flavor of the
// queue they get. It knows of nodes what the controller has written to the flavors.
func FitsNoNode(podSets []PodSet, queue kueue.ClusterQueue, flavors []kueue.ResourceFlavor) (sentences []string) {
	for _, podSet := range podSets {
		for _, group := range queue.Spec.ResourceGroups {
			if said := podSet.fitsNone(group, flavors); said != "" && !slices.Contains(sentences, said) {
				sentences = append(sentences, said)
			}
		}
	}
	return sentences
}

// fitsNone is empty if a node of one of the flavors may have enough.
func (p PodSet) fitsNone(group kueue.ResourceGroup, flavors []kueue.ResourceFlavor) string {
	var parts []string
	for _, of := range group.Flavors {
		i := slices.IndexFunc(flavors, func(f kueue.ResourceFlavor) bool { return f.Name == string(of.Name) })
		if i < 0 {
			return ""
		}
		largest := nodesigns.Published(&flavors[i])
		beyond := slices.DeleteFunc(nodesigns.Beyond(p.Requests, largest), func(name corev1.ResourceName) bool {
			return !slices.Contains(group.CoveredResources, name)
		})
		if len(beyond) == 0 {
			return ""
		}
		name := beyond[0]
		amount, most := p.Requests[name], largest[name]
		parts = append(parts, fmt.Sprintf("it requests %s of %s, and no node of flavor %s has more than %s", &amount, name, of.Name, &most))
	}
	if len(parts) == 0 {
		return ""
	}
	return "a pod of the job fits no node: " + strings.Join(parts, "; ")
}
