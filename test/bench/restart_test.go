// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/test/auditlog"
	"github.com/mlbatch/mlbatch/test/bench"
)

func TestARestartIsTimedFromTheKill(t *testing.T) {
	killed := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	request := func(who, verb, resource string, after time.Duration) auditlog.Request {
		r := auditlog.Request{Verb: verb, RequestReceivedTimestamp: killed.Add(after).Format(time.RFC3339Nano)}
		r.User.Username, r.ObjectRef.Resource = "system:serviceaccount:mlbatch-system:"+who, resource
		return r
	}
	requests := []auditlog.Request{
		request(bench.Ours, "create", "jobs", -time.Minute),
		request(bench.Ours, "create", "jobs", 50*time.Millisecond), // sent before
		request("kueue", "create", "jobs", time.Second),
		request(bench.Ours, "list", "jobs", time.Second), // fills a cache
		request(bench.Ours, "create", "jobs", 3*time.Second),
		request(bench.Ours, "create", "jobs", 2500*time.Millisecond),
	}
	first := bench.FirstAct(requests, killed)
	if first != 2.5 {
		t.Errorf("the first act is after %v seconds, want 2.5", first)
	}
	got := (&bench.Restart{Running: 1, Beginning: 2, First: first, All: 4, Duplicates: 3}).String()
	want := "1 AppWrappers ran, and 2 were to begin, when the process of the controller was killed.\n" +
		"The next process acted 2.50 seconds later for the first time. All ran 4.00 seconds after the kill.\nJobs that were created twice: 3.\n"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
