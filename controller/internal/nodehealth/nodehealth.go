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
	PodRejected    Source = "PodRejected"
)

// Sources are all sources.
func Sources() []Source {
	return []Source{NodeLabel, NodeCondition, NodeTaint, DevicesMissing, NodeNotReady, PodRejected}
}

// SeenByScheduler reports whether the scheduler itself gives the node no pod that would have to
// leave it, while the sign is there.
func (s Source) SeenByScheduler() bool {
	return s == NodeLabel || s == NodeTaint || s == DevicesMissing
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
	// Due is when pods must leave if nothing changes; zero is at once.
	Due time.Time
	// Usable of DevicesMissing: as many devices are healthy.
	Usable int64
}

// Findings are what is wrong with the node, in an order that does not depend on that of the
// rules. A heartbeat changes none of them.
func (r Rules) Findings(node *corev1.Node) []Finding {
	findings := slices.Concat(r.labelled(node), r.inCondition(node), r.tainted(node), r.devicesMissing(node), r.notReady(node))
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(a.Compare(b.Cause), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Taint.Value, b.Taint.Value), a.Due.Compare(b.Due))
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
				findings = append(findings, about(rule.Resources, Finding{Cause: cause})...)
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
				t.TimeAdded = nil
				cause := Cause{NodeTaint, t.ToString()}
				findings = append(findings, about(rule.Resources, Finding{Cause: cause, Taint: t})...)
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
		for _, name := range rule.Resources {
			usable, all := node.Status.Allocatable[name], node.Status.Capacity[name]
			if n := usable.Value(); n > 0 && n < all.Value() {
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
		finding := Finding{Cause: Cause{NodeNotReady, t.Key}, Resource: AllPods, Taint: t}
		if t.TimeAdded != nil {
			finding.Due = t.TimeAdded.Add(r.NotReady.Grace)
		}
		finding.Taint.TimeAdded = nil
		findings = append(findings, finding)
	}
	return findings
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

// Concerns tells whether a pod of the node must leave. InUse is how many of the resource the
// pods of its workload on that node request together. Which pod has a missing device is
// unknown, so pods may stay while the healthy devices suffice for all of them.
func (f Finding) Concerns(pod *corev1.PodSpec, inUse int64) bool {
	if f.Resource != AllPods && !podtemplate.AsksFor(pod, f.Resource) {
		return false
	}
	switch f.Source {
	case NodeTaint, NodeNotReady:
		return !slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, f.Taint) })
	case DevicesMissing:
		return inUse > f.Usable
	case NodeLabel, NodeCondition, PodRejected:
	}
	return true
}

// tolerates: for as long as the taint is there. Kubernetes gives every pod tolerations that end.
func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	anyKey := t.Key == "" && t.Operator == corev1.TolerationOpExists
	sameValue := t.Operator == corev1.TolerationOpExists || (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == taint.Value
	return t.TolerationSeconds == nil && (anyKey || t.Key == taint.Key) && sameValue && (t.Effect == "" || t.Effect == taint.Effect)
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
