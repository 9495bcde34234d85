// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Heard is what the watch of pods told of pods that are gone, or soon will be. A replica that is not the leader
// hears it, too, so that it knows when it takes over.
type Heard struct {
	evictions *evictions
	gone      *gonePods
}

func newHeard(now func() time.Time) *Heard {
	return &Heard{evictions: newEvictions(), gone: newGonePods(now)}
}

// Hear begins before this replica is the leader. The indexes of a cache come before its watch.
func Hear(ctx context.Context, indexer client.FieldIndexer, informers cache.Informers) (*Heard, error) {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, podsByAppWrapper, appWrapperOfPod); err != nil {
		return nil, fmt.Errorf("cannot index pods: %w", err)
	}
	if err := indexer.IndexField(ctx, &corev1.Pod{}, podsByNode, nodeOfPod); err != nil {
		return nil, fmt.Errorf("cannot index pods: %w", err)
	}
	heard := newHeard(time.Now)
	informer, err := informers.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(heard.handler())
	}
	if err != nil {
		return nil, fmt.Errorf("cannot watch pods: %w", err)
	}
	return heard, nil
}

func (h *Heard) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { h.note(object, false) },
		UpdateFunc: func(_, after any) { h.note(after, false) },
		DeleteFunc: func(object any) { h.note(object, true) },
	}
}

// beforeWaking lets who is woken find what was heard: handlers of a watch do not wait for each other.
func (h *Heard) beforeWaking() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(d event.DeleteEvent) bool {
		h.note(d.Object, true)
		return true
	}}
}

func (h *Heard) note(object any, gone bool) {
	last, _ := removed(object)
	pod, ok := last.(*corev1.Pod)
	if !ok {
		return
	}
	h.evictions.note(pod, gone)
	if gone {
		h.gone.note(pod)
	}
}
