// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const gpu = "nvidia.com/gpu"

// given is a quota of GPUs. The amounts are the nominal quota, the borrowing limit and the lending limit.
func given(amounts ...string) kueue.ResourceQuota {
	quota := kueue.ResourceQuota{Name: gpu, NominalQuota: resource.MustParse(amounts[0])}
	for i, limit := range []**resource.Quantity{&quota.BorrowingLimit, &quota.LendingLimit} {
		if len(amounts) > i+1 && amounts[i+1] != "" {
			amount := resource.MustParse(amounts[i+1])
			*limit = &amount
		}
	}
	return quota
}

// groups returns one resource group with the given quotas of GPUs, in the flavors a, b and c.
func groups(quotas ...kueue.ResourceQuota) []kueue.ResourceGroup {
	group := kueue.ResourceGroup{CoveredResources: []corev1.ResourceName{gpu}}
	for i, quota := range quotas {
		name := kueue.ResourceFlavorReference([]string{"a", "b", "c"}[i])
		group.Flavors = append(group.Flavors, kueue.FlavorQuotas{Name: name, Resources: []kueue.ResourceQuota{quota}})
	}
	return []kueue.ResourceGroup{group}
}

func queue(name, cohort string, quotas ...kueue.ResourceQuota) kueue.ClusterQueue {
	q := kueue.ClusterQueue{}
	q.Name, q.Spec.CohortName, q.Spec.ResourceGroups = name, kueue.CohortReference(cohort), groups(quotas...)
	return q
}

func cohort(name, parent string, quotas ...kueue.ResourceQuota) kueue.Cohort {
	c := kueue.Cohort{}
	c.Name, c.Spec.ParentName, c.Spec.ResourceGroups = name, kueue.CohortReference(parent), groups(quotas...)
	return c
}

func gpus(count int64, each string) PodSet {
	return PodSet{Count: count, Requests: corev1.ResourceList{gpu: resource.MustParse(each)}}
}

func TestReasons(t *testing.T) {
	never := func(asked, most string) []string {
		return []string{"the job requests " + asked + " of nvidia.com/gpu, but ClusterQueue team can have at most " + most + ", including what it can borrow"}
	}
	for name, row := range map[string]struct {
		queues  []kueue.ClusterQueue // the first is the job's
		cohorts []kueue.Cohort
		podSets []PodSet
		want    []string
	}{
		"a job that fits has no reasons":              {queues: []kueue.ClusterQueue{queue("team", "", given("8"))}, podSets: []PodSet{gpus(1, "4"), gpus(1, "4")}},
		"more than the quota":                         {queues: []kueue.ClusterQueue{queue("team", "", given("8"))}, podSets: []PodSet{gpus(1, "4"), gpus(2, "4")}, want: never("12", "8")},
		"limits without a cohort are ignored":         {queues: []kueue.ClusterQueue{queue("team", "", given("8", "8", "2"))}, podSets: []PodSet{gpus(1, "9")}, want: never("9", "8")},
		"others lend everything":                      {queues: []kueue.ClusterQueue{queue("team", "c", given("8")), queue("other", "c", given("8"))}, podSets: []PodSet{gpus(1, "16")}},
		"others of another cohort lend nothing":       {queues: []kueue.ClusterQueue{queue("team", "c", given("8")), queue("other", "d", given("8"))}, podSets: []PodSet{gpus(1, "16")}, want: never("16", "8")},
		"a lending limit of others":                   {queues: []kueue.ClusterQueue{queue("team", "c", given("8")), queue("other", "c", given("8", "", "3"))}, podSets: []PodSet{gpus(1, "12")}, want: never("12", "11")},
		"a borrowing limit":                           {queues: []kueue.ClusterQueue{queue("team", "c", given("8", "1")), queue("other", "c", given("8"))}, podSets: []PodSet{gpus(1, "10")}, want: never("10", "9")},
		"the quota that a lending limit keeps counts": {queues: []kueue.ClusterQueue{queue("team", "c", given("8", "", "0")), queue("other", "c", given("8"))}, podSets: []PodSet{gpus(1, "16")}},
		"a cohort has quota, too": {
			queues: []kueue.ClusterQueue{queue("team", "c", given("0"))}, cohorts: []kueue.Cohort{cohort("c", "", given("4"))}, podSets: []PodSet{gpus(1, "5")}, want: never("5", "4"),
		},
		"cohorts lend upwards and borrow downwards": {
			queues:  []kueue.ClusterQueue{queue("team", "c", given("1")), queue("other", "d", given("10"))},
			cohorts: []kueue.Cohort{cohort("c", "top", given("0", "6")), cohort("d", "top", given("0", "", "8"))},
			podSets: []PodSet{gpus(1, "8")}, want: never("8", "7"),
		},
		"flavors add up": {queues: []kueue.ClusterQueue{queue("team", "", given("4"), given("4"))}, podSets: []PodSet{gpus(1, "4"), gpus(1, "4")}},
		"the pods of a set have one flavor": {
			queues: []kueue.ClusterQueue{queue("team", "", given("4"), given("4"))}, podSets: []PodSet{gpus(1, "2"), gpus(6, "1")},
			want: []string{"no flavor of ClusterQueue team can ever hold pod set 2 of the job: a has too little nvidia.com/gpu, b has too little nvidia.com/gpu"},
		},
		"cohorts in a circle": {
			queues: []kueue.ClusterQueue{queue("team", "c", given("1"))}, cohorts: []kueue.Cohort{cohort("c", "d"), cohort("d", "c")},
			want: []string{"cohort c of ClusterQueue team is its own ancestor, so Kueue admits nothing"},
		},
		"zero of a resource needs no quota": {
			queues: []kueue.ClusterQueue{queue("team", "", given("4"))}, podSets: []PodSet{{Count: 2, Requests: corev1.ResourceList{"cpu": resource.MustParse("0")}}},
		},
		"a resource without quota": {
			queues: []kueue.ClusterQueue{queue("team", "", given("4"))}, podSets: []PodSet{{Count: 2, Requests: corev1.ResourceList{"cpu": resource.MustParse("500m")}}},
			want: []string{"the job requests 1 of cpu, but ClusterQueue team has no quota for it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Reasons(row.podSets, row.queues[0], Tree{Queues: row.queues, Cohorts: row.cohorts})
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestPodsAreCountedWhereTheQueueCountsThem(t *testing.T) {
	q := kueue.ClusterQueue{}
	q.Name = "team"
	q.Spec.ResourceGroups = []kueue.ResourceGroup{{
		CoveredResources: []corev1.ResourceName{corev1.ResourcePods},
		Flavors: []kueue.FlavorQuotas{{Name: "a", Resources: []kueue.ResourceQuota{{
			Name: corev1.ResourcePods, NominalQuota: resource.MustParse("3"),
		}}}},
	}}
	if got := Reasons([]PodSet{{Count: 1}, {Count: 2}}, q, Tree{}); got != nil {
		t.Errorf("3 pods: %q", got)
	}
	if got := Reasons([]PodSet{{Count: 1}, {Count: 3}}, q, Tree{}); len(got) != 1 {
		t.Errorf("4 pods: %q", got)
	}
}
