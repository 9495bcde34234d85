// SPDX-License-Identifier: Apache-2.0

package teamsdiff

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamsfile"
)

// slackQueues are the ClusterQueues that the chart asks the AppWrapper controller for. Only what the file can say of
// them is compared: the rest of a queue that the controller has not made is its owner's.
func slackQueues(text []byte) (all []Object, err error) {
	var asked corev1.ConfigMap
	if err := yaml.Unmarshal(text, &asked); err != nil || asked.Name != nodesigns.DeclaredSlackName {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(asked.Data)) {
		q := kueue.ClusterQueue{}
		if err := yaml.UnmarshalStrict([]byte(asked.Data[name]), &q.Spec); err != nil {
			return nil, err
		}
		q.Name = name
		o := ofClusterQueue(q)
		o.slack, o.some = true, true
		maps.DeleteFunc(o.fields, func(field, _ string) bool { return !slices.Contains(ofSlack, field) })
		all = append(all, o)
	}
	return all, nil
}

// ofSlack are the fields of slack queues that follow the file, beside the quota.
var ofSlack = []string{"spec.cohortName", "order of flavors", "covered resources"}

// slackQueue is the quota of a slack queue without what it lends at most.
func (o Object) slackQueue() teamsfile.SlackQueue {
	quota := teamsfile.Quota{}
	for flavor, shares := range o.team.Quota {
		quota[flavor] = maps.Clone(shares)
		for name, share := range shares {
			share.LendingLimit = nil
			quota[flavor][name] = share
		}
	}
	return teamsfile.SlackQueue{Name: o.Name, Cohort: o.team.Cohort, Quota: quota}
}
