// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// runsWell: it is seen to run, with all its pods and containers. What was not read is not seen.
func (o Objects) runsWell() bool {
	if o.Run != nil && len(o.Run.Status.Steps) > 0 {
		return o.stepsRunWell()
	}
	living := o.living()
	return o.started() && (len(living) > 0 || o.makesNoPods()) && !slices.ContainsFunc(living, func(p *corev1.Pod) bool { return !isReady(p) })
}

// started: an AppWrapper has all the pods that it waits for, and a bare job may have them.
func (o Objects) started() bool {
	if o.AppWrapper != nil {
		return o.AppWrapper.Status.Phase == v1beta2.AppWrapperRunning && o.isWell()
	}
	return o.Workload != nil && isTrue(o.Workload.Status.Conditions, kueue.WorkloadAdmitted) && !isTrue(o.Workload.Status.Conditions, kueue.WorkloadFinished)
}

// makesNoPods: all components of an AppWrapper are such as ConfigMaps.
func (o Objects) makesNoPods() bool {
	return o.AppWrapper != nil && !slices.ContainsFunc(o.AppWrapper.Status.ComponentStatus, func(c v1beta2.AppWrapperComponentStatus) bool { return expected(c) > 0 })
}

// living are the pods that have not ended and are not about to.
func (o Objects) living() (all []*corev1.Pod) {
	for i := range o.Pods {
		if lives(&o.Pods[i]) {
			all = append(all, &o.Pods[i])
		}
	}
	return all
}

func lives(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded && pod.DeletionTimestamp == nil
}

// isReady: Kubernetes says so, and all containers run. Of those that do not, it believes some for a moment.
func isReady(pod *corev1.Pod) bool {
	c := podCondition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue && !slices.ContainsFunc(pod.Status.ContainerStatuses, stands)
}

// stands: a container waits or has ended. One without a state waits, too.
func stands(s corev1.ContainerStatus) bool {
	return s.State.Running == nil
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i, c := range pod.Status.Conditions {
		if c.Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// notReady names the first pod that is not ready, or says that all have ended.
func notReady(o Objects) []Cause {
	if o.Ended() || o.AppWrapper == nil && !o.started() {
		return nil
	}
	for _, pod := range o.living() {
		if !isReady(pod) {
			return o.namePod(pod)
		}
	}
	return o.endNotSeen()
}

// namePod is what is known of a pod: what Kubernetes says of it, or its phase, what its containers wait for, and the
// last warning.
func (o Objects) namePod(pod *corev1.Pod) []Cause {
	object := "Pod " + pod.Name
	found := cause("PodNotReady", Evidence{object, "status.phase", string(pod.Status.Phase)}, since(pod.CreationTimestamp))
	if c := podCondition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionFalse {
		seen := Evidence{object, "condition Ready is False, " + c.Reason, cmp.Or(c.Message, c.Reason, string(c.Status))}
		found = cause("PodNotReady", seen, since(c.LastTransitionTime))
	}
	if found.Evidence[0].Value == "" {
		return nil
	}
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && w.Reason != "" {
			also(Evidence{"container " + s.Name + " of Pod " + pod.Name, "waiting, " + w.Reason, cmp.Or(w.Message, w.Reason)})(&found)
		}
	}
	if warnings := o.podEvents(pod, ""); len(warnings) > 0 {
		also(warnings[len(warnings)-1])(&found)
	}
	return []Cause{found}
}

// endNotSeen: all pods of an AppWrapper ended well some time ago, and it still runs.
func (o Objects) endNotSeen() []Cause {
	if o.AppWrapper == nil || o.AppWrapper.Status.Phase != v1beta2.AppWrapperRunning || len(o.Pods) == 0 || !o.complete() || len(o.podRefused()) > 0 {
		return nil
	}
	if slices.ContainsFunc(o.Pods, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodSucceeded }) {
		return nil
	}
	last := o.lastEnd()
	if !o.longAgo(last) {
		return nil
	}
	return []Cause{cause("EndNotSeen", Evidence{o.wrapper(), "status.phase", string(v1beta2.AppWrapperRunning)},
		also(Evidence{"Pod " + o.Pods[0].Name, "status.phase", string(corev1.PodSucceeded)}), since(last))}
}

// lastEnd is when the last container ended.
func (o Objects) lastEnd() (last metav1.Time) {
	for _, pod := range o.Pods {
		for _, s := range pod.Status.ContainerStatuses {
			if end := s.State.Terminated; end != nil && end.FinishedAt.After(last.Time) {
				last = end.FinishedAt
			}
		}
	}
	return last
}
