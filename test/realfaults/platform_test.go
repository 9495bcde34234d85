// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package realfaults_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// controllerIsKilled: its process ends at once, and the kubelet starts another one.
func controllerIsKilled(r *room, meet func()) {
	before, err := r.controller()
	r.Must(err)
	meet()
	_, id, _ := strings.Cut(before.ContainerID, "://")
	r.signal(unix.SIGKILL, func(process string) bool { return id != "" && strings.Contains(says(process, "cgroup"), id) })
	r.Await("the controller is there again", func() error {
		now, err := r.controller()
		if err == nil && now.RestartCount != before.RestartCount+1 {
			err = fmt.Errorf("it was restarted %d times", now.RestartCount)
		}
		return err
	})
}

// controller is the container of the controller, which is ready.
func (r *room) controller() (found corev1.ContainerStatus, err error) {
	pods := &corev1.PodList{}
	if err := r.admin.List(r.Context(), pods, client.InNamespace(platform.Namespace)); err != nil {
		return found, err
	}
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			if strings.HasPrefix(pod.Name, "appwrapper-controller-manager-") && c.Ready {
				return c, nil
			}
		}
	}
	return found, errors.New("no container of the controller is ready")
}

// quotaIsTakenBack: a job has borrowed a pod from another team, which takes it back. When the work of that team is
// done, the job runs again.
func quotaIsTakenBack(r *room, meet func()) {
	borrower, owner := &work{room: r, name: "borrower", team: "green", pods: 2}, &work{room: r, name: "owner", team: "red"}
	borrower.submit()
	borrower.await("runs", time.Time{}, running)
	workABit()
	meet()
	begin := time.Now()
	owner.submit()
	suspended := borrower.await("is suspended", begin, in(workload.AppWrapperSuspended))
	owner.await("runs", begin, running)
	if pods := borrower.itsPods(); len(pods) > 0 {
		r.Errorf("%d pods of the borrower run beside the owner", len(pods))
	}
	w, err := borrower.itsWorkload()
	r.Must(err)
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPreempted); c == nil || c.Reason != kueue.InCohortReclamationReason {
		r.Errorf("Kueue does not say that the owner takes its quota back: %+v", w.Status.Conditions)
	}
	r.order(owner.itsPods()[0], "exit 0")
	owner.await("has succeeded", begin, in(workload.AppWrapperSucceeded))
	again := borrower.await("runs again", suspended.at, running)
	r.Logf("suspended after %.1f s; runs again after %.1f s", suspended.at.Sub(begin).Seconds(), again.at.Sub(begin).Seconds())
	if s := again.aw.Status; s.Migrations+s.Retries > 0 {
		r.Errorf("there were %d migrations and %d retries", s.Migrations, s.Retries)
	}
	borrower.balances(again, ledger.LostToPreemption)
}
