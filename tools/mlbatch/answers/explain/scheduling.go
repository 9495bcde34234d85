// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// unscheduled is about pods without a node.
func unscheduled(o Objects, pod *corev1.Pod) []Cause {
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" || pod.Spec.NodeName != "" {
		return nil
	}
	if name := pod.Status.NominatedNodeName; name != "" {
		return []Cause{cause("WaitsForPreemption", Evidence{"Pod " + pod.Name, "status.nominatedNodeName", name})}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Message == "" {
			continue
		}
		c.Message = ofItsGang(pod, c.Message)
		told := Evidence{"Pod " + pod.Name, "condition PodScheduled is False, " + c.Reason, c.Message}
		all := []Cause{cause(whyNotScheduled(c), told, since(c.LastTransitionTime), gates(pod))}
		return append(all, o.avoided(c)...)
	}
	return nil
}

// ofItsGang leaves out what Coscheduling adds for each pod that is in no gang, and finds no node.
func ofItsGang(pod *corev1.Pod, message string) string {
	if pod.Labels[podGroupLabel] != "" {
		return message
	}
	return strings.TrimSuffix(message, ", can not find pod group")
}

// gates adds the scheduling gates of a pod.
func gates(pod *corev1.Pod) change {
	return func(c *Cause) {
		for _, gate := range pod.Spec.SchedulingGates {
			if gate.Name != "" {
				also(Evidence{"Pod " + pod.Name, "spec.schedulingGates", gate.Name})(c)
			}
		}
	}
}

// scheduling are what schedulers say of a pod as a whole, or of its volumes, before they say anything of nodes.
var scheduling = []phrase{
	{"NoNodes", []string{"no nodes available to schedule pods", "0/0 nodes are available"}},
	{"VolumeInUse", []string{"ReadWriteOncePod access mode already in-use"}},
	{"VolumeNotBound", []string{"PersistentVolumeClaim", "persistentvolumeclaim", "persistent volumes"}},
	{"GangIncomplete", []string{"cannot find enough sibling pods", "gated pods in the same PodGroup"}},
	{"PodGroupMissing", []string{"PodGroup not found", "can not find pod group", "pg does not exist"}},
}

// exclusions are why a scheduler says that a node is none for a pod, whatever it has free.
var exclusions = []phrase{
	{"NodesTainted", []string{"untolerated taint", "had taints that the pod didn't tolerate"}},
	{"NodesNotSelected", []string{"didn't match Pod's node affinity/selector", "didn't match the requested node name", "didn't match scheduler-enforced node affinity"}},
	{"NodesCordoned", []string{"were unschedulable"}},
	{"PortTaken", []string{"didn't have free ports for the requested pod ports"}},
	{"PodAffinityUnmet", []string{"anti-affinity rules", "didn't match pod affinity rules", "didn't match pod topology spread constraints"}},
	{"VolumeElsewhere", []string{"didn't match PersistentVolume's node affinity", "had volume node affinity conflict", "had no available volume zone"}},
}

// gang are words that say that pods are scheduled together or not at all.
var gang = []string{"pod group", "PodGroup", "podGroup", "gang", "optimistic rejection"}

func whyNotScheduled(c corev1.PodCondition) Code {
	if c.Reason == corev1.PodReasonSchedulingGated {
		return "SchedulingGated"
	}
	if code := sorted(c.Message, scheduling, ""); code == "VolumeNotBound" && hasAny(c.Message, `" not found`) {
		return "VolumeClaimMissing"
	} else if code != "" {
		return code
	}
	if code := excluded(c.Message); code != "" {
		return code
	}
	if hasAny(c.Message, gang...) {
		return "GangNotScheduled"
	}
	return "PodNotScheduled"
}

// excluded says why all nodes are none for a pod. A scheduler counts nodes by what is wrong with them: 0/3 nodes are
// available: 1 Insufficient cpu, 2 node(s) were unschedulable. If one of them only lacks resources, it says nothing.
func excluded(message string) Code {
	_, rest, _ := strings.Cut(message, "0/")
	number, said, counted := strings.Cut(rest, " nodes are available: ")
	all, err := strconv.Atoi(number)
	if !counted || err != nil || all <= 0 {
		return ""
	}
	said, _, _ = strings.Cut(said, ". ")
	counts, sum := map[Code]int{}, 0
	for part := range strings.SplitSeq(strings.TrimSuffix(said, "."), ", ") {
		number, reason, _ := strings.Cut(part, " ")
		n, err := strconv.Atoi(number)
		code := sorted(reason, exclusions, "")
		if err != nil || code == "" {
			return ""
		}
		counts[code] += n
		sum += n
		if counts[code] == all {
			return code
		}
	}
	if sum >= all {
		return "NoNodeAllowed"
	}
	return ""
}

// avoided is about nodes from which the AppWrapper keeps away while a pod finds none.
func (o Objects) avoided(c corev1.PodCondition) []Cause {
	if o.AppWrapper == nil || !hasAny(c.Message, "didn't match Pod's node affinity/selector") {
		return nil
	}
	var seen []Evidence
	found := Cause{}
	for _, n := range o.AppWrapper.Status.AvoidedNodes {
		if n.Until.After(o.Now) && n.Name != "" {
			seen = append(seen, Evidence{o.wrapper(), "status.avoidedNodes, " + n.Name, cmp.Or(n.Cause, n.Name)})
			next("a new attempt may use node "+n.Name+" again", &n.Until)(&found)
		}
	}
	if len(seen) == 0 {
		return nil
	}
	return []Cause{cause("NodesAvoided", seen[0], also(seen[1:]...), func(c *Cause) { c.Next = found.Next })}
}

// schedulers is about schedulers that do not work together, or not at all.
func schedulers(o Objects) (all []Cause) {
	var named, waits []*corev1.Pod
	for i := range o.Pods {
		if pod := &o.Pods[i]; pod.Spec.SchedulerName != "" {
			named = append(named, pod)
			if pod.Spec.NodeName == "" && (pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "") {
				waits = append(waits, pod)
			}
		}
	}
	if len(waits) == 0 || o.isWell() {
		return nil
	}
	told := func(pod *corev1.Pod) Evidence {
		return Evidence{"Pod " + pod.Name, "spec.schedulerName", pod.Spec.SchedulerName}
	}
	if i := slices.IndexFunc(waits, o.unseen); i >= 0 {
		all = append(all, cause("SchedulerSilent", told(waits[i]), since(waits[i].CreationTimestamp)))
	}
	if i := slices.IndexFunc(named, func(p *corev1.Pod) bool { return p.Spec.SchedulerName != waits[0].Spec.SchedulerName }); i >= 0 {
		all = append(all, cause("TwoSchedulers", told(waits[0]), also(told(named[i]))))
	}
	return all
}

// unseen: no scheduler has said anything of a pod for some time.
func (o Objects) unseen(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 || !o.longAgo(pod.CreationTimestamp) {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return false
		}
	}
	return true
}
