// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
	"github.com/mlbatch/mlbatch/controller/quotareason"
	"github.com/mlbatch/mlbatch/test/stories"
)

// A life is a world in which stories happen.
var _ stories.World = (*life)(nil)

// Note is for transcripts, which this world does not write.
func (l *life) Note(string, string) {}

func (l *life) suspend(value bool) {
	l.api.change(l.api.theOne(), func(o client.Object) { o.(*v1beta2.AppWrapper).Spec.Suspend = value })
}

// Admit plays Kueue's admission, which does not happen if the AppWrapper has finished.
func (l *life) Admit() {
	if aw := l.api.theOne(); aw != nil && aw.Spec.Suspend && !finished(aw) {
		if !l.quota {
			l.reserved = l.now
		}
		l.suspend(false)
		l.quota = true
	}
}

// Wait is Kueue's reason, which wakes up the AppWrapper.
func (l *life) Wait(reason quotareason.Reason) {
	l.waits = reason
	if l.process != nil {
		l.process.queue.Add(theRequest)
	}
}

func (l *life) Evict() {
	if aw := l.api.theOne(); aw != nil && !aw.Spec.Suspend {
		l.suspend(true)
	}
}

func (l *life) Delete(sparing bool) {
	aw := l.api.theOne()
	if aw == nil {
		return
	}
	if sparing {
		l.api.change(aw, func(o client.Object) { o.SetFinalizers(append(o.GetFinalizers(), metav1.FinalizerOrphanDependents)) })
	}
	l.delete(l.api.theOne())
}

// StopController leaves so much time until another one starts that the story has to do that.
func (l *life) StopController() {
	l.process, l.startsAt = nil, l.now.Add(1000*time.Hour)
}

func (l *life) StartController() {
	l.startsAt = l.now
}

func (l *life) Remove(component int) {
	if c := l.component(component); c != nil {
		l.api.remove(c)
	}
}

func (l *life) Free(component int) {
	l.permits[component] = true
	if c := l.component(component); c != nil {
		l.api.change(c, func(o client.Object) { o.SetFinalizers(nil) })
	}
}

func (l *life) Permit(component int) {
	l.permits[component] = true
}

func (l *life) Report(component int, succeeded bool) {
	condition := "Failed"
	if succeeded {
		condition = map[string]string{"Job": "Complete", "PyTorchJob": "Succeeded"}[l.story.Components[component].Kind]
	}
	l.api.change(l.component(component), func(o client.Object) {
		o.(*unstructured.Unstructured).Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}
	})
}

func (l *life) StartPods() {
	for _, pod := range l.api.pods() {
		if pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp.IsZero() {
			l.api.change(pod, func(o client.Object) { start(o.(*corev1.Pod), l.now) })
		}
	}
}

func start(pod *corev1.Pod, now time.Time) {
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &metav1.Time{Time: now}
}

// CreateLate is what a leader does that was paused right before it created the component.
func (l *life) CreateLate(component int) {
	aw := l.api.theOne()
	if aw == nil {
		return
	}
	object, err := assemble(aw, component, podtemplate.Edit{})
	if err != nil {
		l.Fatal(err)
	}
	l.late = true
	defer func() { l.late = false }()
	if err := l.api.Create(context.Background(), object); err != nil {
		l.Fatal(err)
	}
	l.strays[object.GetUID()] = true
}

func (l *life) AddPod() {
	l.made++
	foreign := pod(fmt.Sprintf("foreign-%d", l.made), corev1.PodRunning)
	foreign.UID, foreign.Labels = "", map[string]string{v1beta2.AppWrapperLabel: "a"}
	start(foreign, l.now)
	if err := l.api.Create(context.Background(), foreign); err != nil {
		l.Fatal(err)
	}
}

func (l *life) RemoveAddedPods() {
	for _, pod := range l.api.pods() {
		if _, owned := pod.Labels[v1beta2.AppWrapperComponentLabel]; !owned {
			l.api.remove(pod)
		}
	}
}

func (l *life) Hang(component int) {
	for _, pod := range l.running(component) {
		if len(pod.Status.Conditions) == 0 {
			l.api.change(pod, func(o client.Object) { setReady(o.(*corev1.Pod), false, l.now) })
			return
		}
	}
}

// setReady is what a kubelet writes when the probe of the first container says something else.
func setReady(pod *corev1.Pod, ready bool, at time.Time) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.Time{Time: at}})
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func (l *life) GoOn() {
	for _, pod := range l.api.pods() {
		l.api.change(pod, func(o client.Object) { o.(*corev1.Pod).Status.Conditions = nil })
	}
}

// Idle is said by whoever watches the devices.
func (l *life) Idle(component int) {
	for _, pod := range l.running(component) {
		l.rests[pod.Name] = true
	}
}

func (l *life) Busy() { clear(l.rests) }

func (l *life) StopWatcher() { l.blind = true }

func (l *life) StartWatcher() { l.blind = false }

func (l *life) running(component int) []*corev1.Pod {
	return slices.DeleteFunc(l.podsOf(component), func(pod *corev1.Pod) bool {
		return pod.Status.Phase != corev1.PodRunning || l.silent[pod.Name]
	})
}

func (l *life) EndPods(component int, how corev1.PodPhase, exitCodes ...int32) {
	for _, pod := range l.running(component) {
		l.end(pod, how, exitCodes)
	}
}

func (l *life) EndPod(component int, how corev1.PodPhase, exitCodes ...int32) {
	if running := l.running(component); len(running) > 0 {
		l.end(running[0], how, exitCodes)
	}
}

func (l *life) end(pod *corev1.Pod, how corev1.PodPhase, exitCodes []int32) {
	l.api.change(pod, func(o client.Object) {
		status := &o.(*corev1.Pod).Status
		status.Phase = how
		for _, code := range exitCodes {
			ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
			status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{State: ended})
		}
	})
}

func (l *life) EvictPod(component int) {
	if pods := l.podsOf(component); len(pods) > 0 {
		l.api.change(pods[0], func(o client.Object) { evictBecause("DeletionByTaintManager", l.now)(o.(*corev1.Pod)) })
		l.delete(l.podsOf(component)[0])
	}
}

func (l *life) LosePod(component int) {
	if pods := l.podsOf(component); len(pods) > 0 {
		l.api.remove(pods[0])
	}
}

func (l *life) MarkNodeUnhealthy(component int) {
	l.node(component, func(n *corev1.Node) { n.Labels = map[string]string{"autopilot.ibm.com/gpuhealth": "EVICT"} })
}

func (l *life) MarkNodeHealthy(component int) {
	l.node(component, func(n *corev1.Node) {
		n.Labels, n.Spec.Taints = map[string]string{"autopilot.ibm.com/gpuhealth": "OK"}, nil
	})
}

func (l *life) RejectPod(component int) {
	if pods := l.podsOf(component); len(pods) > 0 {
		l.api.change(pods[0], func(o client.Object) {
			p := o.(*corev1.Pod)
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, "UnexpectedAdmissionError"
		})
	}
}

func (l *life) MarkNodeNotReady(component int) {
	silent := corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: l.now}}
	l.node(component, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{silent} })
}

// node changes the node of a component's first pod.
func (l *life) node(component int, change func(*corev1.Node)) {
	pods := l.podsOf(component)
	if len(pods) == 0 {
		return
	}
	l.api.change(l.api.find(nodeKind, pods[0].Spec.NodeName), func(o client.Object) { change(o.(*corev1.Node)) })
}

func (l *life) LoseNode(component int) {
	if pods := l.podsOf(component); len(pods) > 0 {
		l.silent[pods[0].Name] = true
	}
}

func (l *life) ReturnNode(component int) {
	if pods := l.podsOf(component); len(pods) > 0 {
		l.silent[pods[0].Name] = false
		l.MarkNodeHealthy(component)
	}
}
