// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/test/bench"
)

// Two stories in which quota is given back.
const (
	reclaims = "quota is taken back meanwhile"
	idles    = "GPUs that nobody uses"
)

// its is the Workload of the AppWrapper.
func (j *job) its(ctx context.Context) (*kueue.Workload, error) {
	all := &kueue.WorkloadList{}
	if err := admin.List(ctx, all, client.InNamespace(j.namespace())); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if owner := metav1.GetControllerOf(&all.Items[i]); owner != nil && owner.Kind == workload.AppWrapperKind && owner.Name == j.name {
			return &all.Items[i], nil
		}
	}
	return nil, fmt.Errorf("%s has none of %d Workloads", j.name, len(all.Items))
}

// activate lets Kueue give quota to the AppWrapper, or take it back.
func (j *job) activate(active bool) {
	j.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		w, err := j.its(j.Context())
		if err != nil {
			return err
		}
		w.Spec.Active = &active
		return admin.Update(j.Context(), w)
	})
	if err != nil {
		j.Fatal(err)
	}
}

// reclaimed: Kueue takes the quota back just when the node of a pod breaks. Later it gives it again.
func reclaimed(t *testing.T) bench.Fault {
	j := &job{T: t, name: newName(), pods: 1, gpus: gpusOfAPod}
	t.Cleanup(j.end)
	begin := time.Now()
	j.submit()
	j.await("runs", time.Minute, begin, running)
	pods := j.itsPods()
	workABit()
	begin = time.Now()
	evict(t, pods)
	j.activate(false)
	found := j.await("is suspended", time.Minute, begin, in(workload.AppWrapperSuspended))
	j.activate(true)
	again := j.await("runs again", time.Minute, found.at, running)
	if again.aw.Status.Retries > 0 {
		t.Errorf("there were %d retries", again.aw.Status.Retries)
	}
	// Which of both is seen first decides to what the work is lost.
	if lost := lostTo(again.aw); len(lost) != 1 || lost[0] != ledger.LostToNode && lost[0] != ledger.LostToPreemption {
		t.Errorf("the books have losses in %v: %+v", lost, again.aw.Status.Usage)
	}
	if on := j.itsNodes(); slices.Contains(on, pods[0].Spec.NodeName) {
		t.Errorf("it is on %v again", on)
	}
	return j.followed(reclaims, "Suspended", found.at.Sub(begin), again.at.Sub(begin))
}

// idle: nobody uses the GPUs of a pod. Its author is told, and then Kueue takes the quota back. An administrator lets
// it run again, and it is not suspended at once.
func idle(t *testing.T) bench.Fault {
	j := &job{T: t, name: newName(), pods: 1, gpus: gpusOfAPod, annotations: map[string]string{workload.IdleGracePeriodDurationAnnotation: "20s"}}
	t.Cleanup(j.end)
	begin := time.Now()
	j.submit()
	j.await("runs", time.Minute, begin, running)
	begin = time.Now()
	pods := j.itsPods()
	leave(t, &pods[0])
	told := j.await("is told", time.Minute, begin, has(workload.Idle))
	suspended := j.await("is suspended", time.Minute, told.at, in(workload.AppWrapperSuspended))
	if notice := suspended.at.Sub(told.at); notice < 4*time.Second {
		t.Errorf("its author was told only %s before", notice)
	}
	until(t, time.Minute, "Kueue has done it, and nothing requests it any more", func(ctx context.Context) error {
		w, err := j.its(ctx)
		if err == nil && (w.Spec.Active == nil || *w.Spec.Active || meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadDeactivationTarget) != nil) {
			err = fmt.Errorf("it is %v, with %v", w.Spec.Active, w.Status.Conditions)
		}
		return err
	})
	j.activate(true)
	again := j.await("runs again", time.Minute, suspended.at, running)
	if used := again.aw.Status.Usage; used == nil || used.IdleSeconds < 4 || used.LostToPreemptionSeconds > 0 {
		t.Errorf("the books say %+v", used)
	}
	return j.followed(idles, "Idle", told.at.Sub(begin), again.at.Sub(begin))
}

// followed is a fault that was found and from which the job came back.
func (j *job) followed(says, cause string, found, again time.Duration) bench.Fault {
	j.Helper()
	return bench.Fault{Says: says, Cause: cause, Found: metav1.Duration{Duration: found}, Again: metav1.Duration{Duration: again}, GPUs: j.allGPUs()}
}
