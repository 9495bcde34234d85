// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/quotareason"
)

// All returns all stories.
func All() []Story {
	return slices.Concat(successes, failures, hangs, idlers, surpluses, refusals, nodes, migrations, suspensions, deletions)
}

func tell(name string, components ...Component) Story {
	return Story{Name: name, Annotations: map[string]string{}, MigrationLimit: 10, Components: components}
}

func job(name string, pods int32) Component {
	return Component{Kind: "Job", Name: name, Pods: pods}
}

func pyTorchJob(name string, pods int32) Component {
	return Component{Kind: "PyTorchJob", Name: name, Pods: pods}
}

func custom(name string, pods int32) Component {
	return Component{Kind: "Custom", Name: name, Pods: pods}
}

// front creates no pods and never ends.
var front = Component{Kind: "Service", Name: "front"}

func (c Component) replacing() Component {
	c.Replaces = true
	return c
}

func (c Component) held() Component {
	c.Held = true
	return c
}

func (c Component) refused() Component {
	c.Refusal = &Refusal{Message: "exceeded quota: pods"}
	return c
}

func (c Component) refusedForGood(message string) Component {
	c.Refusal = &Refusal{Message: message, Final: true}
	return c
}

func (c Component) denied(message string) Component {
	c.Refusal = &Refusal{Message: message, Denied: true}
	return c
}

func (c Component) unanswered(message string) Component {
	c.Refusal = &Refusal{Message: message, Unanswered: true}
	return c
}

func (s Story) with(annotation, value string) Story {
	s.Annotations[annotation] = value
	return s
}

// atOnce: it need not wait for quota.
func (s Story) atOnce() Story {
	s.AtOnce = true
	return s
}

func (s Story) migratingAtMost(limit int32) Story {
	s.MigrationLimit = limit
	return s
}

func (s Story) then(who, what string, happens func(World)) Story {
	s.Steps = append(s.Steps, Step{who, what, happens})
	return s
}

func (s Story) after(d time.Duration) Story {
	return s.then("", "", func(w World) { w.Pass(d) })
}

func (s Story) admitted() Story {
	return s.then("Kueue", "admits it", World.Admit)
}

func (s Story) waits(reason quotareason.Reason) Story {
	return s.then("Kueue", "says "+string(reason), func(w World) { w.Wait(reason) })
}

func (s Story) evicted() Story {
	return s.then("Kueue", "evicts it", World.Evict)
}

func (s Story) deleted() Story {
	return s.then("user", "deletes it", func(w World) { w.Delete(false) })
}

func (s Story) controllerStops() Story {
	return s.then("admin", "stops the controller", World.StopController)
}

func (s Story) controllerStarts() Story {
	return s.then("admin", "starts a new controller", World.StartController)
}

func (s Story) podsStart() Story {
	return s.then("kubelet", "all pods start", World.StartPods)
}

// runs adds steps until the story's pods run.
func (s Story) runs() Story {
	return s.admitted().podsStart()
}

// nodeIsLost silences the node of the first component's first pod.
func (s Story) nodeIsLost() Story {
	return s.then("node", "the node of a pod is lost", func(w World) { w.LoseNode(0) })
}

func (s Story) nodeIsNotReady() Story {
	return s.then("Kubernetes", "taints the node as unreachable", func(w World) { w.MarkNodeNotReady(0) })
}

func (s Story) nodeIsBack() Story {
	return s.then("kubelet", "the node is back and the pod is stopped", func(w World) { w.ReturnNode(0) })
}

// nodeTurnsUnhealthy marks the node of the first component's first pod as unhealthy, so that
// the pod must migrate.
func (s Story) nodeTurnsUnhealthy() Story {
	return s.then("Autopilot", "finds a broken GPU on the node of a pod", func(w World) { w.MarkNodeUnhealthy(0) })
}

func (s Story) nodeRecovers() Story {
	return s.then("Autopilot", "finds the GPUs of the node in order", func(w World) { w.MarkNodeHealthy(0) })
}

// evictsAPod is what the node lifecycle controller does for a NoExecute taint.
func (s Story) evictsAPod() Story {
	return s.then("node", "evicts a pod", func(w World) { w.EvictPod(0) })
}

func (s Story) hangs() Story {
	return s.then("kubelet", "a pod is not ready any more", func(w World) { w.Hang(0) })
}

func (s Story) idles() Story {
	return s.then("watcher", "the devices of the pods are idle", func(w World) { w.Idle(0) })
}

func (s Story) works() Story {
	return s.then("watcher", "the devices of the pods are used", World.Busy)
}

func (s Story) createdLate(component int) Story {
	return s.then("paused controller", "creates component "+strconv.Itoa(component), func(w World) { w.CreateLate(component) })
}

func (s Story) podIsAdded() Story {
	return s.then("member", "labels a pod of their own", World.AddPod)
}

func completes(component int) func(World) {
	return func(w World) {
		w.EndPods(component, corev1.PodSucceeded)
		w.Report(component, true)
	}
}

// fails lets the first component fail.
func fails(exitCode int32) func(World) {
	return func(w World) {
		w.EndPods(0, corev1.PodFailed, exitCode)
		w.Report(0, false)
	}
}

// reportsFailure does not change the pods.
func reportsFailure(w World) {
	w.Report(0, false)
}

func removed(component int) func(World) {
	return func(w World) { w.Remove(component) }
}

// permitted ends the refusals of the second component.
func permitted(w World) {
	w.Permit(1)
}

func aPodFails(w World) {
	w.EndPod(0, corev1.PodFailed, 1)
}
