// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

const nothingDeployed = "no resources are deployed"

// keeping: components are deployed and their removal has not begun. Without the second
// condition the beginning of the removal would restart the time for which to keep them.
func (v *view) keeping() bool {
	return v.isTrue(v1beta2.ResourcesDeployed) && !v.isTrue(v1beta2.DeletingResources)
}

// remains: a component or a pod is left, in any state.
func (v *view) remains() bool {
	return len(v.Pods) > 0 || len(v.existing()) > 0
}

// releasable: the removal has begun, and what is left cannot use quota. What makes no pods, or
// has ended, may be kept by finalizers of others for as long as they like. An object that makes
// pods is not trusted to make none while it is being deleted.
func (v *view) releasable() bool {
	if !v.isTrue(v1beta2.DeletingResources) || !v.remains() {
		return false
	}
	holds := v.where(func(i int) bool {
		c := v.Components[i]
		kept := c.Terminating && len(c.Finalizers) > 0 && !v.makesPods(i)
		return c.Exists && !kept
	})
	return len(holds) == 0 && !slices.ContainsFunc(v.Pods, func(p Pod) bool {
		return p.alive() || !p.Terminating || len(p.Finalizers) == 0
	})
}

const onlyKept = "what is left makes no pods, and finalizers keep it"

// orGiveUp fails instead of d if what is left is releasable, and was for long: nothing can be
// created in its place, and meanwhile nothing uses the quota. The time counts from when the
// condition turned False, because finalizers of Kubernetes go only after the last pod.
func (v *view) orGiveUp(d Decision, released v1beta2.AppWrapperCondition) Decision {
	if !v.releasable() {
		return d
	}
	since := later(v.transitionTime(released), v.transitionTime(v1beta2.DeletingResources))
	deadline := since.Add(min(max(v.Policy.ForcefulDeletionGrace, v.Policy.AdmissionGrace), v.Policy.KeptGrace))
	if !v.now.Before(deadline) {
		return v.fail(v1beta2.ReasonCreateFailed, "the components cannot be created again: "+v.deletionBlockers()).because(CauseOldComponentRemains)
	}
	if d.Requeue == 0 || deadline.Before(v.now.Add(d.Requeue)) {
		d = d.requeueAt(deadline, v.now)
	}
	return d
}

func (v *view) existing() []int {
	return v.where(func(i int) bool { return v.Components[i].Exists })
}

// tearDown removes everything. It returns the next step, or that nothing is left. Only a
// snapshot taken after DeletingResources was saved as True proves that nothing is left:
// decisions made before that save create nothing any more, because the actor checks the
// resourceVersion.
func (v *view) tearDown() (d Decision, gone bool) {
	unconfirmed := v.isTrue(v1beta2.ResourcesDeployed) && !v.isTrue(v1beta2.DeletingResources)
	if unconfirmed || v.remains() {
		return v.remove(v.existing()), false
	}
	v.clear(v1beta2.DeletingResources, v1beta2.ReasonDeletionComplete, "")
	v.clear(v1beta2.OnUnhealthyNodes, v1beta2.ReasonNodesHealthy, "")
	v.clear(v1beta2.SurplusPods, v1beta2.ReasonNoSurplusPods, "")
	v.markDeleted()
	return Decision{}, true
}

func (v *view) markDeleted() {
	for i := range v.Components {
		if v.componentCondition(i, v1beta2.ResourcesDeployed) != nil {
			v.setComponent(i, v1beta2.ResourcesDeployed, metav1.ConditionFalse, v1beta2.ReasonComponentDeleted)
		}
	}
}

// beginRemoval starts the grace period before force is used. A removal that began in another
// phase continues, and so does its grace period.
func (v *view) beginRemoval() {
	if !v.isTrue(v1beta2.DeletingResources) {
		v.set(v1beta2.DeletingResources, metav1.ConditionTrue, v1beta2.ReasonDeletionInitiated, "")
	}
}

// deletionBlockers names what prevents the removal even with force: missing permissions, and
// finalizers of others, which are respected. It does not count the pods that are left: that
// would be a write for each pod that goes.
func (v *view) deletionBlockers() string {
	var held []string
	for i, c := range v.Components {
		if c.Unreadable {
			held = append(held, fmt.Sprintf("the controller lacks the permission to get %s %q", c.Kind, v.status.ComponentStatus[i].Name))
		}
		if c.Exists && c.Terminating && len(c.Finalizers) > 0 {
			held = append(held, fmt.Sprintf("%s %q is kept by its finalizers %s", c.Kind, v.status.ComponentStatus[i].Name, strings.Join(c.Finalizers, ", ")))
		}
	}
	var ofPods []string
	for _, p := range v.Pods {
		if p.Terminating {
			ofPods = append(ofPods, p.Finalizers...)
		}
	}
	if len(ofPods) > 0 {
		slices.Sort(ofPods)
		held = append(held, "pods are kept by their finalizers "+strings.Join(slices.Compact(ofPods), ", "))
	}
	return strings.Join(held, "; ")
}

// remove deletes these components, and uses force after the grace period. Force comes only
// when every one of them that makes pods is being deleted: otherwise the owner of a deleted
// pod would replace it.
func (v *view) remove(targets []int) Decision {
	v.beginRemoval()
	deadline := v.transitionTime(v1beta2.DeletingResources).Add(v.Policy.ForcefulDeletionGrace)
	late := !v.now.Before(deadline)
	if late || slices.ContainsFunc(v.Components, func(c Component) bool { return c.Unreadable }) {
		v.set(v1beta2.DeletingResources, metav1.ConditionTrue, v1beta2.ReasonDeletionInitiated, v.deletionBlockers())
	}
	undeleted := v.undeleted(targets)
	if late && len(v.Pods) > 0 && !slices.ContainsFunc(undeleted, v.makesPods) {
		return v.do(ForceDelete, targets)
	}
	if len(undeleted) > 0 {
		return v.do(Delete, undeleted).requeueAt(deadline, v.now)
	}
	if !late {
		return v.stay().requeueAt(deadline, v.now)
	}
	return v.do(ForceDelete, targets)
}

func (v *view) undeleted(targets []int) []int {
	undeleted := make([]int, 0, len(targets))
	for _, i := range targets {
		if !v.Components[i].Terminating {
			undeleted = append(undeleted, i)
		}
	}
	return undeleted
}

func (v *view) existsAndMakesPods(i int) bool {
	return v.Components[i].Exists && v.makesPods(i)
}

func (v *view) makesPods(i int) bool {
	return slices.ContainsFunc(v.status.ComponentStatus[i].PodSets, func(p v1beta2.AppWrapperPodSet) bool { return p.Count() > 0 })
}
