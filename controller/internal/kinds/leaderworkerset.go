// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups=leaderworkerset.x-k8s.io,resources=leaderworkersets,verbs=get;list;watch;create;delete

// leaderWorkerSet is a LeaderWorkerSet: groups of a leader and workers. It never ends and
// replaces groups that fail, so it has no verdict.
var leaderWorkerSet = Kind{
	GVK:     schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"},
	podSets: leaderWorkerSetPodSets,
	turns: onePath(lwsTemplate+"workerTemplate", OneByOne, func(object map[string]any) bool {
		return text(object, "spec", "startupPolicy") == "LeaderReady"
	}),
	inQueue:         withoutSurgingGroups,
	restartPolicies: restartsForGood,
	derived:         leaderWorkerSetNames,
	volumes: func(object map[string]any) []string {
		return namesOf(items(object, "spec", "leaderWorkerTemplate", "volumeClaimTemplates"), "metadata", "name")
	},

	faults: func(object map[string]any) []Fault {
		if policy := inner(object, "spec", "leaderWorkerTemplate", "subGroupPolicy"); policy == nil || present(policy, "subGroupSize") {
			return nil
		}
		return []Fault{{Path: "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize", Value: "…", Why: "must be the number of pods of each subgroup, or leave subGroupPolicy out"}}
	},

	neverSucceeds: always,
}

// leaderWorkerSetNames: it has a StatefulSet of the leaders, and one for the workers of each leader. Its own name
// is that of a Service.
func leaderWorkerSetNames(object map[string]any) []Derived {
	names := []Derived{
		{Of: "its Service", Rule: ServiceName},
		{Suffix: revision, Of: "the label of its leaders that has their revision", Rule: LabelValue},
	}
	if number(object, "spec", "leaderWorkerTemplate", "size") > 1 {
		group := last(number(object, "spec", "replicas"))
		names = append(names, Derived{Suffix: group + revision, Of: "the label of the workers of its last group that has their revision", Rule: LabelValue})
	}
	return names
}

const (
	lwsTemplate    = "template.spec.leaderWorkerTemplate."
	lwsGroupIndex  = "leaderworkerset.sigs.k8s.io/group-index"
	lwsWorkerIndex = "leaderworkerset.sigs.k8s.io/worker-index"
)

// leaderWorkerSetPodSets are the leaders and the workers or, if leaders have no template of
// their own, one set of all pods.
func leaderWorkerSetPodSets(object map[string]any) ([]v1beta2.AppWrapperPodSet, error) {
	groups, err := replicas(object, "spec", "replicas")
	if err != nil {
		return nil, err
	}
	size, err := replicas(object, "spec", "leaderWorkerTemplate", "size")
	if err != nil {
		return nil, err
	}
	if !present(object, "spec", "leaderWorkerTemplate", "leaderTemplate") {
		pods, err := times(*groups, *size)
		return []v1beta2.AppWrapperPodSet{{
			Path:     lwsTemplate + "workerTemplate",
			Replicas: &pods,
			Annotations: map[string]string{
				v1beta2.PodSetAnnotationTASPodIndexLabel:      lwsWorkerIndex,
				v1beta2.PodSetAnnotationTASSubGroupIndexLabel: lwsGroupIndex,
				v1beta2.PodSetAnnotationTASSubGroupCount:      fmt.Sprint(*groups),
			},
		}}, err
	}
	// Workers beside a leader are numbered from 1, which Kueue does not accept as a rank.
	workers, err := times(*groups, *size-1)
	return []v1beta2.AppWrapperPodSet{
		{
			Path:        lwsTemplate + "leaderTemplate",
			Replicas:    groups,
			Annotations: map[string]string{v1beta2.PodSetAnnotationTASPodIndexLabel: lwsGroupIndex},
		},
		{Path: lwsTemplate + "workerTemplate", Replicas: &workers},
	}, err
}
