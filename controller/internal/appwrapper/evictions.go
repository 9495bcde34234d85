// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// evictions are the pods that Kubernetes has evicted from their nodes, as their watch told. Like
// lastStates they belong to the cache, which forgets a pod before its owner reports a failure. A
// replica that waits to be the leader hears of them, too; a new process knows none that are gone.
type evictions struct {
	mu            sync.Mutex // one at a time notes
	ofAppWrappers *lru.Cache // of []eviction, which do not change
}

// eviction is one pod.
type eviction struct {
	pod types.UID
	lifecycle.Eviction
}

const (
	// evictionsKept is of how many AppWrappers. What was used last stays.
	evictionsKept = 1000
	// evictionsKeptOfEach is enough: one pod of a gang explains the failure of all.
	evictionsKeptOfEach = 8
)

func newEvictions() *evictions {
	return &evictions{ofAppWrappers: lru.New(evictionsKept)}
}

// of are those of an AppWrapper, or of an earlier one of its name.
func (e *evictions) of(aw types.NamespacedName) []eviction {
	known, _ := e.ofAppWrappers.Get(aw)
	all, _ := known.([]eviction)
	return all
}

// note remembers a pod if it is evicted.
func (e *evictions) note(pod *corev1.Pod, gone bool) {
	cause, since, evicted := nodehealth.Eviction(pod)
	if !evicted || pod.Spec.NodeName == "" || !leaves(pod, since, gone) {
		return
	}
	component, err := strconv.Atoi(pod.Labels[v1beta2.AppWrapperComponentLabel])
	if err != nil {
		component = lifecycle.UnknownComponent
	}
	e.add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1beta2.AppWrapperLabel]},
		eviction{pod.UID, lifecycle.Eviction{Component: component, Node: pod.Spec.NodeName, Because: cause, At: since}})
}

// leaves: the eviction is being carried out, or was. A pod that had ended by itself before was not
// stopped by it.
func leaves(pod *corev1.Pod, since time.Time, gone bool) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return false
	case corev1.PodFailed:
		return !endOf(pod).Before(since)
	}
	return gone || !pod.DeletionTimestamp.IsZero()
}

// add keeps the latest.
func (e *evictions) add(aw types.NamespacedName, found eviction) {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.of(aw)
	full := len(known) == evictionsKeptOfEach
	if full && !found.At.After(known[0].At) || slices.ContainsFunc(known, func(old eviction) bool { return old.pod == found.pod }) {
		return
	}
	all := append(slices.Clone(known), found)
	slices.SortStableFunc(all, func(a, b eviction) int { return a.At.Compare(b.At) })
	e.ofAppWrappers.Add(aw, all[max(0, len(all)-evictionsKeptOfEach):])
}

// observeEvictions adds what the pods tell that are still there, in the cache or live, to what was heard
// of others. The lifecycle knows which of them count.
func (r *Reconciler) observeEvictions(o *observation) {
	if !r.rules.Monitored {
		return
	}
	for i := range o.pods {
		r.heard.evictions.note(&o.pods[i], false)
	}
	o.snapshot.Evictions = nil
	for _, e := range r.heard.evictions.of(client.ObjectKeyFromObject(o.aw)) {
		o.snapshot.Evictions = append(o.snapshot.Evictions, e.Eviction)
	}
}
