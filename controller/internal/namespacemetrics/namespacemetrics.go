// SPDX-License-Identifier: Apache-2.0

// Package namespacemetrics answers one question: which namespaces do metrics still need? Where each test of a CI has a
// namespace of its own, the series of a controller would grow until it starts again.
package namespacemetrics

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Kept is how long series stay after the last count, once the namespace has no object of the controller any more:
// Prometheus has to see the last count, and no increase is seen in a series that begins with one.
const Kept = 24 * time.Hour

// often is how often series are looked through.
const often = time.Hour

// Series are those of metrics with the label namespace.
type Series struct {
	remove func(namespace string)
	now    func() time.Time

	mu      sync.Mutex
	counted map[string]time.Time // by namespace
}

// New has no series yet. It is given what removes those of a namespace.
func New(remove func(namespace string)) *Series {
	return &Series{remove: remove, now: time.Now, counted: map[string]time.Time{}}
}

// Counted is called before something is counted in a namespace.
func (s *Series) Counted(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted[namespace] = s.now()
}

// Forget lets mgr remove series of namespaces that have none of these objects, as its cache knows them.
func (s *Series) Forget(mgr ctrl.Manager, objects client.ObjectList) error {
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		every := time.NewTicker(often)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-every.C:
				if err := s.forget(absent(ctx, mgr.GetCache(), objects)); err != nil {
					log.FromContext(ctx).Error(err, "cannot remove metrics of namespaces that are gone")
				}
			}
		}
	}))
	if err != nil {
		return fmt.Errorf("cannot look through the metrics of namespaces: %w", err)
	}
	return nil
}

// absent tells whether a namespace has none of these objects.
func absent(ctx context.Context, cached client.Reader, objects client.ObjectList) func(string) (bool, error) {
	return func(namespace string) (bool, error) {
		all, ok := objects.DeepCopyObject().(client.ObjectList)
		if !ok {
			return false, fmt.Errorf("%T is no list of objects", objects)
		}
		if err := cached.List(ctx, all, client.InNamespace(namespace), client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("cannot list the objects of namespace %s: %w", namespace, err)
		}
		return meta.LenList(all) == 0, nil
	}
}

func (s *Series) forget(empty func(namespace string) (bool, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, namespace := range slices.Sorted(maps.Keys(s.counted)) {
		if s.now().Sub(s.counted[namespace]) < Kept {
			continue
		}
		none, err := empty(namespace)
		if err != nil {
			return err
		}
		if !none {
			continue
		}
		s.remove(namespace)
		delete(s.counted, namespace)
	}
	return nil
}
