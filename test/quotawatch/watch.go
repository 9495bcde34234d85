// SPDX-License-Identifier: Apache-2.0

// Package quotawatch checks, while stories run on a cluster, that the pods of AppWrappers use
// no more than the quota that Kueue reserves for them. It checks every revision at which a pod
// or a Workload changed, and changes nothing.
//
// Pods and Workloads reach a client through two watches, and either may be ahead. So the events
// only name revisions; pods and Workloads are then read as they were at each revision.
package quotawatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	retry "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
)

// Watch watches a cluster from Start to End.
type Watch struct {
	api  client.WithWatch
	stop context.CancelFunc
	ways sync.WaitGroup // the two watches
	seen chan struct{}  // closed when every revision has been checked

	mu    sync.Mutex
	tally tally
	blind error // why something may have been missed
}

// Start starts the watch. It prints findings immediately.
func Start(ctx context.Context, api client.WithWatch, out io.Writer) (*Watch, error) {
	now, err := revision(ctx, api)
	if err != nil {
		return nil, err
	}
	streaming, stop := context.WithCancel(ctx)
	w := &Watch{api: api, stop: stop, seen: make(chan struct{}), tally: newTally(out)}
	revisions := make(chan string, 1000)
	revisions <- now
	for _, list := range []client.ObjectList{&corev1.PodList{}, &kueue.WorkloadList{}} {
		events, err := retry.NewRetryWatcherWithContext(streaming, now, stream{api, list})
		if err != nil {
			stop()
			return nil, fmt.Errorf("cannot watch a %T: %w", list, err)
		}
		w.ways.Go(func() { w.follow(streaming, events, revisions) })
	}
	go func() {
		defer close(w.seen)
		for at := range revisions {
			w.look(ctx, at)
		}
	}()
	go func() {
		w.ways.Wait()
		close(revisions)
	}()
	return w, nil
}

// Expect excludes the findings about one AppWrapper, or without a name about a namespace, for a test
// that violates quota on purpose. The returned function returns the findings so far.
func (w *Watch) Expect(appWrapper types.NamespacedName) func() []audit.Excess {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally.expected[appWrapper] = nil
	return func() []audit.Excess {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.tally.expected[appWrapper]
	}
}

// End checks a last revision and prints a summary. It returns an error if there was a violation
// or something may have been missed. A watch that was never started is not an error.
func (w *Watch) End(ctx context.Context) error {
	if w == nil {
		return nil
	}
	w.stop()
	<-w.seen
	now, err := revision(ctx, w.api)
	if err != nil {
		return err
	}
	w.look(ctx, now)
	return errors.Join(w.blind, w.tally.close())
}

// follow passes on the revisions at which something changed.
func (w *Watch) follow(ctx context.Context, events watch.Interface, revisions chan<- string) {
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			w.miss(apierrors.FromObject(event.Object))
			continue
		}
		object, err := meta.Accessor(event.Object)
		if err != nil {
			w.miss(err)
			continue
		}
		revisions <- object.GetResourceVersion()
	}
	if ctx.Err() == nil {
		w.miss(errors.New("a watch has ended"))
	}
}

func (w *Watch) miss(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blind = errors.Join(w.blind, fmt.Errorf("quota was not watched all the time: %w", err))
}

// look checks one revision.
func (w *Watch) look(ctx context.Context, at string) {
	m, err := w.readRevision(ctx, at)
	var excused map[audit.Holder]bool
	if err == nil && len(m.Unexcused()) > 0 {
		if err = w.confirm(ctx, m); err == nil {
			excused, err = w.excuse(ctx, m)
		}
	}
	if err != nil {
		w.miss(err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally.add(m, excused)
}

// confirm reads a moment with a violation again. A server that returns two different answers
// for one revision must not be mistaken for a wrong controller.
func (w *Watch) confirm(ctx context.Context, m audit.Moment) error {
	again, err := w.readRevision(ctx, m.Revision)
	if err != nil || slices.Equal(m.Excesses(), again.Excesses()) {
		return err
	}
	return fmt.Errorf("the API server gave two answers for revision %s: %v, then %v", m.Revision, m.Excesses(), again.Excesses())
}

// readRevision reads one revision, also of an API server that is briefly unavailable.
func (w *Watch) readRevision(ctx context.Context, at string) (m audit.Moment, err error) {
	var last error
	err = patience.Poll(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		m, last = read(ctx, w.api, at)
		if apierrors.IsResourceExpired(last) || apierrors.IsGone(last) {
			return false, last // the history has been compacted
		}
		return last == nil, nil
	})
	if err != nil {
		return m, errors.Join(err, last)
	}
	return m, nil
}

// ofAppWrappers selects pods of AppWrappers.
var ofAppWrappers = client.HasLabels{workload.AppWrapperLabel}

// read returns pods and Workloads at a revision of etcd, which counts every change of every
// kind.
func read(ctx context.Context, api client.Client, at string) (audit.Moment, error) {
	pods, workloads := &corev1.PodList{}, &kueue.WorkloadList{}
	err := errors.Join(api.List(ctx, pods, ofAppWrappers, exactly(at)), api.List(ctx, workloads, exactly(at)))
	return audit.Moment{Revision: at, Pods: pods.Items, Workloads: workloads.Items}, err
}

// exactly is a new value for each list, because the client modifies it.
func exactly(at string) *client.ListOptions {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: at, ResourceVersionMatch: metav1.ResourceVersionMatchExact}}
}

// revision returns the current one.
func revision(ctx context.Context, api client.Client) (string, error) {
	pods := &corev1.PodList{}
	if err := api.List(ctx, pods, ofAppWrappers); err != nil {
		return "", fmt.Errorf("cannot list pods: %w", err)
	}
	return pods.ResourceVersion, nil
}

// stream is a watch of one kind.
type stream struct {
	api  client.WithWatch
	list client.ObjectList
}

// WatchWithContext starts a watch at a revision.
func (s stream) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	selection := []client.ListOption{&client.ListOptions{Raw: &options}}
	if _, pods := s.list.(*corev1.PodList); pods {
		selection = append(selection, ofAppWrappers)
	}
	return s.api.Watch(ctx, s.list, selection...)
}
