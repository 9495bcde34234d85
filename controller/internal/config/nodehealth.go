// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// NodeHealth says how a node shows that it is unhealthy, besides its labels.
type NodeHealth struct {
	nodehealth.Listed
	NotReady NotReady `json:"notReady"`
	Avoid    Avoid    `json:"avoid"`
	Cordon   Cordon   `json:"cordon"`
	// CapacityProviders are the names of the objects in which Kueue is told what pods can get on the nodes.
	CapacityProviders []string `json:"capacityProviders"`
}

// ToleratedTaints are those by which the health of nodes is judged: KEY, with any value, or KEY=VALUE. Pods that
// tolerate one were told to stay.
func (n NodeHealth) ToleratedTaints() []string {
	var all []string
	for _, rule := range n.Taints {
		taint := rule.Key
		if rule.Value != nil {
			taint += "=" + *rule.Value
		}
		all = append(all, taint)
	}
	return all
}

// NotReady is about nodes of which the node controller says that they are not ready or unreachable.
type NotReady struct {
	// Leave: all pods leave them.
	Leave bool `json:"leave"`
	// GracePeriod is how long a node may take to come back.
	GracePeriod Duration `json:"gracePeriod"`
}

// Avoid is how an AppWrapper keeps away from nodes that failed it.
type Avoid struct {
	// Nodes is how many at most.
	Nodes int32 `json:"nodes"`
	// Period is for how long.
	Period Duration `json:"period"`
	// SuspectAfter is how many AppWrappers must blame a node until others prefer different nodes.
	SuspectAfter int32 `json:"suspectAfter"`
}

// Cordon is about nodes that failed enough AppWrappers to be suspect.
type Cordon struct {
	// Nodes is how many may be cordoned at the same time.
	Nodes int32 `json:"nodes"`
	// Teams is in how many namespaces these AppWrappers must be.
	Teams int32 `json:"teams"`
}

// Cordoning is how nodes that fail unrelated work are cordoned.
func (n NodeHealth) Cordoning() nodehealth.Cordoning {
	return nodehealth.Cordoning{Nodes: int(n.Cordon.Nodes), AppWrappers: int(n.Avoid.SuspectAfter), Teams: int(n.Cordon.Teams)}
}

func (c Cordon) validate(path *field.Path, aw *AppWrapper) field.ErrorList {
	var problems field.ErrorList
	if c.Nodes < 0 {
		problems = append(problems, field.Invalid(path.Child("nodes"), c.Nodes, "must not be negative; 0 cordons none"))
	}
	if c.Teams < fewestTeams {
		problems = append(problems, field.Invalid(path.Child("teams"), c.Teams, "must be at least 2: else a team could have nodes cordoned by itself"))
	}
	avoid := aw.NodeHealth.Avoid
	switch {
	case c.Nodes <= 0:
	case !aw.Autopilot.MonitorNodes:
		problems = append(problems, field.Forbidden(path, "appwrapper.autopilot.monitorNodes is false, so no node is watched: set it to true, or nodes to 0"))
	case avoid.Nodes == 0 || avoid.SuspectAfter == 0:
		problems = append(problems, field.Forbidden(path, "no node is suspect while avoid.nodes or avoid.suspectAfter is 0: set both, or cordon.nodes to 0"))
	}
	return problems
}

const fewestTeams = 2

// mostAvoidedNodes bounds what is added to the node affinity of every pod.
const mostAvoidedNodes = 100

func (a Avoid) bounds() lifecycle.Avoidance {
	return lifecycle.Avoidance{Nodes: a.Nodes, Period: a.Period.Duration, SuspectAfter: a.SuspectAfter}
}

func (a Avoid) validate(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if a.Nodes < 0 || a.Nodes > mostAvoidedNodes {
		problems = append(problems, field.Invalid(path.Child("nodes"), a.Nodes, fmt.Sprintf("must be between 0, which avoids none, and %d", mostAvoidedNodes)))
	}
	if a.Period.Duration < 0 {
		problems = append(problems, field.Invalid(path.Child("period"), a.Period.String(), "must not be negative"))
	}
	if a.SuspectAfter < 0 || a.SuspectAfter == 1 {
		problems = append(problems, field.Invalid(path.Child("suspectAfter"), a.SuspectAfter, "must be 0, which suspects none, or at least 2: one AppWrapper may fail by itself"))
	}
	return problems
}

func defaultNodeHealth() NodeHealth {
	avoid := lifecycle.StandardDefaults().Avoid
	return NodeHealth{
		NotReady: NotReady{Leave: true, GracePeriod: Duration{time.Minute}},
		Avoid:    Avoid{Nodes: avoid.Nodes, Period: Duration{avoid.Period}, SuspectAfter: avoid.SuspectAfter},
		Cordon:   Cordon{Teams: fewestTeams},
	}
}

// Rule is the rule about such nodes.
func (n NotReady) Rule() nodehealth.NotReady {
	return nodehealth.NotReady{Leave: n.Leave, Grace: n.GracePeriod.Duration}
}

// NodeRules are the rules by which nodes have to be left. If there are none, nodes are neither
// watched nor cached.
func (c AppWrapper) NodeRules() nodehealth.Rules {
	rules := nodehealth.Rules{Labels: c.Autopilot.ResourceTaints, Listed: c.NodeHealth.Listed, NotReady: c.NodeHealth.NotReady.Rule()}
	switch {
	case !c.Autopilot.MonitorNodes:
		return nodehealth.Rules{}
	case len(rules.Resources()) == 0:
		return nodehealth.Rules{Monitored: true}
	}
	rules.Monitored = true
	return rules
}

// Why a rule cannot keep new pods away from a node. Affinity, as for labels, sees labels only.
const (
	conditionsRepelNobody = "the scheduler does not see conditions: set NoExecute, and let what sets the condition taint or label the node"
	taintsRepelThemselves = "the scheduler itself keeps pods away from nodes with a taint: set NoExecute, or remove the rule"
	missingDevicesAreFree = "the scheduler itself gives no pod a missing device: set NoExecute, or remove the rule"
)

func (c *AppWrapper) validateNodeHealth(path *field.Path) field.ErrorList {
	problems := append(c.NodeHealth.Avoid.validate(path.Child("avoid")), c.NodeHealth.Cordon.validate(path.Child("cordon"), c)...)
	if !c.NodeHealth.None() && !c.Autopilot.MonitorNodes {
		problems = append(problems, field.Forbidden(path, "appwrapper.autopilot.monitorNodes is false, so no node is watched: set it to true, or remove the rules"))
	}
	problems = append(problems, c.validateCapacityProviders(path.Child("capacityProviders"))...)
	if grace := c.NodeHealth.NotReady.GracePeriod; grace.Duration < 0 {
		problems = append(problems, field.Invalid(path.Child("notReady", "gracePeriod"), grace.String(), "must not be negative; to stay on such nodes, set leave to false"))
	}
	for i, rule := range c.NodeHealth.Conditions {
		problems = append(problems, validateConditionRule(rule, path.Child("conditions").Index(i))...)
	}
	for i, rule := range c.NodeHealth.Taints {
		problems = append(problems, validateTaintRule(rule, path.Child("taints").Index(i))...)
	}
	for i, rule := range c.NodeHealth.DevicesMissing {
		problems = append(problems, validateDevicesRule(rule, path.Child("devicesMissing").Index(i))...)
	}
	return problems
}

func validateConditionRule(rule nodehealth.ConditionRule, at *field.Path) field.ErrorList {
	problems := validateReaction(rule.Reaction, at, conditionsRepelNobody)
	if rule.Type == "" {
		problems = append(problems, field.Required(at.Child("type"), "the type of the node condition to look at"))
	}
	statuses := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}
	if !slices.Contains(statuses, rule.Status) {
		problems = append(problems, field.NotSupported(at.Child("status"), rule.Status, statuses))
	}
	return problems
}

func validateTaintRule(rule nodehealth.TaintRule, at *field.Path) field.ErrorList {
	problems := validateReaction(rule.Reaction, at, taintsRepelThemselves)
	if rule.Key == "" {
		problems = append(problems, field.Required(at.Child("key"), "the key of the node taint to look at"))
	} else {
		problems = append(problems, invalid(at.Child("key"), rule.Key, validation.IsQualifiedName(rule.Key))...)
	}
	if rule.Value != nil {
		problems = append(problems, invalid(at.Child("value"), *rule.Value, validation.IsValidLabelValue(*rule.Value))...)
	}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if rule.TaintEffect != "" && !slices.Contains(effects, rule.TaintEffect) {
		problems = append(problems, field.NotSupported(at.Child("taintEffect"), rule.TaintEffect, effects))
	}
	return problems
}

func validateDevicesRule(rule nodehealth.Reaction, at *field.Path) field.ErrorList {
	problems := validateReaction(rule, at, missingDevicesAreFree)
	for i, name := range rule.Resources {
		if !nodehealth.IsDevice(name) {
			problems = append(problems, field.Invalid(at.Child("resources").Index(i), name,
				"must be a resource of a device plugin, with a domain in its name, such as nvidia.com/gpu"))
		}
	}
	return problems
}

// validateReaction refuses the effects that a rule cannot have, and says why.
func validateReaction(r nodehealth.Reaction, at *field.Path, why string) field.ErrorList {
	var problems field.ErrorList
	switch r.Effect {
	case corev1.TaintEffectNoExecute:
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule:
		problems = append(problems, field.Invalid(at.Child("effect"), r.Effect, why))
	default:
		problems = append(problems, field.NotSupported(at.Child("effect"), r.Effect, []corev1.TaintEffect{corev1.TaintEffectNoExecute}))
	}
	return append(problems, validateResources(r.Resources, at.Child("resources"))...)
}

func validateResources(names []corev1.ResourceName, at *field.Path) field.ErrorList {
	if len(names) == 0 {
		return field.ErrorList{field.Required(at, `the resources whose pods have to leave, or ["*"] for all pods`)}
	}
	var problems field.ErrorList
	for i, name := range names {
		if name != nodehealth.AllPods {
			problems = append(problems, invalid(at.Index(i), string(name), validation.IsQualifiedName(string(name)))...)
		} else if len(names) > 1 {
			problems = append(problems, field.Invalid(at.Index(i), name, "means all pods: remove the other resources"))
		}
	}
	return problems
}
