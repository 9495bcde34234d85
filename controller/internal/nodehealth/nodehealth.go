// SPDX-License-Identifier: Apache-2.0

// Package nodehealth answers one question: what is wrong with this node, and which pods must
// leave it because of that? It looks at a node and a pod and may not talk to anything.
package nodehealth

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// AllPods stands for the resources of a rule about every pod of the node.
const AllPods corev1.ResourceName = "*"

// Source is where a node shows that it is unhealthy. Messages, metrics and docs name it so.
type Source string

// The sources.
const (
	NodeLabel      Source = "NodeLabel"
	NodeCondition  Source = "NodeCondition"
	NodeTaint      Source = "NodeTaint"
	DevicesMissing Source = "DevicesMissing"
	NodeNotReady   Source = "NodeNotReady"
	NodeGone       Source = "NodeGone"
	PodRejected    Source = "PodRejected"
	PodNotStarted  Source = "PodNotStarted"
	PodEvicted     Source = "PodEvicted"
)

// PodFailed is of a node on which a program failed that did well elsewhere. Work does not leave a
// node for it, so it is none of the Sources.
const PodFailed Source = "PodFailed"

// OthersStarted is the sign of PodNotStarted by which a kubelet has begun with a pod that does not
// start, while others of its component have started elsewhere.
const OthersStarted = "others-started"

// Sources are all sources.
func Sources() []Source {
	return []Source{NodeLabel, NodeCondition, NodeTaint, DevicesMissing, NodeNotReady, NodeGone, PodRejected, PodNotStarted, PodEvicted}
}

// SeenByScheduler reports whether the scheduler itself gives the node no pod that would have to
// leave it, while the sign is there. Who evicts pods taints the node, or cordons it.
func (s Source) SeenByScheduler() bool {
	return s == NodeLabel || s == NodeTaint || s == DevicesMissing || s == NodeGone || s == PodEvicted
}

// Cause is what a node shows: its source, and the label, condition, taint or resource.
type Cause struct {
	Source Source
	Sign   string
}

func (c Cause) String() string {
	return string(c.Source) + " " + c.Sign
}

// Compare orders causes by source, then by sign.
func (c Cause) Compare(other Cause) int {
	return cmp.Or(cmp.Compare(c.Source, other.Source), cmp.Compare(c.Sign, other.Sign))
}

// Finding is one thing that is wrong with a node, for the pods that request one resource.
type Finding struct {
	Cause
	// Resource is AllPods if the finding is about every pod.
	Resource corev1.ResourceName
	// Taint of NodeTaint and NodeNotReady: pods that tolerate it were told to stay.
	Taint corev1.Taint
	// Since is when the sign appeared; zero if nobody wrote that down.
	Since time.Time
	// Grace of NodeNotReady is how long pods wait for the node.
	Grace time.Duration
	// Usable of DevicesMissing: as many devices are healthy.
	Usable int64
}

// Findings are what is wrong with the node, in an order that does not depend on that of the
// rules. A heartbeat changes none of them.
func (r Rules) Findings(node *corev1.Node) []Finding {
	findings := slices.Concat(r.labelled(node), r.inCondition(node), r.tainted(node), r.devicesMissing(node), r.notReady(node))
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(a.Compare(b.Cause), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Taint.Value, b.Taint.Value), a.Since.Compare(b.Since))
	})
	return slices.Compact(findings)
}

func (r Rules) labelled(node *corev1.Node) []Finding {
	var findings []Finding
	for resource, labels := range r.Labels {
		for _, l := range labels {
			if value, ok := node.Labels[l.Key]; ok && value == l.Value && l.Effect == corev1.TaintEffectNoExecute {
				cause := Cause{NodeLabel, l.Key + "=" + l.Value}
				findings = append(findings, Finding{Cause: cause, Resource: corev1.ResourceName(resource)})
			}
		}
	}
	return findings
}

func (r Rules) inCondition(node *corev1.Node) []Finding {
	var findings []Finding
	for _, rule := range r.Conditions {
		for _, c := range node.Status.Conditions {
			if c.Type == rule.Type && c.Status == rule.Status {
				cause := Cause{NodeCondition, string(c.Type) + "=" + string(c.Status)}
				findings = append(findings, about(rule.Resources, Finding{Cause: cause, Since: c.LastTransitionTime.Time})...)
			}
		}
	}
	return findings
}

func (r Rules) tainted(node *corev1.Node) []Finding {
	var findings []Finding
	for _, rule := range r.Taints {
		for _, t := range node.Spec.Taints {
			if rule.matches(t) {
				since := timeOf(t.TimeAdded)
				t.TimeAdded = nil
				cause := Cause{NodeTaint, t.ToString()}
				findings = append(findings, about(rule.Resources, Finding{Cause: cause, Taint: t, Since: since})...)
			}
		}
	}
	return findings
}

// devicesMissing: while a device plugin is away, as during its upgrade, the kubelet reports 0
// devices as allocatable. That says nothing about the devices.
func (r Rules) devicesMissing(node *corev1.Node) []Finding {
	var findings []Finding
	for _, rule := range r.DevicesMissing {
		for name, all := range node.Status.Capacity {
			usable := node.Status.Allocatable[name]
			if n := usable.Value(); n > 0 && n < all.Value() && rule.isAbout(name) {
				findings = append(findings, Finding{Cause: Cause{DevicesMissing, string(name)}, Resource: name, Usable: n})
			}
		}
	}
	return findings
}

// notReady: the taint NoExecute is the node controller's own verdict. It comes after the condition
// Ready, and not at all while so many nodes are silent that the fault is probably elsewhere.
func (r Rules) notReady(node *corev1.Node) []Finding {
	var findings []Finding
	for _, t := range node.Spec.Taints {
		if !r.NotReady.reads(t) {
			continue
		}
		finding := Finding{Cause: Cause{NodeNotReady, t.Key}, Resource: AllPods, Taint: t, Since: timeOf(t.TimeAdded), Grace: r.NotReady.Grace}
		if t.TimeAdded == nil {
			finding.Since = notReadySince(node)
		}
		finding.Taint.TimeAdded = nil
		findings = append(findings, finding)
	}
	return findings
}

// notReadySince is zero if the node is ready: then somebody else set the taint.
func notReadySince(node *corev1.Node) time.Time {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// Gone is what is wrong with a node whose object was deleted. Its pods are removed by Kubernetes.
func Gone() []Finding {
	return []Finding{{Cause: Cause{NodeGone, "deleted"}, Resource: AllPods}}
}

// about repeats a finding for each resource.
func about(resources []corev1.ResourceName, f Finding) []Finding {
	findings := make([]Finding, len(resources))
	for i, name := range resources {
		f.Resource = name
		findings[i] = f
	}
	return findings
}

// IsAbout tells whether it holds for a resource.
func (f Finding) IsAbout(name corev1.ResourceName) bool {
	return f.Resource == AllPods || podtemplate.IsOf(name, f.Resource)
}

// Concerns tells whether a pod of the node must leave. InUse is how many of the resource the
// pods of its workload on that node request together. Which pod has a missing device is
// unknown, so pods may stay while the healthy devices suffice for all of them.
func (f Finding) Concerns(pod *corev1.PodSpec, inUse int64) bool {
	if f.Resource != AllPods && !podtemplate.AsksFor(pod, f.Resource) {
		return false
	}
	switch f.Source {
	case NodeTaint, NodeNotReady:
		tolerated, found := toleration(pod, f.Taint)
		return !found || tolerated.TolerationSeconds != nil
	case DevicesMissing: // of this name, and not parts of it
		return inUse > f.Usable && podtemplate.AsksForNamed(pod, f.Resource)
	case NodeLabel, NodeCondition, NodeGone, PodRejected, PodNotStarted, PodEvicted, PodFailed:
	}
	return true
}

// Due is when a pod must leave if nothing changes; zero is at once. It is not known if Kubernetes
// itself removes the pod, at a time that nobody wrote down.
func (f Finding) Due(pod *corev1.PodSpec) (due time.Time, known bool) {
	tolerated, found := toleration(pod, f.Taint)
	wait, waits := f.Grace, f.Source == NodeNotReady
	if found && tolerated.TolerationSeconds != nil && !isDefault(tolerated) {
		wait, waits = time.Duration(*tolerated.TolerationSeconds)*time.Second, true
	}
	switch {
	case f.Source == NodeGone || waits && f.Since.IsZero():
		return time.Time{}, false
	case waits:
		return f.Since.Add(wait), true
	}
	return time.Time{}, true
}

// attribution is how long after a failure a sign may appear that explains it: health checks find
// some time later what has made a pod fail.
const attribution = 10 * time.Minute

// Explains tells whether it may be the cause of what happened then. Of a sign without a time it
// is only known that it is there now.
func (f Finding) Explains(happened, now time.Time) bool {
	appeared := f.Since
	if appeared.IsZero() {
		appeared = now
	}
	return happened.IsZero() || !appeared.After(happened.Add(attribution))
}

// toleration is the first that tolerates the taint. As in Kubernetes, it alone counts.
func toleration(pod *corev1.PodSpec, taint corev1.Taint) (corev1.Toleration, bool) {
	if i := slices.IndexFunc(pod.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) }); i >= 0 {
		return pod.Tolerations[i], true
	}
	return corev1.Toleration{}, false
}

func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	anyKey := t.Key == "" && t.Operator == corev1.TolerationOpExists
	sameValue := t.Operator == corev1.TolerationOpExists || (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == taint.Value
	return (anyKey || t.Key == taint.Key) && sameValue && (t.Effect == "" || t.Effect == taint.Effect)
}

// Tolerates tells whether one of the tolerations is of the taint.
func Tolerates(tolerations []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) })
}

// isDefault: Kubernetes gives every pod these tolerations, so they say nothing about it.
func isDefault(t corev1.Toleration) bool {
	const seconds = 300
	return (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) && t.Operator == corev1.TolerationOpExists &&
		t.Effect == corev1.TaintEffectNoExecute && t.TolerationSeconds != nil && *t.TolerationSeconds == seconds
}

// Resources are those, in order, whose pods a rule may move; with AllPods if it may move any.
func (r Rules) Resources() []corev1.ResourceName {
	resources := map[corev1.ResourceName]bool{}
	for resource, labels := range r.Labels {
		if slices.ContainsFunc(labels, func(l corev1.Taint) bool { return l.Effect == corev1.TaintEffectNoExecute }) {
			resources[corev1.ResourceName(resource)] = true
		}
	}
	if r.NotReady.Leave {
		resources[AllPods] = true
	}
	for _, reaction := range r.reactions() {
		for _, name := range reaction.Resources {
			resources[name] = true
		}
	}
	return slices.Sorted(maps.Keys(resources))
}
