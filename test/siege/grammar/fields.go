// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"math/rand/v2"
	"slices"

	"github.com/mlbatch/mlbatch/test/counted/variation"
)

var (
	counts   = []any{int64(0), int64(1), int64(2), int64(5), int64(30), int64(90)}
	seconds  = []any{int64(-1), int64(0), int64(1), int64(5)}
	switches = []any{true, false}
	classes  = []any{"system-node-critical", "low-priority", "none-such"}
)

// spoken are fields that make operators look away, stop, begin again, or make more or fewer objects. Kinds call the
// same thing by the same name. A walk over a schema ends at one of them too seldom, with a value that means something.
var spoken = map[string][]any{
	"managedBy": {"kueue.x-k8s.io/multikueue", "example.com/nobody"}, "schedulerName": {"none-such"},
	"suspend": switches, "paused": switches,
	"replicas": counts, "minReplicas": counts, "maxReplicas": counts, "parallelism": counts, "completions": counts, "size": counts,
	"numOfHosts": counts, "minMember": counts, "minAvailable": counts, "maxRestarts": counts, "backoffLimit": counts,
	"activeDeadlineSeconds": seconds, "progressDeadlineSeconds": seconds, "ttlSecondsAfterFinished": seconds, "idleTimeoutSeconds": seconds,
	"cleanPodPolicy": {"None", "Running", "All"}, "restartPolicy": {"Always", "Never", "OnFailure", "ExitCode"},
	"shutdownAfterJobFinishes": switches, "enableInTreeAutoscaling": switches, "enableIngress": switches, "cancel": switches,
	"submissionMode":    {"K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"},
	"clusterSelector":   {map[string]any{"ray.io/cluster": Episode + "-b"}},
	"type":              {"NodePort", "LoadBalancer", "ClusterIP", "Recreate", "NewCluster", "None"},
	"externalIPs":       {[]any{"192.0.2.1"}},
	"minResources":      {map[string]any{"cpu": "1"}, map[string]any{}},
	"priorityClass":     classes,
	"priorityClassName": classes,
	"labels":            {map[string]any{"workload.codeflare.dev/appwrapper": Episode + "-b"}},
}

// costly are amounts that programs decode for hours. They are drawn only where somebody refuses them.
var costly = []any{"1e-2000000000", "1e2000000000", "0.5e-999999999"}

// spokenOf are the paths of such fields in a schema outside of pod templates, also of those that the value lacks. Kinds
// nest them two levels deep below what is there.
func spokenOf(s variation.Schemas, schema map[string]any, value any, path []string, missing int) (found [][]string) {
	properties := variation.Object(schema["properties"])
	if missing > 2 || variation.Object(s.Resolve(properties["spec"])["properties"])["containers"] != nil {
		return nil
	}
	names, next := steps(s, schema, value)
	for _, name := range names {
		below := slices.Concat(path, []string{name})
		if spoken[name] != nil && properties[name] != nil {
			found = append(found, below)
			continue
		}
		inner, depth := variation.At(value, []string{name}), 0
		if inner == nil {
			depth = missing + 1
		}
		found = append(found, spokenOf(s, next(name), inner, below, depth)...)
	}
	return found
}

// spoke changes one of them.
func spoke(path []string, random *rand.Rand) change {
	if random.IntN(8) == 0 {
		return change{path: path, absent: true}
	}
	return change{path: path, value: pick(random, spoken[path[len(path)-1]])}
}
