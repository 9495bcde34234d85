// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func TestExceeded(t *testing.T) {
	for name, row := range map[string]struct {
		queues  []kueue.ClusterQueue
		cohorts []kueue.Cohort
		used    map[string]string // GPUs of flavor a, by queue
		want    []string
	}{
		"all of the quota":            {queues: []kueue.ClusterQueue{queue("team", "", given("8"))}, used: map[string]string{"team": "8"}},
		"more than the quota":         {queues: []kueue.ClusterQueue{queue("team", "", given("8"))}, used: map[string]string{"team": "9"}, want: []string{"ClusterQueue team 9 of 8"}},
		"a flavor without quota":      {queues: []kueue.ClusterQueue{queue("team", "")}, used: map[string]string{"team": "1"}, want: []string{"ClusterQueue team 1 of 0"}},
		"borrowed from another":       {queues: []kueue.ClusterQueue{queue("team", "c", given("8")), queue("other", "c", given("8"))}, used: map[string]string{"team": "16"}},
		"borrowed by both":            {queues: []kueue.ClusterQueue{queue("team", "c", given("8")), queue("other", "c", given("8"))}, used: map[string]string{"team": "9", "other": "8"}, want: []string{"Cohort c 17 of 16"}},
		"within the borrowing limit":  {queues: []kueue.ClusterQueue{queue("team", "c", given("8", "2")), queue("other", "c", given("8"))}, used: map[string]string{"team": "10"}},
		"beyond the borrowing limit":  {queues: []kueue.ClusterQueue{queue("team", "c", given("8", "2")), queue("other", "c", given("8"))}, used: map[string]string{"team": "11"}, want: []string{"ClusterQueue team 11 of 10"}},
		"beyond what others lend":     {queues: []kueue.ClusterQueue{queue("team", "c", given("8")), queue("other", "c", given("8", "", "3"))}, used: map[string]string{"team": "12"}, want: []string{"Cohort c 12 of 11"}},
		"what is kept is used first":  {queues: []kueue.ClusterQueue{queue("team", "c", given("8")), queue("other", "c", given("8", "", "3"))}, used: map[string]string{"team": "11", "other": "5"}},
		"kept for others is not lent": {queues: []kueue.ClusterQueue{queue("team", "c", given("8")), queue("other", "c", given("8", "", "3"))}, used: map[string]string{"team": "11", "other": "6"}, want: []string{"Cohort c 12 of 11"}},
		"the quota of a cohort":       {queues: []kueue.ClusterQueue{queue("team", "c", given("0"))}, cohorts: []kueue.Cohort{cohort("c", "", given("4"))}, used: map[string]string{"team": "4"}},
		"a cohort that borrows too much": {
			queues:  []kueue.ClusterQueue{queue("team", "c", given("1")), queue("other", "d", given("10"))},
			cohorts: []kueue.Cohort{cohort("c", "top", given("0", "6")), cohort("d", "top")},
			used:    map[string]string{"team": "8"}, want: []string{"Cohort c 8 of 7"},
		},
		"a cohort that lends too little": {
			queues:  []kueue.ClusterQueue{queue("team", "c", given("1")), queue("other", "d", given("10"))},
			cohorts: []kueue.Cohort{cohort("c", "top"), cohort("d", "top", given("0", "", "4"))},
			used:    map[string]string{"team": "6"}, want: []string{"Cohort top 6 of 5"},
		},
		"cohorts in a circle are left alone": {
			queues: []kueue.ClusterQueue{queue("team", "c", given("1"))}, cohorts: []kueue.Cohort{cohort("c", "d"), cohort("d", "c")},
			used: map[string]string{"team": "2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			use := Use{}
			for queue, amount := range row.used {
				use[queue] = map[Cell]resource.Quantity{{Flavor: "a", Resource: gpu}: resource.MustParse(amount)}
			}
			var got []string
			for _, e := range (Tree{Queues: row.queues, Cohorts: row.cohorts}).Exceeded(use) {
				got = append(got, fmt.Sprintf("%s %s %s of %s", e.Kind, e.Name, e.Used.String(), e.Most.String()))
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAnExcessNamesTheQueuesThatShareIt(t *testing.T) {
	cell := Cell{Flavor: "a", Resource: gpu}
	quota := Tree{Queues: []kueue.ClusterQueue{queue("team", "c"), queue("other", "top")}, Cohorts: []kueue.Cohort{cohort("c", "top")}}
	found := quota.Exceeded(Use{"team": {cell: resource.MustParse("1")}})
	if len(found) != 1 || cmp.Diff([]string{"other", "team"}, found[0].Queues) != "" {
		t.Errorf("got %+v", found)
	}
}
