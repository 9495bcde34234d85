// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

func TestTheStatusFileFollowsEvents(t *testing.T) {
	r := newReporter(t.TempDir())
	stale, end := context.WithCancel(t.Context())
	end()
	for _, step := range []struct {
		name string
		do   func()
		want plan.Status
	}{
		{"a program is waited for", func() { r.waiting("etcd") }, plan.Status{Waiting: "etcd"}},
		{"all are ready", r.ready, plan.Status{Ready: true}},
		{
			"a program ends", func() { r.ended("etcd", "ended with exit status 1") },
			plan.Status{Ready: true, Restarts: map[string]int{"etcd": 1}, Failing: map[string]string{"etcd": "ended with exit status 1"}},
		},
		{
			"it was ready, but before that", func() { r.recovered(stale, "etcd") },
			plan.Status{Ready: true, Restarts: map[string]int{"etcd": 1}, Failing: map[string]string{"etcd": "ended with exit status 1"}},
		},
		{"it is ready again", func() { r.recovered(t.Context(), "etcd") }, plan.Status{Ready: true, Restarts: map[string]int{"etcd": 1}}},
		{
			"a plan cannot be followed", func() { r.fail(os.ErrClosed) },
			plan.Status{Ready: true, Error: os.ErrClosed.Error(), Restarts: map[string]int{"etcd": 1}},
		},
		{"another plan is followed", func() { r.following(2) }, plan.Status{Revision: 2, Restarts: map[string]int{"etcd": 1}}},
	} {
		step.do()
		if diff := cmp.Diff(step.want, readStatus(t, r.dir)); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}

// On a full disk the status cannot be saved. It must be saved later.
func TestAFailedStatusWriteIsRetried(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	r := newReporter(dir)
	r.ended("etcd", "ended with exit status 1") // there is no folder yet
	r.ready()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var status plan.Status
	until(t, "the status is saved", func() bool { return plan.Read(dir, plan.StatusFile, &status) == nil })
	if !status.Ready || status.Restarts["etcd"] != 1 {
		t.Errorf("the status is %+v", status)
	}
}
