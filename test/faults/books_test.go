// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/test/patience"
)

// losses are the classes of the books for what has to be done again.
var losses = []ledger.Class{ledger.LostToNode, ledger.LostToFailure, ledger.LostToHang, ledger.LostToPreemption}

// losesTo is the class for what the job did before the fault; empty if it did nothing, or loses nothing.
func (f fault) losesTo() ledger.Class {
	switch {
	case f.cause == "" || f.before != nil:
		return ""
	case f.migrations > 0:
		return ledger.LostToNode
	case f.cause == workload.ReasonNoProgress:
		return ledger.LostToHang
	}
	return ledger.LostToFailure
}

// lostTo are the classes to which something was lost.
func lostTo(aw *workload.AppWrapper) []ledger.Class {
	return slices.DeleteFunc(slices.Clone(losses), func(class ledger.Class) bool {
		return aw.Status.Usage == nil || *ledger.In(aw.Status.Usage, class) == 0
	})
}

// balances: the books have a loss in this class and in no other, and all of them together are the time for which
// Kueue has reserved quota, as its Workload says. On a busy machine each of both takes note later.
func (j *job) balances(at look, class ledger.Class) {
	j.Helper()
	var want []ledger.Class
	if class != "" {
		want = append(want, class)
	}
	if got := lostTo(at.aw); !slices.Equal(got, want) {
		j.Errorf("the books have losses in %v, want %v: %+v", got, want, at.aw.Status.Usage)
	}
	w, err := j.its(j.Context())
	if err != nil {
		j.Fatal(err)
	}
	given := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	if books := at.aw.Status.Usage; given == nil || books == nil {
		j.Errorf("there are the books %+v and the Workload's conditions %+v", books, w.Status.Conditions)
	} else if sum, reserved := ledger.Sum(*books), books.At.Sub(given.LastTransitionTime.Time); (sum - reserved).Abs() > patience.For(time.Second) {
		j.Errorf("the books have %s, and Kueue reserved quota for %s: %+v", sum, reserved, books)
	}
}

// workABit lets the job do something that it can lose: the books have whole seconds.
func workABit() { time.Sleep(time.Second) }
