// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/patience"
)

var alone = flag.Duration("faults.alone", 15*time.Second, "how long healthy work runs before the first fault, and must raise nothing")

// raiseNothing: nothing is written about healthy work that is alone, and no event is made, of it or of nodes.
func (b *bystanders) raiseNothing(t *testing.T, d time.Duration) {
	t.Helper()
	until(t, time.Minute, "the last thing about healthy work is written", func(context.Context) error {
		return b.written(time.Now().Add(-patience.For(5 * time.Second)))
	})
	since, before := time.Now(), ourEvents(t)
	for end := since.Add(d); time.Now().Before(end) && !t.Failed(); {
		time.Sleep(min(time.Minute, time.Until(end)))
		if err := b.written(since); err != nil {
			t.Error(err)
		}
		if got := ourEvents(t); len(got) > len(before) {
			t.Errorf("there are %d events more after %s:\n%s", len(got)-len(before), time.Since(since).Round(time.Second), got)
		}
	}
	b.areUntouched(t, fmt.Sprintf("%s alone", d))
	t.Logf("%d healthy jobs ran alone for %s: nothing was written, and there was no event", len(b.jobs), d)
}

// written returns an error if something has been written about a job since then.
func (b *bystanders) written(since time.Time) error {
	for _, j := range b.jobs {
		if l, ok := j.first(since, func(*workload.AppWrapper) bool { return true }); ok {
			return fmt.Errorf("%s was written: %s %s", j.name, l.aw.Status.Phase, why(l.aw))
		}
	}
	return nil
}

// ourEvents are those of our controller, in all namespaces.
func ourEvents(t *testing.T) (all []string) {
	t.Helper()
	events := &eventsv1.EventList{}
	if err := admin.List(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.ReportingController == "appwrappers" {
			all = append(all, fmt.Sprintf("%s %s: %s %s\n", e.Regarding.Kind, e.Regarding.Name, e.Reason, e.Note))
		}
	}
	return all
}
