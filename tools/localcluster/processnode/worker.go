// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
)

// The backoff before a container is restarted. It is reset once a container ran for
// stableAfter.
const (
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 10 * time.Second
	stableAfter    = time.Minute
)

// retry is the pause before a failed request to the API server is retried.
const retry = time.Second

// reportAfter is the number of failed starts before they are reported: a node may read the
// objects of a pod only shortly after the pod was scheduled to it.
const reportAfter = 3

// worker runs one pod until it is deleted.
type worker struct {
	node    *node
	pod     *corev1.Pod
	events  record.EventRecorder
	address netip.Addr
	state   state
	// last is the pod's status in the API server, version the pod's resourceVersion then.
	// unsaved is true if the last update failed.
	last    corev1.PodStatus
	version string
	unsaved bool
	// heard receives the pod after each change.
	heard chan *corev1.Pod
	// filling is locked while the pod's volumes are filled.
	filling  sync.Mutex
	watching sync.Once

	// over is done once the pod is deleted; ends receives its grace periods.
	over  context.Context
	end   context.CancelFunc
	ends  chan time.Duration
	grace time.Duration
}

func newWorker(n *node, pod *corev1.Pod, events record.EventRecorder) *worker {
	over, end := context.WithCancel(context.Background())
	w := &worker{
		node: n, pod: pod, events: events, last: *pod.Status.DeepCopy(), version: pod.ResourceVersion,
		heard: make(chan *corev1.Pod, 1), over: over, end: end, ends: make(chan time.Duration, 2),
	}
	if before := pod.Status.ContainerStatuses; len(before) > 0 { // an earlier processnode ran the pod
		w.state.restarts = before[0].RestartCount
		if before[0].State.Running != nil {
			w.state.restarts++
		}
	}
	return w
}

// finish stops the worker's pod. A later call may shorten the grace period.
func (w *worker) finish(grace time.Duration) {
	if w.over.Err() == nil || grace < w.grace {
		w.grace = grace
		w.end()
		select {
		case w.ends <- grace:
		default: // two periods are pending already
		}
	}
}

// run runs the pod until it is deleted, and then removes it.
func (w *worker) run(ctx context.Context) error {
	var err error
	if w.address, err = w.node.addresses.take(w.pod.Status.PodIP); err != nil {
		return err
	}
	defer w.node.addresses.release(w.address)
	w.state.ip, w.state.hostIP, w.state.began = w.address.String(), w.node.addresses.node.String(), metav1.Now()
	w.pod.Status.PodIP, w.pod.Status.HostIP = w.state.ip, w.state.hostIP // for the downward API
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	backoff, failures := firstBackoff, 0
	for w.over.Err() == nil && ctx.Err() == nil {
		begin := time.Now()
		cmd, err := w.begin(ctx)
		if err != nil {
			if failures++; failures >= reportAfter {
				w.reportWaiting(ctx, err)
			}
		} else {
			failures = 0
			w.watch(ctx, cmd)
		}
		if time.Since(begin) > stableAfter {
			backoff = firstBackoff
		}
		w.rest(ctx, backoff)
		backoff = min(2*backoff, longestBackoff)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return w.remove(ctx)
}

// rest waits for the backoff, or until the pod is deleted.
func (w *worker) rest(ctx context.Context, backoff time.Duration) {
	enough := time.After(backoff)
	for {
		select {
		case <-w.over.Done():
			return
		case <-ctx.Done():
			return
		case <-enough:
			return
		case pod := <-w.heard:
			w.hear(ctx, pod)
		case <-w.retrySave():
			w.publish(ctx)
		}
	}
}

// reportWaiting reports why the pod does not start.
func (w *worker) reportWaiting(ctx context.Context, why error) {
	if saved := w.last.ContainerStatuses; len(saved) > 0 && saved[0].State.Waiting != nil && saved[0].State.Waiting.Message == why.Error() {
		return
	}
	w.state.now = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CannotStart", Message: why.Error()}}
	w.publish(ctx)
	w.events.Event(w.pod, corev1.EventTypeWarning, "CannotStart", why.Error())
}

// watch handles events of a running container until it exits.
func (w *worker) watch(ctx context.Context, cmd *exec.Cmd) {
	w.state.now = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	w.state.ready = false
	probing, stop := context.WithCancel(ctx)
	defer stop()
	turns := w.probe(probing)
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	w.publish(ctx)
	for {
		select {
		case <-exited:
			w.ended(ctx, cmd.ProcessState)
			return
		case t := <-turns:
			w.turn(ctx, t, cmd)
		case pod := <-w.heard:
			w.hear(ctx, pod)
		case <-w.retrySave():
			w.publish(ctx)
		case grace := <-w.ends:
			stop()
			terminate(cmd, grace)
		}
	}
}

// turn handles a changed probe.
func (w *worker) turn(ctx context.Context, t turn, cmd *exec.Cmd) {
	switch {
	case t.of == readiness:
		w.state.ready = t.passing
		w.publish(ctx)
	case !t.passing:
		w.events.Event(w.pod, corev1.EventTypeWarning, "Unhealthy", "the container failed its liveness probe and will be restarted")
		terminate(cmd, seconds(int32(ptr.Deref(w.pod.Spec.TerminationGracePeriodSeconds, 30)), 0))
	}
}

func terminate(cmd *exec.Cmd, grace time.Duration) {
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have exited
	time.AfterFunc(grace, func() { _ = cmd.Process.Kill() })
}

func (w *worker) ended(ctx context.Context, how *os.ProcessState) {
	code := int32(how.ExitCode())
	if code < 0 {
		code = 128 + int32(how.Sys().(syscall.WaitStatus).Signal())
	}
	end := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: "Ended", StartedAt: w.state.now.Running.StartedAt, FinishedAt: metav1.Now(),
	}}
	w.state.ready = false
	if w.over.Err() != nil {
		w.state.now = end
	} else {
		w.state.restarts++
		w.state.before = end
		w.state.now = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "waiting to restart"}}
	}
	w.publish(ctx)
}

// remove removes the pod's folder, and then its object: others wait for that.
func (w *worker) remove(ctx context.Context) error {
	w.filling.Lock()
	err := os.RemoveAll(w.folder())
	w.filling.Unlock()
	now := metav1.NewDeleteOptions(0)
	now.Preconditions = metav1.NewUIDPreconditions(string(w.pod.UID))
	for {
		gone := w.node.api.CoreV1().Pods(w.pod.Namespace).Delete(ctx, w.pod.Name, *now)
		if gone == nil || apierrors.IsNotFound(gone) || apierrors.IsConflict(gone) {
			return err
		}
		fmt.Fprintf(os.Stderr, "cannot delete %s/%s: %v\n", w.pod.Namespace, w.pod.Name, gone)
		select {
		case <-ctx.Done():
			return errors.Join(err, gone)
		case <-time.After(retry):
		}
	}
}

func (w *worker) folder() string {
	return filepath.Join(w.node.folders(), string(w.pod.UID))
}
