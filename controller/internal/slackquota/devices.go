// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// DevicesName is of the ConfigMap in which the controller remembers the devices of nodes.
const DevicesName = "mlbatch-node-devices"

// Known are the most devices that a node has shown. A device that is broken is at first still in
// the capacity of the node, and no longer after its plugin or the node was started anew.
type Known struct {
	// Node is the UID: what is known of a node ends with the object.
	Node types.UID `json:"node"`
	// Devices are counted by the name of the resource.
	Devices map[corev1.ResourceName]resource.Quantity `json:"devices"`
}

// Devices has what is known, by the name of the node.
type Devices map[string]Known

// Learn is what is known now: of each device that a node shows the most that it has shown. Nodes
// that are gone are forgotten.
func (d Devices) Learn(nodes []corev1.Node) Devices {
	learned := Devices{}
	for i := range nodes {
		node := &nodes[i]
		known := Known{Node: node.UID, Devices: map[corev1.ResourceName]resource.Quantity{}}
		for name, most := range d.had(node) {
			if nodehealth.IsDevice(name) && most.Sign() > 0 {
				known.Devices[name] = most
			}
		}
		if len(known.Devices) > 0 && node.DeletionTimestamp == nil {
			learned[node.Name] = known
		}
	}
	return learned
}

// had is what a node had while it was healthy. Of CPU and memory that is what is allocatable: the
// rest is reserved for the system.
func (d Devices) had(node *corev1.Node) corev1.ResourceList {
	had := corev1.ResourceList{}
	for name, quantity := range node.Status.Allocatable {
		had[name] = quantity
	}
	raise(had, node.Status.Capacity)
	if known := d[node.Name]; known.Node == node.UID {
		raise(had, known.Devices)
	}
	return had
}

// raise raises devices to at least these.
func raise(had corev1.ResourceList, least map[corev1.ResourceName]resource.Quantity) {
	for name, quantity := range least {
		if has := had[name]; nodehealth.IsDevice(name) && has.Cmp(quantity) < 0 {
			had[name] = quantity
		}
	}
}

// Parse reads what was stored, by the name of the node. An entry that cannot be read is forgotten.
func Parse(stored map[string]string) Devices {
	d := Devices{}
	for name, text := range stored {
		var known Known
		if err := json.Unmarshal([]byte(text), &known); err == nil {
			d[name] = known
		}
	}
	return d
}

// Changes are the entries of stored that have to be written, and nil for those to be removed.
func (d Devices) Changes(stored map[string]string) map[string]any {
	changes := map[string]any{}
	for name := range stored {
		if _, ok := d[name]; !ok {
			changes[name] = nil
		}
	}
	for name, known := range d {
		text, _ := json.Marshal(known) // cannot fail: there are only strings
		if stored[name] != string(text) {
			changes[name] = string(text)
		}
	}
	return changes
}
