// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package realfaults_test

import (
	"slices"
	"strings"
	"time"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

// losses are the classes of the books for what has to be done again.
var losses = []ledger.Class{ledger.LostToNode, ledger.LostToFailure, ledger.LostToHang, ledger.LostToPreemption}

// lostTo are the classes to which something was lost.
func lostTo(aw *workload.AppWrapper) []ledger.Class {
	return slices.DeleteFunc(slices.Clone(losses), func(class ledger.Class) bool {
		return aw.Status.Usage == nil || *ledger.In(aw.Status.Usage, class) == 0
	})
}

// balances: the books have a loss in this class and in no other.
func (w *work) balances(at look, class ledger.Class) {
	w.Helper()
	var want []ledger.Class
	if class != "" {
		want = append(want, class)
	}
	if got := lostTo(at.aw); !slices.Equal(got, want) {
		w.Errorf("the books have losses in %v, want %v: %+v", got, want, at.aw.Status.Usage)
	}
}

// balance compares the books of each AppWrapper with Kueue's Workload, as mlbatch usage does for all of them.
func (r *room) balance() {
	r.Helper()
	all, err := clusterstate.Usage(r.Context(), r.admin, "", "")
	r.Must(err)
	now, seconds := time.Now().UTC().Truncate(time.Second), usage.Query{By: "appwrapper", Resource: "pods"}
	for _, aw := range all.AppWrappers {
		one := all
		one.AppWrappers = []workload.AppWrapper{aw}
		compared := usage.Count(one, seconds, now).Kueue
		if len(compared) != 1 || compared[0].Compared != 1 {
			r.Errorf("the books of %s are not compared with Kueue's: %+v", aw.Name, compared)
			continue
		}
		if d := compared[0].Books - compared[0].Kueue; max(d, -d) > tolerance(aw) {
			r.Errorf("the books of %s have %s pod-hours, and Kueue reserved %s: %+v", aw.Name, compared[0].Books, compared[0].Kueue, aw.Status.Usage)
		}
	}
	var table strings.Builder
	r.Must(usage.Count(all, seconds, now).WriteTable(&table))
	r.Logf("the books of all work, in pod-hours\n%s", &table)
}

// tolerance is two seconds for each pod and each of two reservations: the times of both books are whole seconds. On a
// busy machine each of both takes note later.
func tolerance(aw workload.AppWrapper) (sum usage.Hours) {
	for _, component := range aw.Status.ComponentStatus {
		for _, podSet := range component.PodSets {
			sum += usage.Hours(float64(podSet.Count()) * 2 * 1000 * patience.For(2*time.Second).Seconds())
		}
	}
	return sum
}
