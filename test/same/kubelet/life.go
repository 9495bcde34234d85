// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mlbatch/mlbatch/test/same/slot"
)

// The pause before containers are started again, shorter than a real kubelet's.
const (
	firstPause   = 2 * time.Second
	longestPause = 64 * time.Second
)

// moment is where the containers of a pod are. All of them do the same.
type moment int

const (
	waiting  moment = iota // not started
	running                // not ready
	serving                // ready
	pausing                // will be started again
	stopping               // got a signal
	ended
)

// Life is one pod on a node.
type Life struct {
	pod  *corev1.Pod
	play play
	// count says how often the slot of the pod has been started, with the next start.
	count func() int
	now   moment
	next  time.Time // when the moment ends; zero for never
	began time.Time // the pod
	since time.Time // the present containers
	// restarts is how often containers were started again; code is the last exit code.
	restarts int32
	code     int32
	// past is how the containers ended.
	past corev1.ContainerState
}

// newLife begins the life of a pod that has come to the node.
func newLife(pod *corev1.Pod, count func() int, at time.Time) (*Life, error) {
	l := &Life{pod: pod, count: count, now: waiting, began: at}
	if err := l.prepare(); err != nil {
		return nil, err
	}
	l.next = after(at, l.play.start)
	if pod.DeletionTimestamp != nil {
		l.stop(0, at)
	}
	return l, nil
}

// prepare reads what the containers will do after the next start.
func (l *Life) prepare() (err error) {
	l.play, err = parsePlay(l.pod.Annotations[PlayAnnotation], slot.Of(l.pod).Number(), l.count())
	return err
}

func after(at time.Time, d time.Duration) time.Time {
	if d == never {
		return time.Time{}
	}
	return at.Add(d)
}

// advance enters the next moment, because its time has come.
func (l *Life) advance(at time.Time) error {
	switch l.now {
	case waiting:
		l.run(at)
	case pausing:
		if err := l.prepare(); err != nil {
			return err
		}
		l.restarts++
		l.run(at)
	case running, serving:
		if l.now == running && l.readyFirst() {
			l.now, l.next = serving, after(l.since, l.play.run)
			return nil
		}
		l.exit(l.play.exit, at)
	case stopping:
		l.end(l.play.term, at)
	case ended:
	}
	return nil
}

// run starts the containers.
func (l *Life) run(at time.Time) {
	l.since, l.now = at, running
	l.next = after(at, min(l.play.ready, l.play.run))
	if l.play.ready == 0 {
		l.now, l.next = serving, after(at, l.play.run)
	}
}

func (l *Life) readyFirst() bool { return l.play.ready < l.play.run }

// exit ends the containers by themselves.
func (l *Life) exit(code int32, at time.Time) {
	l.end(code, at)
	if l.pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || l.pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && code != 0 {
		l.now, l.next = pausing, at.Add(min(firstPause<<min(l.restarts, 10), longestPause))
	}
}

// end ends the containers.
func (l *Life) end(code int32, at time.Time) {
	l.now, l.next, l.code = ended, time.Time{}, code
	began := l.since
	if began.IsZero() {
		began = at // they never ran
	}
	l.past.Terminated = &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason(code), StartedAt: metav1.NewTime(began), FinishedAt: metav1.NewTime(at),
	}
}

// stop sends the containers a signal.
func (l *Life) stop(grace time.Duration, at time.Time) {
	switch l.now {
	case running, serving:
		l.now, l.next = stopping, after(at, min(l.play.stop, grace))
	case waiting, pausing:
		l.end(l.play.term, at)
	case stopping, ended:
	}
}

// status is what the node reports.
func (l *Life) status(last corev1.PodStatus) corev1.PodStatus {
	s := *last.DeepCopy()
	s.Phase = l.phase()
	s.StartTime = ptr.To(metav1.NewTime(l.began))
	s.HostIP, s.PodIP = "10.1.0.1", "10.2.0.1"
	s.HostIPs, s.PodIPs = []corev1.HostIP{{IP: s.HostIP}}, []corev1.PodIP{{IP: s.PodIP}}
	s.ContainerStatuses, s.InitContainerStatuses = nil, nil
	for _, c := range l.pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, l.container(c))
	}
	for _, c := range l.pod.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, l.initContainer(c))
	}
	ready := l.now == serving
	for kind, holds := range map[corev1.PodConditionType]bool{
		corev1.PodReadyToStartContainers: true, corev1.PodInitialized: l.now != waiting, corev1.ContainersReady: ready, corev1.PodReady: ready,
	} {
		s.Conditions = withCondition(s.Conditions, kind, holds, l.now == ended && l.code == 0)
	}
	return s
}

func (l *Life) phase() corev1.PodPhase {
	switch {
	case l.now == waiting:
		return corev1.PodPending
	case l.now == ended && l.code == 0:
		return corev1.PodSucceeded
	case l.now == ended:
		return corev1.PodFailed
	}
	return corev1.PodRunning
}

func (l *Life) container(c corev1.Container) corev1.ContainerStatus {
	s := corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: c.Image, RestartCount: l.restarts, Ready: l.now == serving, Started: new(l.up()),
	}
	if l.now != ended {
		s.LastTerminationState = l.past
	}
	switch {
	case l.now == waiting:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	case l.up():
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(l.since)}
	case l.now == pausing:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "waiting to start again"}
	default:
		s.State = l.past
	}
	return s
}

func (l *Life) up() bool { return l.now == running || l.now == serving || l.now == stopping }

// initContainer has ended as soon as containers run, unless it runs beside them.
func (l *Life) initContainer(c corev1.Container) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image}
	switch {
	case l.now == waiting:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	case l.now != ended && ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways:
		s.Ready, s.Started = true, new(true)
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(l.since)}
	default:
		s.Ready = true
		s.State.Terminated = &corev1.ContainerStateTerminated{Reason: reason(0), StartedAt: metav1.NewTime(l.began), FinishedAt: metav1.NewTime(l.since)}
	}
	return s
}

func reason(code int32) string {
	if code == 0 {
		return "Completed"
	}
	return "Error"
}

func withCondition(all []corev1.PodCondition, kind corev1.PodConditionType, holds, completed bool) []corev1.PodCondition {
	c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}
	if holds {
		c.Status = corev1.ConditionTrue
	} else if completed {
		c.Reason = "PodCompleted"
	}
	for i, old := range all {
		if old.Type != kind {
			continue
		}
		if old.Status != c.Status || old.Reason != c.Reason {
			all[i] = c
		}
		return all
	}
	return append(all, c)
}
