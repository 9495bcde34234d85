// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"hash/maphash"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// gonePods are pods that the cache has no more, by attempt, as their watch told: how many had succeeded, when the last
// one went that had not ended by itself, and when the first was interrupted. The status remembers how many from the
// next look on. A new process knows nothing of the rest, so the grace of what its operator replaces begins earlier, and
// nobody blames the program of an attempt that is older than the process.
type gonePods struct {
	mu       sync.Mutex
	attempts *lru.Cache // of *goneOfAttempt, by the label of the attempt
	now      func() time.Time
	since    time.Time
}

type goneOfAttempt struct {
	// seen are the pods that were counted, because more than one handler of the watch may tell of them.
	seen map[uint64]struct{}
	// succeeded are those that went since this process looks, and before are those that the status had at its
	// first look.
	succeeded map[[2]int]int
	before    []v1beta2.AppWrapperComponentStatus
	lastGone  time.Time
	// interrupted is when the first was.
	interrupted time.Time
}

// attemptsKept is of how many attempts. What was used last stays.
const attemptsKept = 1000

func newGonePods(now func() time.Time) *gonePods {
	return &gonePods{attempts: lru.New(attemptsKept), now: now, since: now()}
}

var seedOfUIDs = maphash.MakeSeed()

// note counts a pod that is gone.
func (g *gonePods) note(pod *corev1.Pod) {
	attempt, interrupted := pod.Labels[v1beta2.AttemptLabel], interruptedAt(pod)
	if attempt == "" || pod.Status.Phase == corev1.PodFailed && interrupted.IsZero() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	gone := g.of(attempt)
	gone.interrupt(interrupted)
	if pod.Status.Phase == corev1.PodFailed {
		return
	}
	uid := maphash.String(seedOfUIDs, string(pod.UID))
	if _, known := gone.seen[uid]; known {
		return
	}
	gone.seen[uid] = struct{}{}
	if pod.Status.Phase != corev1.PodSucceeded || !interrupted.IsZero() {
		gone.lastGone = g.now()
		return
	}
	component, err := strconv.Atoi(pod.Labels[v1beta2.AppWrapperComponentLabel])
	if podSet := podSetOf(pod); err == nil && podSet != lifecycle.UnknownPodSet {
		gone.succeeded[[2]int{component, podSet}]++
	}
}

func (g *goneOfAttempt) interrupt(at time.Time) {
	if !at.IsZero() && (g.interrupted.IsZero() || at.Before(g.interrupted)) {
		g.interrupted = at
	}
}

func (g *gonePods) of(attempt string) *goneOfAttempt {
	if known, ok := g.attempts.Get(attempt); ok {
		return known.(*goneOfAttempt)
	}
	gone := &goneOfAttempt{seen: map[uint64]struct{}{}, succeeded: map[[2]int]int{}}
	g.attempts.Add(attempt, gone)
	return gone
}

// observe adds what went to the snapshot of a running AppWrapper. What this process counts comes on top of what
// the status had when it began to, so a count that was saved is not added again.
func (g *gonePods) observe(o *observation) {
	if o.snapshot.Status.Phase != v1beta2.AppWrapperRunning {
		return
	}
	o.snapshot.WatchedSince = g.since
	g.mu.Lock()
	defer g.mu.Unlock()
	known, ok := g.attempts.Get(attemptLabel(o.aw))
	if !ok {
		return
	}
	gone := known.(*goneOfAttempt)
	if gone.before == nil {
		gone.before = o.snapshot.Status.DeepCopy().ComponentStatus
	}
	o.snapshot.LastGone, o.snapshot.Interrupted = gone.lastGone, gone.interrupted
	for i := range o.snapshot.Components {
		o.snapshot.Components[i].Gone = gone.ofComponent(i)
	}
}

// ofComponent is nil if none of component i has succeeded and is gone.
func (g *goneOfAttempt) ofComponent(i int) []int {
	if i >= len(g.before) {
		return nil
	}
	before := g.before[i]
	counts, some := make([]int, len(before.PodSets)), false
	for j := range counts {
		counts[j] = g.succeeded[[2]int{i, j}]
		some = some || counts[j] > 0
		if j < len(before.SucceededPods) {
			counts[j] += int(before.SucceededPods[j])
		}
	}
	if !some {
		return nil
	}
	return counts
}
