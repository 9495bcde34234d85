// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// using is a queue for which Kueue has reserved GPUs of flavor a.
func using(q kueue.ClusterQueue, amount string) kueue.ClusterQueue {
	use := kueue.ResourceUsage{Name: gpu, Total: resource.MustParse(amount)}
	q.Status.FlavorsReservation = []kueue.FlavorUsage{{Name: "a", Resources: []kueue.ResourceUsage{use}}}
	return q
}

func TestAvailable(t *testing.T) {
	stopped := queue("team", "", given("8"))
	stopped.Status.Conditions = []metav1.Condition{{Type: kueue.ClusterQueueActive, Status: metav1.ConditionFalse}}
	for name, row := range map[string]struct {
		queues  []kueue.ClusterQueue // the first is the team's
		cohorts []kueue.Cohort
		want    string
	}{
		"the rest of its own":          {queues: []kueue.ClusterQueue{using(queue("team", "", given("8")), "3")}, want: "5"},
		"nothing of another flavor":    {queues: []kueue.ClusterQueue{queue("team", "")}, want: "0"},
		"more is used than there is":   {queues: []kueue.ClusterQueue{using(queue("team", "", given("8")), "9")}, want: "0"},
		"a stopped queue":              {queues: []kueue.ClusterQueue{stopped}, want: "0"},
		"with what others do not use":  {queues: []kueue.ClusterQueue{using(queue("team", "c", given("8")), "3"), using(queue("other", "c", given("8")), "2")}, want: "11"},
		"others borrow its own":        {queues: []kueue.ClusterQueue{queue("team", "c", given("8")), using(queue("other", "c", given("8")), "12")}, want: "4"},
		"up to its borrowing limit":    {queues: []kueue.ClusterQueue{using(queue("team", "c", given("8", "2")), "3"), queue("other", "c", given("8"))}, want: "7"},
		"what others lend":             {queues: []kueue.ClusterQueue{queue("team", "c", given("8")), queue("other", "c", given("8", "", "3"))}, want: "11"},
		"what it keeps for itself":     {queues: []kueue.ClusterQueue{queue("team", "c", given("8", "", "3")), using(queue("other", "c", given("8")), "11")}, want: "5"},
		"kept, limited and partly out": {queues: []kueue.ClusterQueue{using(queue("team", "c", given("8", "1", "3")), "6"), queue("other", "c", given("8"))}, want: "3"},
		"of a cohort above": {
			queues:  []kueue.ClusterQueue{queue("team", "c", given("1")), using(queue("other", "d", given("10")), "4")},
			cohorts: []kueue.Cohort{cohort("c", "top"), cohort("d", "top"), cohort("top", "", given("2"))}, want: "9",
		},
		"a cohort that borrows little": {
			queues:  []kueue.ClusterQueue{queue("team", "c", given("1")), queue("other", "d", given("10"))},
			cohorts: []kueue.Cohort{cohort("c", "top", given("0", "6")), cohort("d", "top")}, want: "7",
		},
		"cohorts in a circle": {queues: []kueue.ClusterQueue{queue("team", "c", given("1"))}, cohorts: []kueue.Cohort{cohort("c", "d"), cohort("d", "c")}, want: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := Tree{Queues: row.queues, Cohorts: row.cohorts}
			if got := tree.Available(row.queues[0], Cell{Flavor: "a", Resource: gpu}); got.String() != row.want {
				t.Errorf("%s are available, and not %s", &got, row.want)
			}
		})
	}
}
