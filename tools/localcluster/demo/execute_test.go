// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

func TestTheSampleIsAnApplicationAndItsRun(t *testing.T) {
	manifests, err := runs.Read([]string{filepath.Join("..", "..", "..", sample)}, nil, team)
	if err != nil {
		t.Fatal(err)
	}
	plans, _, err := manifests.Plan()
	if err != nil || len(plans) != 1 || len(manifests.Applications) != 1 || plans[0].Size.Workers != 2 {
		t.Errorf("it has %d plans (%v)", len(plans), err)
	}
}

func TestEachPhaseOfARunIsReportedOnce(t *testing.T) {
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "digits-run"}}
	e := execution{run: run, began: time.Now(), report: newReport()}
	for _, phase := range []v1alpha1.RunPhase{"", v1alpha1.RunQueued, v1alpha1.RunQueued, v1alpha1.RunFailed} {
		now := run.DeepCopy()
		now.Status = v1alpha1.RunStatus{Phase: phase, Message: "because"}
		e.admin = builder(t).WithObjects(now).Build()
		ended, err := e.look(t.Context())
		if err != nil || ended != (phase == v1alpha1.RunFailed) {
			t.Fatalf("ended %t in phase %s (%v)", ended, phase, err)
		}
	}
	if got := e.report.Timeline; len(got) != 2 || got[0].What != "Run Queued" || got[1].What != "Run Failed" || got[1].Why != "because" {
		t.Errorf("the timeline tells of %v", got)
	}
	if err := e.conclude(t.Context()); err == nil || err.Error() != "the Run ended as Failed: because" {
		t.Errorf("got %v", err)
	}
}
