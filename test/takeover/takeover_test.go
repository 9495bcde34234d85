// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package takeover_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

func TestControllersTakeEachOthersPlace(t *testing.T) {
	s := newSite(t)
	s.prepare(t)
	s.create(t, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: full, Name: "no-services"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/services": resource.MustParse("0")}},
	})
	all := lives()
	theirs := s.startTheirs(t)
	for _, l := range all {
		l.begin(t, s)
	}
	for _, l := range all {
		l.then(s, t, l)
		s.awaitPhase(t, l, l.phase)
	}
	t.Log("upstream has brought an AppWrapper into every phase")

	ours := s.startOurs(t)
	await(t, "ours says who else is at work", func() error {
		return ours.says("holds the Lease f134c674.codeflare.dev in namespace " + theirNamespace)
	})
	before := s.world(t, all)
	theirs.end(t, syscall.SIGKILL)
	untouched := s.aNewOne(t, "untouched", workload.AppWrapperSuspended)
	s.awaitPhase(t, untouched, workload.AppWrapperSuspended)
	taken := s.hasLookedAtAll(t, "ours")
	s.unchanged(t, "from upstream to ours", all, before)

	all = append(all, taken...)
	before = s.world(t, all)
	ours.end(t, syscall.SIGTERM)
	theirs = s.startTheirs(t)
	s.hasLookedAtAll(t, "theirs")
	s.unchanged(t, "from ours to upstream", all, before)
	s.podsEnd(t, taken[0])
	s.awaitPhase(t, taken[0], workload.AppWrapperSucceeded)
	s.isUnsuspended(t, untouched)
	s.awaitPhase(t, untouched, workload.AppWrapperRunning)
	t.Log("upstream goes on with what ours has begun")

	before = s.world(t, all)
	theirs.end(t, syscall.SIGKILL)
	s.upgrade(t)
	s.startOurs(t)
	s.hasLookedAtAll(t, "ours-again")
	s.unchanged(t, "from upstream to ours again, with our definition", all, before)
	s.liveOn(t, all)
}

// liveOn continues each life under our controller.
func (s *site) liveOn(t *testing.T, all []*life) {
	named := map[string]*life{}
	for _, l := range all {
		named[l.name] = l
	}
	creating := s.jobs(t, named["creating"])[0].UID
	for _, step := range []struct {
		name string
		then func(*testing.T, *life)
		want workload.AppWrapperPhase // "" means that it is gone
	}{
		{"waiting", s.isUnsuspended, workload.AppWrapperRunning},
		{"creating", s.quotaIsLifted, workload.AppWrapperRunning},
		{"running", s.podsEnd, workload.AppWrapperSucceeded},
		{"generated", s.isSuspended, workload.AppWrapperSuspended},
		{"pausing", s.annotated("retryPausePeriodDuration", "1s"), workload.AppWrapperRunning},
		{"suspending", s.released, workload.AppWrapperSuspended},
		{"done", s.delete, ""},
		{"kept", s.annotated("deletionOnFailureGracePeriodDuration", "0s"), workload.AppWrapperFailed},
		{"failed", s.delete, ""},
		{"leaving", s.released, ""},
	} {
		l := named[step.name]
		step.then(t, l)
		if step.want == "" {
			s.awaitGone(t, l)
			continue
		}
		s.awaitPhase(t, l, step.want)
	}
	for _, name := range []string{"generated", "suspending", "kept"} {
		s.hasNoJob(t, named[name])
	}
	if again := s.jobs(t, named["creating"])[0].UID; again != creating {
		t.Errorf("the UID of the Job in creation was %s and is %s", creating, again)
	}
	if got := s.summary(t, named["pausing"]); !strings.HasPrefix(got, "Running, 1 retries") {
		t.Errorf("after the pause: %s", got)
	}
}

// says returns an error unless the controller's log has the text.
func (c *controller) says(text string) error {
	log, err := os.ReadFile(c.log)
	if err == nil && !strings.Contains(string(log), text) {
		err = fmt.Errorf("its log has no %q", text)
	}
	return err
}

// aNewOne creates an AppWrapper of a Job with two pods.
func (s *site) aNewOne(t *testing.T, name string, phase workload.AppWrapperPhase) *life {
	l := &life{namespace: open, name: name, component: job(name), phase: phase}
	l.begin(t, s)
	return l
}

// hasLookedAtAll waits until the controller has reconciled all AppWrappers that existed when it
// started. It has done so when two new ones, created one after the other, run.
func (s *site) hasLookedAtAll(t *testing.T, who string) []*life {
	var both []*life
	for _, name := range []string{"first-of-" + who, "second-of-" + who} {
		l := s.aNewOne(t, name, workload.AppWrapperRunning)
		s.awaitPhase(t, l, workload.AppWrapperRunning)
		s.hasRunningPods(t, l)
		both = append(both, l)
	}
	return both
}

func (s *site) world(t *testing.T, all []*life) map[string]string {
	world := map[string]string{}
	for _, l := range all {
		world[l.name] = s.summary(t, l)
	}
	return world
}

func (s *site) unchanged(t *testing.T, way string, all []*life, before map[string]string) {
	t.Helper()
	after := s.world(t, all)
	for _, l := range all {
		t.Logf("%s: %s: %s", way, l.name, after[l.name])
		if before[l.name] != after[l.name] {
			t.Errorf("%s: %s was %s", way, l.name, before[l.name])
		}
	}
}
