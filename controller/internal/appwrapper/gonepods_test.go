// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/test/given"
)

// attempted is a running AppWrapper of one component with two pod sets.
func attempted(remembered ...int32) *observation {
	o := &observation{aw: given.AppWrapper("a").Build()}
	o.aw.Status.Conditions = []metav1.Condition{{Type: string(v1beta2.ResourcesDeployed), Status: metav1.ConditionTrue, LastTransitionTime: metav1.Unix(1000, 0)}}
	o.aw.Status.Phase = v1beta2.AppWrapperRunning
	o.aw.Status.ComponentStatus = []v1beta2.AppWrapperComponentStatus{{PodSets: make([]v1beta2.AppWrapperPodSet, 2), SucceededPods: remembered}}
	o.snapshot.Status = *o.aw.Status.DeepCopy()
	o.snapshot.Components = make([]lifecycle.Component, 1)
	return o
}

// attemptedUntil also has the resourceVersion up to which its status counts.
func attemptedUntil(until string, remembered ...int32) *observation {
	o := attempted(remembered...)
	o.snapshot.Status.ComponentStatus[0].SucceededPodsUntil = until
	return o
}

func podOfAttempt(uid types.UID, podSet, attempt string, phase corev1.PodPhase) *corev1.Pod {
	p := pod(string(uid), phase)
	p.UID, p.Labels[v1beta2.AppWrapperPodSetLabel], p.Labels[v1beta2.AttemptLabel] = uid, podSet, attempt
	return p
}

// deletedFirst: the pod had succeeded a second after somebody deleted it.
func deletedFirst(succeeded *corev1.Pod) *corev1.Pod {
	p, deleted := succeeded.DeepCopy(), metav1.Unix(4000, 0)
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &deleted, new(int64(0))
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Unix(4001, 0)}}}}
	return p
}

func TestWhatTheWatchToldOfGonePods(t *testing.T) {
	now := time.Unix(5000, 0)
	attempt := attemptLabel(attempted().aw)
	done := podOfAttempt("1", "1", attempt, corev1.PodSucceeded)
	for sentence, tc := range map[string]struct {
		gone       []*corev1.Pod
		remembered []int32
		want       []int
		last       time.Time
	}{
		"one that has succeeded":          {[]*corev1.Pod{done}, nil, []int{0, 1}, time.Time{}},
		"two handlers tell of one":        {[]*corev1.Pod{done, done}, nil, []int{0, 1}, time.Time{}},
		"one of another attempt":          {[]*corev1.Pod{podOfAttempt("1", "1", "uid-of-a.999", corev1.PodSucceeded)}, nil, nil, time.Time{}},
		"one of an older release":         {[]*corev1.Pod{podOfAttempt("1", "1", "", corev1.PodSucceeded)}, nil, nil, time.Time{}},
		"one of an unknown pod set":       {[]*corev1.Pod{podOfAttempt("1", "", attempt, corev1.PodSucceeded)}, nil, nil, time.Time{}},
		"one that has failed":             {[]*corev1.Pod{podOfAttempt("1", "1", attempt, corev1.PodFailed)}, nil, nil, time.Time{}},
		"one that succeeded when deleted": {[]*corev1.Pod{deletedFirst(done)}, nil, nil, now},
		"one that ran":                    {[]*corev1.Pod{podOfAttempt("1", "1", attempt, corev1.PodRunning)}, nil, nil, now},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHeard(func() time.Time { return now })
			for _, p := range tc.gone {
				h.handler().OnDelete(p)
			}
			for look := range 2 { // what was saved is not added again
				o := attempted(tc.remembered...)
				if look > 0 && tc.want != nil {
					o = attempted(int32(tc.want[0]), int32(tc.want[1]))
				}
				h.gone.observe(o)
				if diff := cmp.Diff(tc.want, o.snapshot.Components[0].Gone); diff != "" || !o.snapshot.LastGone.Equal(tc.last) {
					t.Errorf("in look %d, last at %s (-want +got):\n%s", look, o.snapshot.LastGone, diff)
				}
			}
		})
	}
}

// A standby hears of the same pods as the process that leads, and counts when it takes over. What the status counts
// says up to which deletion it does.
func TestAStandbyCountsNoPodTwice(t *testing.T) {
	attempt := attemptLabel(attempted().aw)
	gone := func(uid types.UID, version string) *corev1.Pod {
		p := podOfAttempt(uid, "1", attempt, corev1.PodSucceeded)
		p.ResourceVersion = version
		return p
	}
	for sentence, tc := range map[string]struct {
		heard []*corev1.Pod
		saved *observation
		want  []int
		until string
	}{
		"both heard of the same pod":                     {[]*corev1.Pod{gone("1", "7")}, attemptedUntil("7", 0, 1), nil, ""},
		"nothing was saved":                              {[]*corev1.Pod{gone("1", "7")}, attemptedUntil(""), []int{0, 1}, "7"},
		"one went after the save":                        {[]*corev1.Pod{gone("1", "7"), gone("2", "10")}, attemptedUntil("7", 0, 1), []int{0, 2}, "10"},
		"one went before it was a standby":               {[]*corev1.Pod{gone("2", "10")}, attemptedUntil("7", 0, 1), []int{0, 2}, "10"},
		"one went before it was a standby, one was both": {[]*corev1.Pod{gone("2", "8"), gone("3", "12")}, attemptedUntil("8", 2, 2), []int{2, 3}, "12"},
		"what an older release saved":                    {[]*corev1.Pod{gone("1", "7"), gone("2", "8")}, attemptedUntil("", 0, 1), []int{0, 2}, "8"},
		"an older release saw more":                      {[]*corev1.Pod{gone("1", "7")}, attemptedUntil("", 0, 3), nil, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			standby := newHeard(time.Now)
			for _, p := range tc.heard {
				standby.handler().OnDelete(p)
			}
			for look := range 2 { // what was saved is not added again
				standby.gone.observe(tc.saved)
				c := tc.saved.snapshot.Components[0]
				if diff := cmp.Diff(tc.want, c.Gone); diff != "" || c.GoneUntil != tc.until {
					t.Fatalf("in look %d until %q (-want +got):\n%s", look, c.GoneUntil, diff)
				}
				if tc.want != nil {
					tc.saved = attemptedUntil(tc.until, int32(tc.want[0]), int32(tc.want[1]))
				}
			}
		})
	}
}

// A new process knows of nothing that went before it.
func TestTheFirstInterruptionIsKept(t *testing.T) {
	now, deleted := time.Unix(5000, 0), metav1.Unix(4000, 0)
	h, attempt := newHeard(func() time.Time { return now }), attemptLabel(attempted().aw)
	for i, phase := range []corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodFailed} {
		p := podOfAttempt(types.UID(phase)+types.UID(rune('0'+i)), "1", attempt, phase)
		if at := metav1.NewTime(deleted.Add(-time.Duration(i) * time.Minute)); i < 3 {
			p.DeletionTimestamp = &at
		}
		h.handler().OnDelete(p)
	}
	o := attempted()
	h.gone.observe(o)
	if want := deleted.Add(time.Second - 2*time.Minute); !o.snapshot.Interrupted.Equal(want) || !o.snapshot.WatchedSince.Equal(now) {
		t.Errorf("interrupted at %s, not %s; watched since %s", o.snapshot.Interrupted, want, o.snapshot.WatchedSince)
	}
	other := attempted()
	newHeard(func() time.Time { return now }).gone.observe(other)
	if !other.snapshot.WatchedSince.Equal(now) || !other.snapshot.Interrupted.IsZero() {
		t.Errorf("a new process watches since %s, and knows of an interruption at %s", other.snapshot.WatchedSince, other.snapshot.Interrupted)
	}
}

// What the cache keeps of templates, and drops from stored objects.
func TestTurnsAreKeptOfTemplates(t *testing.T) {
	for sentence, tc := range map[string]struct {
		template string
		want     bool
	}{
		"pods that come in turn":  {`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"s"},"spec":{"template":{"spec":{}}}}`, true},
		"pods that come together": {`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"s"},"spec":{"podManagementPolicy":"Parallel","template":{"spec":{}}}}`, false},
		"pods of a work queue":    {`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"s"},"spec":{"parallelism":2,"template":{"spec":{}}}}`, true},
		"pods that always do":     {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"s"},"spec":{"template":{"spec":{}}}}`, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			aw := attempted().aw
			aw.Annotations = map[string]string{turnsAnnotation: "what somebody stored", endsAnnotation: "this, too"}
			aw.Spec.Components = []v1beta2.AppWrapperComponent{{}}
			aw.Spec.Components[0].Template.Raw = []byte(tc.template)
			in := newInterner()
			for look := range 2 { // the cache may be given what it has slimmed already
				if _, err := in.slimAppWrapper(aw); err != nil {
					t.Fatal(err)
				}
				o := &observation{aw: aw}
				o.snapshot.Components = make([]lifecycle.Component, 1)
				o.observeTurns()
				c := o.snapshot.Components[0]
				if got := len(c.Turns)+len(c.Ends) > 0; got != tc.want {
					t.Errorf("in look %d: %v, %v", look, c.Turns, c.Ends)
				}
			}
		})
	}
}
