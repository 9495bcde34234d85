// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

var began = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// status is in a phase, with conditions.
func status(phase v1beta2.AppWrapperPhase, conditions ...metav1.Condition) v1beta2.AppWrapperStatus {
	return v1beta2.AppWrapperStatus{Phase: phase, Conditions: conditions}
}

func is(kind v1beta2.AppWrapperCondition, reason string) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: metav1.ConditionTrue, Reason: reason}
}

func isNot(kind v1beta2.AppWrapperCondition, reason string) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: metav1.ConditionFalse, Reason: reason}
}

func TestTheDocumentationHasEveryClass(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "fault-tolerance.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, class := range Classes() {
		field := strings.ToLower(string(class[:1])) + string(class[1:]) + "Seconds"
		if row := "| `" + string(class) + "` | `" + field + "` |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/fault-tolerance.md has no row %s", row)
		}
	}
}

var quota = is(v1beta2.QuotaReserved, "Resuming")

// Quota was reserved, and a minute has passed.
func TestTheClassOfAMinute(t *testing.T) {
	deleting := is(v1beta2.DeletingResources, v1beta2.ReasonDeletionInitiated)
	for what, row := range map[string]struct {
		before v1beta2.AppWrapperStatus
		want   Class
	}{
		"components are created":         {status(v1beta2.AppWrapperResuming, quota, isNot(v1beta2.PodsReady, "Resuming")), Starting},
		"pods start":                     {status(v1beta2.AppWrapperRunning, quota, isNot(v1beta2.PodsReady, "Resuming")), Starting},
		"pods start after a migration":   {status(v1beta2.AppWrapperRunning, quota, isNot(v1beta2.PodsReady, v1beta2.ReasonAutopilotNoExecute)), Starting},
		"pods run":                       {status(v1beta2.AppWrapperRunning, quota, is(v1beta2.PodsReady, v1beta2.ReasonSufficientPodsReady)), InFlight},
		"a pod is lost":                  {status(v1beta2.AppWrapperRunning, quota, isNot(v1beta2.PodsReady, v1beta2.ReasonInsufficientPodsReady)), InFlight},
		"nobody uses the devices":        {status(v1beta2.AppWrapperRunning, quota, is(v1beta2.PodsReady, v1beta2.ReasonSufficientPodsReady), is(v1beta2.Idle, v1beta2.ReasonDevicesIdle)), Idle},
		"somebody does again":            {status(v1beta2.AppWrapperRunning, quota, is(v1beta2.PodsReady, v1beta2.ReasonSufficientPodsReady), isNot(v1beta2.Idle, v1beta2.ReasonDevicesUsed)), InFlight},
		"all succeeded, and pods run on": {status(v1beta2.AppWrapperRunning, quota, is(v1beta2.PodsReady, ""), deleting), Ending},
		"components are removed":         {status(v1beta2.AppWrapperResetting, quota, deleting), Ending},
		"nothing is left":                {status(v1beta2.AppWrapperResetting, quota), Pausing},
		"quota is given back":            {status(v1beta2.AppWrapperSuspending, quota, deleting), Ending},
		"and nothing is left":            {status(v1beta2.AppWrapperSuspending, quota), Ending},
		"a failure is held":              {status(v1beta2.AppWrapperFailed, quota), Held},
		"a failure is removed":           {status(v1beta2.AppWrapperFailed, quota, deleting), Ending},
		"it is being deleted":            {status(v1beta2.AppWrapperTerminating, quota), Ending},
	} {
		row.before.Usage = &v1beta2.AppWrapperUsage{At: metav1.Time{Time: began}}
		want := *row.before.Usage
		*In(&want, row.want), want.At = 60, metav1.Time{Time: began.Add(time.Minute)}
		if diff := cmp.Diff(want, Until(row.before, began.Add(time.Minute+300*time.Millisecond))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
}

// An attempt has worked for an hour.
func TestAnAttemptIsSplitWhenItEnds(t *testing.T) {
	for what, row := range map[string]struct {
		after      v1beta2.AppWrapperStatus
		checkpoint time.Duration // before the end
		useful     int64
		class      Class
	}{
		"it succeeds":                    {status(v1beta2.AppWrapperSucceeded), 0, 3600, Useful},
		"its user deletes it":            {status(v1beta2.AppWrapperTerminating, quota), 0, 3600, Useful},
		"its node is bad":                {status(v1beta2.AppWrapperResetting, quota, is(v1beta2.Unhealthy, v1beta2.ReasonAutopilotNoExecute)), 0, 0, LostToNode},
		"it fails, and is retried":       {status(v1beta2.AppWrapperResetting, quota, is(v1beta2.Unhealthy, v1beta2.ReasonFailedComponent)), 0, 0, LostToFailure},
		"it hangs":                       {status(v1beta2.AppWrapperResetting, quota, is(v1beta2.Unhealthy, v1beta2.ReasonNoProgress)), 0, 0, LostToHang},
		"it fails for good":              {status(v1beta2.AppWrapperFailed, quota, is(v1beta2.Unhealthy, v1beta2.ReasonFailedComponent)), 0, 0, LostToFailure},
		"it is preempted":                {status(v1beta2.AppWrapperSuspending, quota), 0, 0, LostToPreemption},
		"it was idle":                    {status(v1beta2.AppWrapperSuspending, quota, is(v1beta2.Idle, v1beta2.ReasonDevicesIdle)), 0, 3600, Useful},
		"since a checkpoint":             {status(v1beta2.AppWrapperSuspending, quota), 10 * time.Minute, 3000, LostToPreemption},
		"a checkpoint of an attempt ago": {status(v1beta2.AppWrapperSuspending, quota), 2 * time.Hour, 0, LostToPreemption},
		"a checkpoint of the future":     {status(v1beta2.AppWrapperSuspending, quota), -time.Hour, 3600, LostToPreemption},
		"it goes on":                     {status(v1beta2.AppWrapperRunning, quota), 0, 0, InFlight},
	} {
		now := began.Add(time.Hour)
		before := status(v1beta2.AppWrapperRunning, quota, is(v1beta2.PodsReady, v1beta2.ReasonSufficientPodsReady))
		before.Usage = &v1beta2.AppWrapperUsage{At: metav1.Time{Time: began}}
		checkpoint := time.Time{}
		if row.checkpoint != 0 {
			checkpoint = now.Add(-row.checkpoint)
		}
		want := v1beta2.AppWrapperUsage{At: metav1.Time{Time: now}, UsefulSeconds: row.useful}
		*In(&want, row.class) += 3600 - row.useful
		if diff := cmp.Diff(&want, Post(before, row.after, Facts{Checkpoint: checkpoint}, now)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
}

// It works, and is looked at again an hour later. Meanwhile it was deleted.
func TestWhatComesAfterTheDeletionIsEnding(t *testing.T) {
	for what, row := range map[string]struct {
		deleted time.Duration // before now
		want    v1beta2.AppWrapperUsage
	}{
		"ten minutes ago":                    {10 * time.Minute, v1beta2.AppWrapperUsage{UsefulSeconds: 3000, EndingSeconds: 600}},
		"just now":                           {0, v1beta2.AppWrapperUsage{UsefulSeconds: 3600}},
		"according to a clock that is ahead": {-time.Minute, v1beta2.AppWrapperUsage{UsefulSeconds: 3600}},
		"before the status was saved":        {2 * time.Hour, v1beta2.AppWrapperUsage{EndingSeconds: 3600}},
	} {
		now := began.Add(time.Hour)
		before := status(v1beta2.AppWrapperRunning, quota, is(v1beta2.PodsReady, v1beta2.ReasonSufficientPodsReady))
		before.Usage = &v1beta2.AppWrapperUsage{At: metav1.Time{Time: began}}
		row.want.At = metav1.Time{Time: now}
		after := status(v1beta2.AppWrapperTerminating, quota)
		if diff := cmp.Diff(&row.want, Post(before, after, Facts{Deleted: now.Add(-row.deleted)}, now)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
}

func TestWhenThereAreNoBooks(t *testing.T) {
	waits, starts := status(v1beta2.AppWrapperSuspended), status(v1beta2.AppWrapperResuming, quota)
	if got := Post(waits, waits, Facts{}, began); got != nil {
		t.Errorf("while it waits for its first quota: %+v", got)
	}
	want := &v1beta2.AppWrapperUsage{At: metav1.Time{Time: began}}
	for what, before := range map[string]v1beta2.AppWrapperStatus{"with the first quota": waits, "after somebody dropped them": starts} {
		if diff := cmp.Diff(want, Post(before, starts, Facts{}, began)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
	if Lost(waits, time.Time{}, began) != 0 || Sum(Until(waits, began)) != 0 {
		t.Error("what waits has used nothing")
	}
}

// An AppWrapper gets quota. Earlier quota was given back an hour ago.
func TestSinceWhenTimeCounts(t *testing.T) {
	for what, row := range map[string]struct {
		reserved time.Duration // before now
		want     int64
	}{
		"Kueue waited for a check":             {10 * time.Minute, 600},
		"its clock is ahead":                   {-time.Second, 0},
		"it has never given the quota away":    {2 * time.Hour, 3600},
		"nobody knows when it was reserved":    {0, 0},
		"its clock is ahead by more than that": {-time.Hour, 0},
	} {
		facts := Facts{}
		if row.reserved != 0 {
			facts.Reserved = began.Add(-row.reserved)
		}
		waits, starts := status(v1beta2.AppWrapperSuspended), status(v1beta2.AppWrapperResuming, quota)
		waits.Usage = &v1beta2.AppWrapperUsage{At: metav1.Time{Time: began.Add(-time.Hour)}, UsefulSeconds: 7}
		got := Post(waits, starts, facts, began)
		if got.StartingSeconds != row.want || got.UsefulSeconds != 7 {
			t.Errorf("%s: got %+v", what, got)
		}
	}
}

// It is counted until an hour ago, and another controller kept that when it gave the quota back. Since
// ten minutes there is quota again.
func TestTimeBeforeTheReservationIsNotCounted(t *testing.T) {
	again := quota
	again.LastTransitionTime = metav1.Time{Time: began.Add(-10 * time.Minute)}
	s := status(v1beta2.AppWrapperResuming, again)
	s.Usage = &v1beta2.AppWrapperUsage{At: metav1.Time{Time: began.Add(-time.Hour)}}
	if got := Until(s, began); got.StartingSeconds != 600 {
		t.Errorf("got %+v", got)
	}
}

// Two leaders whose clocks differ count no second twice, and none that was not.
func TestClocks(t *testing.T) {
	for what, row := range map[string]struct {
		ahead time.Duration // of the leader before
		want  int64         // in the two minutes after
	}{
		"are the same":                      {0, 120},
		"one is ahead":                      {30 * time.Second, 90},
		"one was wrong by an hour":          {time.Hour, 60},
		"one is behind, which counts later": {-30 * time.Second, 150},
	} {
		s := status(v1beta2.AppWrapperResuming, quota)
		s.Usage = &v1beta2.AppWrapperUsage{At: metav1.Time{Time: began.Add(row.ahead)}}
		for range 2 {
			usage := Until(s, began.Add(time.Minute))
			s.Usage = &usage
		}
		if got := Until(s, began.Add(2*time.Minute)); got.StartingSeconds != row.want {
			t.Errorf("%s: got %+v", what, got)
		}
	}
}
