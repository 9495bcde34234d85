// SPDX-License-Identifier: Apache-2.0

package referee

import (
	"slices"
	"strings"
)

// Known is something that docs/security.md leaves open.
type Known struct {
	Rule string
	// Object begins the object of the finding, with its kind.
	Object string
	// Says is a sentence of docs/security.md.
	Says string
}

// known is all that is excused, whoever attacks. What is not here fails the siege.
var known = []Known{
	{"no-quota", "RayJob ", "The submitter of a RayJob that is not wrapped may run on, with CPU and memory, after the RayJob has failed and its quota is released."},
}

const withoutQuota = "create pods, Deployments and Jobs that no quota counts"

// OfEditors is excused, too, if somebody has Kubernetes' role edit or admin.
var OfEditors = []Known{
	{"no-quota", "Pod ", withoutQuota}, {"no-quota", "Deployment ", withoutQuota}, {"no-quota", "ReplicaSet ", withoutQuota},
	{"no-quota", "StatefulSet ", withoutQuota}, {"no-quota", "DaemonSet ", withoutQuota}, {"no-quota", "ReplicationController ", withoutQuota},
	{"no-quota", "Job ", withoutQuota}, {"no-quota", "CronJob ", withoutQuota}, {"held", "episode ", withoutQuota}, {LongGrace, "Pod ", withoutQuota},
}

func (k Known) explains(f Finding) bool {
	return k.Rule == f.Rule && strings.HasPrefix(f.Object, k.Object)
}

func (r *Referee) unexcused(all []Finding) (rest []Finding) {
	if r.Excused == nil {
		r.Excused = map[string]int{}
	}
	for _, f := range all {
		reason := ""
		for _, k := range slices.Concat(known, r.Known) {
			if k.explains(f) {
				reason = k.Says
			}
		}
		if reason == "" {
			rest = append(rest, f)
			continue
		}
		r.Excused[reason]++
	}
	return rest
}
