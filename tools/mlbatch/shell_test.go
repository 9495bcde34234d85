// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

// An interruption must not say that the job continues: it is deleted.
func TestAnInterruptedShellDoesNotSayThatTheJobContinues(t *testing.T) {
	c := cluster(t)
	job, err := submit.Shell("0.0.1", map[string]any{"containerImage": "a"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := job.In("blue", ""); err != nil {
		t.Fatal(err)
	}
	if err := job.Create(t.Context(), c, io.Discard); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if _, err := entrance(ctx, c, job, io.Discard); err == nil || err.Error() != "interrupted before the shell opened" {
		t.Errorf("it says %v", err)
	}
}
