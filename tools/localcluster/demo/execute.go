// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// execute submits an Application and a Run of it, and reports what happens until it ends.
func execute(ctx context.Context, access access, manifests runs.Manifests, report *report) error {
	run := &manifests.Runs[0]
	fmt.Printf("\n== the same as a Run: %s submits %s\n", submitter, sample)
	for _, application := range manifests.Applications {
		if err := access.submit(ctx, &application); err != nil {
			return err
		}
	}
	if err := access.submit(ctx, run); err != nil {
		return err
	}
	e := execution{access: access, run: run, began: time.Now(), report: report}
	report.happened(e.began, "submitted", "Run "+run.Namespace+"/"+run.Name+" created by "+submitter)
	err := untilEnd(ctx, e.look)
	report.step("run", time.Since(e.began))
	switch {
	case ctx.Err() == nil && wait.Interrupted(err):
		return fmt.Errorf("the Run did not end within %s: it is %s: %s", jobTimeout, run.Status.Phase, run.Status.Message)
	case err != nil:
		return fmt.Errorf("cannot follow the Run: %w", err)
	}
	return e.conclude(ctx)
}

// execution polls a Run and reports each phase.
type execution struct {
	access
	run    *v1alpha1.Run
	began  time.Time
	phase  v1alpha1.RunPhase
	report *report
}

func (e *execution) look(ctx context.Context) (ended bool, err error) {
	if err := e.admin.Get(ctx, client.ObjectKeyFromObject(e.run), e.run); err != nil {
		return false, err
	}
	if phase := e.run.Status.Phase; phase != e.phase {
		e.phase = phase
		e.report.happened(e.began, "Run "+string(phase), e.run.Status.Message)
	}
	return e.phase.Terminal(), nil
}

func (e *execution) conclude(ctx context.Context) error {
	if e.phase != v1alpha1.RunSucceeded {
		return fmt.Errorf("the Run ended as %s: %s", e.phase, e.run.Status.Message)
	}
	log, err := e.log(ctx, e.run.Namespace, e.run.Name+"-master-0")
	if err != nil {
		return err
	}
	training, err := readTraining(log)
	if err != nil {
		return err
	}
	return training.together()
}
