// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/test/stories"
	"github.com/mlbatch/mlbatch/test/troubles"
)

// second is a query of the administrator. Each answer comes a second late.
type second struct {
	says lifecycle.Activity
	// asked is how often it was asked, and about which pods the last time.
	asked int
	pods  []string
	late  bool
}

func (s *second) activity(_ context.Context, _ types.UID, _ string, pods []string) lifecycle.Activity {
	s.asked, s.pods, s.late = s.asked+1, slices.Sorted(slices.Values(pods)), !s.late
	if s.late {
		return lifecycle.ActivityAwaited
	}
	return s.says
}

// jobWithQuery is a job of two pods that has asked to be reset when it hangs for ten minutes.
func jobWithQuery(t *testing.T, says lifecycle.Activity) (*life, *second) {
	t.Helper()
	l := live(t, stories.Story{
		Name: "a job that is watched", MigrationLimit: 10, Components: []stories.Component{{Kind: "Job", Name: "train", Pods: 2}},
		Annotations: map[string]string{v1beta2.NoProgressGracePeriodDurationAnnotation: "10m"},
	}, troubles.Reliable(nil), nil)
	s := &second{says: says}
	l.process.reconciler.activity = s.activity
	l.Admit()
	l.Settle()
	l.StartPods()
	l.Settle()
	return l, s
}

func (l *life) phase() v1beta2.AppWrapperPhase { return l.api.theOne().Status.Phase }

func TestHealthyWorkIsNotAskedAbout(t *testing.T) {
	l, s := jobWithQuery(t, lifecycle.ActivityRests)
	l.Pass(24 * time.Hour)
	l.Hang(0)
	l.Settle()
	l.Pass(9 * time.Minute)
	l.GoOn()
	l.Pass(24 * time.Hour)
	if s.asked > 0 || l.phase() != v1beta2.AppWrapperRunning {
		t.Errorf("it is %s, and there were %d queries", l.phase(), s.asked)
	}
}

// A pod is silent for an hour, and computes. It is told of once, and nothing is read from the API server.
func TestDevicesThatComputeAreAskedAboutSeldom(t *testing.T) {
	l, s := jobWithQuery(t, lifecycle.ActivityComputes)
	l.Hang(0)
	l.Settle()
	l.Pass(11 * time.Minute)
	version, calls := l.api.theOne().ResourceVersion, len(l.wire.Calls)
	l.Pass(time.Hour)
	if now := l.api.theOne(); now.ResourceVersion != version || now.Status.Phase != v1beta2.AppWrapperRunning {
		t.Errorf("it is %s, and was written again", now.Status.Phase)
	}
	if got := len(l.wire.Calls); got != calls {
		t.Errorf("it costs %d calls", got-calls)
	}
	if n := l.told["Warning HangNotConfirmed Watching"]; n != 1 {
		t.Errorf("it is told of %d times", n)
	}
	if s.asked > 2*121+2 {
		t.Errorf("there are %d looks in an hour, each with one answer that is late", s.asked)
	}
	if diff := cmp.Diff(2, len(s.pods)); diff != "" {
		t.Errorf("the query is not about all pods: %q", s.pods)
	}
}

// When the devices do not compute any more, the attempt ends within a minute. So it does without an answer.
func TestWhatComputesNoMoreIsReset(t *testing.T) {
	for _, says := range []lifecycle.Activity{lifecycle.ActivityRests, lifecycle.ActivityUnknown} {
		l, s := jobWithQuery(t, lifecycle.ActivityComputes)
		l.Hang(0)
		l.Settle()
		l.Pass(time.Hour)
		s.says = says
		l.Pass(time.Minute)
		status := l.api.theOne().Status
		if c := meta.FindStatusCondition(status.Conditions, string(v1beta2.Unhealthy)); c.Reason != v1beta2.ReasonNoProgress {
			t.Errorf("a query says %s, and it is %s because of %s", says, status.Phase, c.Reason)
		}
	}
}
