// SPDX-License-Identifier: Apache-2.0

package recount_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/test/counted/recount"
	"github.com/mlbatch/mlbatch/test/given"
)

func TestPodsCountUntilTheyEnd(t *testing.T) {
	leaving := given.Pod("leaving", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })
	pods := []corev1.Pod{given.Pod("a"), given.Pod("b"), given.Pod("ended", given.Ended), leaving}
	if got, want := recount.Alive(pods), (recount.Count{Pods: 2, Devices: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestQuotaCountsUntilTheWorkHasFinished(t *testing.T) {
	admitted, finished, waiting := given.Admitted("3"), given.Admitted("4"), kueue.Workload{}
	admitted.Status.Admission.PodSetAssignments[0].Count = new(int32(3))
	given.Finished(&finished)
	if got, want := recount.Reserved([]kueue.Workload{admitted, finished, waiting}), (recount.Count{Pods: 3, Devices: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestExceeding(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b recount.Count
		want bool
	}{
		{"as many", recount.Count{Pods: 1, Devices: 1}, recount.Count{Pods: 1, Devices: 1}, false},
		{"one more pod", recount.Count{Pods: 2}, recount.Count{Pods: 1, Devices: 1}, true},
		{"one more device", recount.Count{Pods: 1, Devices: 2}, recount.Count{Pods: 1, Devices: 1}, true},
	} {
		if got := c.a.Exceeds(c.b); got != c.want {
			t.Errorf("%s: got %t", c.name, got)
		}
	}
}
