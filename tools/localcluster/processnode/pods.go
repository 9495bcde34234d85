// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// runPods gives each pod of the node a worker, until ctx ends.
func (n *node) runPods(ctx context.Context) error {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: n.api.CoreV1().Events("")})
	w := &workers{
		node: n, all: map[types.UID]*worker{},
		events: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "processnode", Host: n.name}),
	}
	mine := cache.NewListWatchFromClient(n.api.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.OneTermEqualSelector("spec.nodeName", n.name))
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: mine, ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { w.see(ctx, o.(*corev1.Pod)) },
			UpdateFunc: func(_, o any) { w.see(ctx, o.(*corev1.Pod)) },
			DeleteFunc: func(o any) { w.lose(o) },
		},
	})
	if err := n.forget(ctx); err != nil {
		return err
	}
	controller.RunWithContext(ctx)
	return ctx.Err()
}

// forget removes the folders of pods that were deleted while processnode did not run.
func (n *node) forget(ctx context.Context) error {
	folders, err := os.ReadDir(n.folders())
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil // there was no pod yet
		}
		return fmt.Errorf("cannot list the folders of earlier pods: %w", err)
	}
	mine := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", n.name).String()}
	pods, err := n.api.CoreV1().Pods(metav1.NamespaceAll).List(ctx, mine)
	if err != nil {
		return fmt.Errorf("cannot list the node's pods: %w", err)
	}
	known := map[string]bool{}
	for _, pod := range pods.Items {
		known[string(pod.UID)] = true
	}
	for _, folder := range folders {
		if !known[folder.Name()] {
			if err := os.RemoveAll(filepath.Join(n.folders(), folder.Name())); err != nil {
				fmt.Fprintln(os.Stderr, "cannot remove the folder of a deleted pod:", err)
			}
		}
	}
	return nil
}

func (n *node) folders() string { return filepath.Join(n.dir, "node", "pods", n.name) }

// workers are keyed by the pods' UIDs: names may be reused.
type workers struct {
	node   *node
	events record.EventRecorder
	mu     sync.Mutex
	all    map[types.UID]*worker
}

// see starts the worker of a new pod, and stops it when the pod is deleted.
func (w *workers) see(ctx context.Context, pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one, known := w.all[pod.UID]
	if known {
		one.notify(pod)
	} else {
		one = newWorker(w.node, pod.DeepCopy(), w.events)
		w.all[pod.UID] = one
		go func() {
			if err := one.run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				fmt.Fprintf(os.Stderr, "%s/%s: %v\n", pod.Namespace, pod.Name, err)
			}
		}()
	}
	if pod.DeletionTimestamp != nil {
		one.finish(seconds(int32(*pod.DeletionGracePeriodSeconds), 0))
	}
}

// lose kills a pod whose object is gone.
func (w *workers) lose(object any) {
	if last, missed := object.(cache.DeletedFinalStateUnknown); missed {
		object = last.Obj
	}
	pod := object.(*corev1.Pod)
	w.mu.Lock()
	defer w.mu.Unlock()
	if one, known := w.all[pod.UID]; known {
		one.finish(0)
		delete(w.all, pod.UID)
	}
}
