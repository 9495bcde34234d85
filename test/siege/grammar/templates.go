// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/mlbatch/mlbatch/test/counted/variation"
)

const (
	gpu = "nvidia.com/gpu"
	// stopFor makes a pod of a simulated node take a time to end.
	stopFor = "localcluster.mlbatch.dev/stop-for"
	runFor  = "localcluster.mlbatch.dev/run-for"
)

// rule is what a pod template may say that gets more than was counted, or a better place. A walk over the schema of a
// pod finds such things too seldom: it has hundreds of fields. Paths are below the template.
type rule struct {
	name   string
	change func(random *rand.Rand) change
}

var rules = []rule{
	{"devices", func(random *rand.Rand) change {
		amount := pick(random, []any{"0", "2", "9", "100"})
		return change{path: []string{"spec", "containers", "0", "resources"}, value: map[string]any{
			"requests": map[string]any{"cpu": "10m", gpu: amount}, "limits": map[string]any{gpu: amount},
		}}
	}},
	{"a side-car", func(random *rand.Rand) change {
		return change{path: []string{"spec", "initContainers"}, value: []any{container("side", random.IntN(2) == 0)}}
	}},
	{"another container", func(random *rand.Rand) change {
		return change{path: []string{"spec", "containers", "1"}, value: container("other", random.IntN(4) == 0)}
	}},
	{"resources of the pod", func(*rand.Rand) change {
		return change{path: []string{"spec", "resources"}, value: map[string]any{"requests": map[string]any{"cpu": "1", "memory": "1Gi"}}}
	}},
	{"an overhead", func(*rand.Rand) change {
		return change{path: []string{"spec", "overhead"}, value: map[string]any{gpu: "1"}}
	}},
	{"a toleration", tolerated},
	{"an anti-affinity", func(*rand.Rand) change {
		return change{path: []string{"spec", "affinity"}, value: map[string]any{"podAntiAffinity": map[string]any{
			"requiredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{"topologyKey": "kubernetes.io/hostname", "namespaceSelector": map[string]any{}}},
		}}}
	}},
	{"a node", func(*rand.Rand) change { return change{path: []string{"spec", "nodeName"}, value: "gpu-0"} }},
	{"a class", func(random *rand.Rand) change {
		return change{path: []string{"spec", "priorityClassName"}, value: pick(random, []any{"system-node-critical", "low-priority", "none-such"})}
	}},
	{"another scheduler", func(*rand.Rand) change {
		return change{path: []string{"spec", "schedulerName"}, value: "none-such"}
	}},
	{"the network of the node", func(*rand.Rand) change { return change{path: []string{"spec", "hostNetwork"}, value: true} }},
	{"all rights", func(*rand.Rand) change {
		return change{path: []string{"spec", "containers", "0", "securityContext"}, value: map[string]any{"privileged": true}}
	}},
	{"a long grace", func(random *rand.Rand) change {
		return change{path: []string{"spec", "terminationGracePeriodSeconds"}, value: pick(random, []any{int64(0), int64(30), int64(601), int64(86400)})}
	}},
	{"a slow end", func(random *rand.Rand) change {
		return change{path: []string{"metadata", "annotations", stopFor}, value: pick(random, []any{"5s", "20s"})}
	}},
	{"an end", func(*rand.Rand) change { return change{path: ends, value: "1s"} }},
	{"no containers", func(*rand.Rand) change { return change{path: []string{"spec", "containers"}, value: []any{}} }},
	{"labels of others", func(random *rand.Rand) change {
		c := labelled("", random)
		c.path[1] = "labels"
		return c
	}},
}

func tolerated(random *rand.Rand) change {
	return change{path: []string{"spec", "tolerations"}, value: []any{pick(random, []any{
		map[string]any{"operator": "Exists"}, map[string]any{"key": "example.com/reserved-for", "operator": "Exists"},
		map[string]any{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"},
	})}}
}

func container(name string, always bool) map[string]any {
	c := map[string]any{"name": name, "image": "simulated", "resources": map[string]any{
		"requests": map[string]any{"cpu": "10m", gpu: "1"}, "limits": map[string]any{gpu: "1"},
	}}
	if always {
		c["restartPolicy"] = "Always"
	}
	return c
}

// templates are the paths of the pod templates in an object. The object itself may be a pod.
func templates(value any, path []string) (found [][]string) {
	if containers, _ := variation.At(value, []string{"spec", "containers"}).([]any); len(containers) > 0 {
		return [][]string{path}
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range keys(v) {
			found = append(found, templates(v[name], slices.Concat(path, []string{name}))...)
		}
	case []any:
		for i, item := range v {
			found = append(found, templates(item, slices.Concat(path, []string{strconv.Itoa(i)}))...)
		}
	}
	return found
}

// sizes are the paths of numbers that an object has outside of pod templates.
func sizes(value any, path []string) (found [][]string) {
	switch v := value.(type) {
	case int64:
		return [][]string{path}
	case map[string]any:
		if variation.At(v, []string{"spec", "containers"}) != nil {
			return nil
		}
		for _, name := range keys(v) {
			found = append(found, sizes(v[name], slices.Concat(path, []string{name}))...)
		}
	case []any:
		for i, item := range v {
			found = append(found, sizes(item, slices.Concat(path, []string{strconv.Itoa(i)}))...)
		}
	}
	return found
}

// WithDevices gives each pod of an object a device: without one, pods of a local cluster find no node.
func WithDevices(object map[string]any) map[string]any {
	for _, path := range templates(object, nil) {
		for _, kind := range []string{"limits", "requests"} {
			variation.Set(object, slices.Concat(path, []string{"spec", "containers", "0", "resources", kind, gpu}), "1")
		}
	}
	return object
}
