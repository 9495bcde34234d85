// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"hash/maphash"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
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
	// succeeded are the resourceVersions with which those of each pod set went that this process heard of, and
	// before is what the status had when it first looked.
	succeeded map[[2]int][]string
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
		at := [2]int{component, podSet}
		gone.succeeded[at] = append(gone.succeeded[at], pod.ResourceVersion)
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
	gone := &goneOfAttempt{seen: map[uint64]struct{}{}, succeeded: map[[2]int][]string{}}
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
		o.snapshot.Components[i].Gone, o.snapshot.Components[i].GoneUntil = gone.ofComponent(i)
	}
}

// ofComponent is nil if none of component i has succeeded and is gone that is not in the status.
func (g *goneOfAttempt) ofComponent(i int) (counts []int, until string) {
	if i >= len(g.before) {
		return nil, ""
	}
	before, some := g.before[i], false
	saved := make([]int, len(before.PodSets))
	for j := range min(len(saved), len(before.SucceededPods)) {
		saved[j] = int(before.SucceededPods[j])
	}
	until = before.SucceededPodsUntil
	for j := range saved {
		heard, last := since(before.SucceededPodsUntil, g.succeeded[[2]int{i, j}])
		count := saved[j] + heard
		if before.SucceededPodsUntil == "" { // an older release does not say which of them it has counted
			count = max(saved[j], heard)
		}
		counts, some, until = append(counts, count), some || count > saved[j], latest(until, last)
	}
	if !some {
		return nil, ""
	}
	return counts, until
}

// since counts the pods that went later than what was saved. While this process was a standby, it heard of others that
// the process counted that saved it.
func since(saved string, versions []string) (count int, last string) {
	for _, version := range versions {
		if latest(saved, version) != saved || saved == "" {
			count, last = count+1, latest(last, version)
		}
	}
	return count, last
}

// latest of two resourceVersions of pods, which the API server counts up. One that is no number is earlier.
func latest(a, b string) string {
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil && order >= 0 {
		return a
	}
	if _, err := resourceversion.CompareResourceVersion(b, b); err != nil {
		return a
	}
	return b
}
