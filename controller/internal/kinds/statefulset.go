// SPDX-License-Identifier: Apache-2.0

package kinds

import "k8s.io/apimachinery/pkg/runtime/schema"

// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;delete

// statefulSet is an apps/v1 StatefulSet. It never ends, so it has no verdict.
var statefulSet = Kind{
	GVK:     schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	podSets: scaledPodSets,
	turns: onePath("template.spec.template", OneByOne, func(object map[string]any) bool {
		return text(object, "spec", "podManagementPolicy") != "Parallel"
	}),

	knownToKueue:  always,
	neverSucceeds: always,
	derived:       statefulSetNames,
	faults: func(object map[string]any) []Fault {
		return badName(object, HostName, "spec", "serviceName") // the subdomain of each pod
	},
	volumes: func(object map[string]any) []string {
		return namesOf(items(object, "spec", "volumeClaimTemplates"), "metadata", "name")
	},
}

// revision is what a StatefulSet adds to its name for a label of its pods: a number of up to 10 digits, in letters.
const revision = "-xxxxxxxxxx"

func statefulSetNames(object map[string]any) []Derived {
	count := number(object, "spec", "replicas")
	first, _, _ := integer(object, "spec", "ordinals", "start")
	return []Derived{
		{Suffix: last(first + count), Of: "its last pod", Rule: HostName},
		{Suffix: revision, Of: "the label of each of its pods that has its revision", Rule: LabelValue},
	}
}
