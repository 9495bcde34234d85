// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// jobTimeout limits the whole job. outageTimeout limits the time without an answer from the API
// server, which the keeper restarts if it exits.
const (
	jobTimeout    = 10 * time.Minute
	outageTimeout = 30 * time.Second
)

// follower polls a job and reports each change once.
type follower struct {
	access
	job      *workload.AppWrapper
	began    time.Time
	reported map[string]bool
	report   *report
}

// follow submits the job and reports what happens until it ends.
func follow(ctx context.Context, access access, job *workload.AppWrapper, report *report) error {
	fmt.Printf("\n== %s of team %s submits the job %s\n", submitter, team, job.Name)
	if err := access.submit(ctx, job); err != nil {
		return err
	}
	f := &follower{access: access, job: job, began: time.Now(), reported: map[string]bool{}, report: report}
	report.happened(f.began, "submitted", "AppWrapper "+job.Namespace+"/"+job.Name+" created by "+submitter)
	err := untilEnd(ctx, f.look)
	report.Phase = string(f.job.Status.Phase)
	report.step("train", time.Since(f.began))
	if err != nil {
		return f.explain(ctx, err)
	}
	return f.conclude(ctx)
}

// explain says why following the job failed.
func (f *follower) explain(ctx context.Context, err error) error {
	if ctx.Err() == nil && wait.Interrupted(err) {
		return fmt.Errorf("the job did not end within %s: it is %s", jobTimeout, f.job.Status.Phase)
	}
	return fmt.Errorf("cannot follow the job: %w", err)
}

// poll calls look, and tolerates a short outage of the API server since it was last seen.
func poll(ctx context.Context, seen *time.Time, look wait.ConditionWithContextFunc) (ended bool, err error) {
	ended, err = look(ctx)
	if err == nil {
		*seen = time.Now()
		return ended, nil
	}
	if apierrors.IsNotFound(err) || time.Since(*seen) > outageTimeout {
		return false, err
	}
	return false, nil
}

// untilEnd calls look until it says that the job has ended.
func untilEnd(ctx context.Context, look wait.ConditionWithContextFunc) error {
	seen := time.Now()
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, jobTimeout, true, func(ctx context.Context) (bool, error) {
		return poll(ctx, &seen, look)
	})
}

// look reads the job and everything that belongs to it, and reports changes.
func (f *follower) look(ctx context.Context) (ended bool, err error) {
	if err := f.admin.Get(ctx, client.ObjectKeyFromObject(f.job), f.job); err != nil {
		return false, err
	}
	for _, part := range []func(context.Context) error{f.lookAtQueue, f.lookAtGang, f.lookAtPods} {
		if err := part(ctx); err != nil {
			return false, err
		}
	}
	phase := f.job.Status.Phase
	f.reportOnce(fmt.Sprintf("%s, retry %d", phase, f.job.Status.Retries), "AppWrapper "+string(phase), phase != "", f.reason())
	return phase == workload.AppWrapperSucceeded || phase == workload.AppWrapperFailed, nil
}

// reason is the controller's message for the current phase: conditions of a phase have its
// name as their reason.
func (f *follower) reason() string {
	for _, c := range f.job.Status.Conditions {
		if c.Message != "" && (c.Reason == string(f.job.Status.Phase) || c.Type == string(workload.Unhealthy) && c.Status == "True") {
			return c.Message
		}
	}
	return ""
}

func (f *follower) lookAtQueue(ctx context.Context) error {
	workloads := &kueue.WorkloadList{}
	if err := f.admin.List(ctx, workloads, client.InNamespace(f.job.Namespace)); err != nil {
		return err
	}
	for _, w := range workloads.Items {
		if len(w.OwnerReferences) == 0 || w.OwnerReferences[0].UID != f.job.UID {
			continue
		}
		f.reportIf("queued", true, "Workload "+w.Name+" waits in LocalQueue "+string(w.Spec.QueueName))
		for _, kind := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
			if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil {
				f.reportIf(map[string]string{kueue.WorkloadQuotaReserved: "quota reserved", kueue.WorkloadAdmitted: "admitted by Kueue"}[kind], c.Status == "True", c.Message)
			}
		}
	}
	return nil
}

func (f *follower) lookAtGang(ctx context.Context) error {
	groups := &podgroup.PodGroupList{}
	if err := f.admin.List(ctx, groups, client.InNamespace(f.job.Namespace)); err != nil {
		return err
	}
	for _, g := range groups.Items {
		f.reportIf("gang formed", g.Name == f.job.Name, fmt.Sprintf("PodGroup %s: all %d pods are placed together or none", g.Name, g.Spec.MinMember))
	}
	return nil
}

func (f *follower) lookAtPods(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := f.admin.List(ctx, pods, client.InNamespace(f.job.Namespace), client.MatchingLabels{workload.AppWrapperLabel: f.job.Name}); err != nil {
		return err
	}
	for _, p := range pods.Items {
		for _, fact := range []struct {
			what  string
			holds bool
			why   string
		}{
			{"scheduled", p.Spec.NodeName != "", "by " + p.Spec.SchedulerName + " to node " + p.Spec.NodeName},
			{"runs", p.Status.Phase == corev1.PodRunning, "image " + p.Spec.Containers[0].Image},
			{"succeeded", p.Status.Phase == corev1.PodSucceeded, ""},
			{"failed", p.Status.Phase == corev1.PodFailed, p.Status.Reason + " " + p.Status.Message},
		} {
			f.reportOnce(string(p.UID)+fact.what, "pod "+p.Name+" "+fact.what, fact.holds, fact.why)
		}
	}
	return nil
}

func (f *follower) reportIf(what string, holds bool, why string) {
	f.reportOnce(what, what, holds, why)
}

// reportOnce reports what holds, once for each key: a retry has the same phases and names
// of pods.
func (f *follower) reportOnce(key, what string, holds bool, why string) {
	if !holds || f.reported[key] {
		return
	}
	f.reported[key] = true
	f.report.happened(f.began, what, strings.TrimSpace(why))
}

// conclude reads the log of the training.
func (f *follower) conclude(ctx context.Context) error {
	log, err := f.log(ctx, f.job.Namespace, f.job.Name+"-master-0")
	return errors.Join(f.judge(log), err)
}

// judge checks the result of the job.
func (f *follower) judge(log string) (err error) {
	if f.job.Status.Phase != workload.AppWrapperSucceeded {
		return fmt.Errorf("the job ended as %s; the last lines of its first pod:\n%s", f.job.Status.Phase, lastLines(log, 15))
	}
	f.report.Training, err = readTraining(log)
	if err != nil {
		return err
	}
	f.report.learned(f.began)
	return f.report.Training.together()
}
