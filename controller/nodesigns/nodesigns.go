// SPDX-License-Identifier: Apache-2.0

// Package nodesigns answers for tools: what would the AppWrapper controller, with this
// configuration, think of a node? It decides nothing itself: packages config and nodehealth do.
package nodesigns

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/internal/slackquota"
)

// Settings are the part of the controller's configuration that is about nodes.
type Settings struct {
	rules  nodehealth.Rules
	enough int
	slack  []string
	// supply are the rules by which nodes lack resources.
	supply  nodehealth.Rules
	devices slackquota.Devices
}

// Default are the settings without a configuration file.
func Default() Settings { return of(config.Default()) }

// Parse reads the settings from the content of a configuration file.
func Parse(file []byte) (Settings, error) {
	c, _, err := config.Parse(file)
	return of(c), err
}

func of(c config.Config) Settings {
	return Settings{
		rules: c.AppWrapper.NodeRules(), enough: int(c.AppWrapper.NodeHealth.Avoid.SuspectAfter),
		slack: c.AppWrapper.SlackQueues(), supply: c.AppWrapper.SlackRules(),
	}
}

// SlackQueues are the ClusterQueues whose lending limits follow the nodes.
func (s Settings) SlackQueues() []string { return s.slack }

// Unhealthy are the signs for which pods have to leave a node. Missing devices are none of them:
// the others can be used.
func (s Settings) Unhealthy(node *corev1.Node) []string {
	var signs []string
	for _, f := range s.rules.Findings(node) {
		if sign := f.String(); f.Source != nodehealth.DevicesMissing && !slices.Contains(signs, sign) {
			signs = append(signs, sign)
		}
	}
	return signs
}

// DevicesName is of the ConfigMap, in the namespace of the controller, with the devices that nodes have shown.
const DevicesName = slackquota.DevicesName

// DeclaredSlackName is of the ConfigMap there with the slack queues of the file of the teams, by name.
const DeclaredSlackName = slackquota.DeclaredName

// Remembering are the settings together with the data of that ConfigMap.
func (s Settings) Remembering(data map[string]string) Settings {
	s.devices = slackquota.Parse(data)
	return s
}

// Stock is what a node has of a resource: in total, usable, and why that is less.
type Stock = slackquota.Stock

// Cause is why something is unusable.
type Cause = nodehealth.Source

// Causes are all of them, those first that explain others.
func Causes() []Cause { return slackquota.Causes() }

// Stocks are what a node has, by resource, as the lending limits of slack queues count it.
func (s Settings) Stocks(node *corev1.Node) map[corev1.ResourceName]Stock {
	return slackquota.Stocks(s.supply, node, s.devices)
}

// IsDevice reports whether a resource is counted in pieces of hardware.
func IsDevice(name corev1.ResourceName) bool { return nodehealth.IsDevice(name) }

// Serves tells whether work in the flavor may run on the node, apart from its health.
func Serves(node *corev1.Node, flavor *kueue.ResourceFlavor) bool {
	return slackquota.Serves(node, flavor)
}

// Largest is the most of each resource that one of these nodes offers to pods.
func Largest(nodes []*corev1.Node) corev1.ResourceList { return slackquota.Largest(nodes) }

// Published is what the controller wrote to a flavor of the largest of its nodes; nothing if it has none.
func Published(flavor *kueue.ResourceFlavor) corev1.ResourceList {
	return slackquota.Published(flavor)
}

// Beyond are the resources of which a pod requests more than the largest nodes have, so that it fits no node.
func Beyond(requests, largest corev1.ResourceList) []corev1.ResourceName {
	return slackquota.Beyond(requests, largest)
}

// Suspect is a node that looks healthy, and that several AppWrappers blame.
type Suspect = nodehealth.Suspect

// Suspects are such nodes at this time.
func (s Settings) Suspects(all []v1beta2.AppWrapper, now time.Time) []Suspect {
	var blames []nodehealth.Blame
	for _, aw := range all {
		by := types.NamespacedName{Namespace: aw.Namespace, Name: aw.Name}
		blames = append(blames, nodehealth.Blames(by, aw.Status, now)...)
	}
	return nodehealth.Suspects(blames, s.enough, now)
}
