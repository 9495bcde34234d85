// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/mlbatch/mlbatch/test/counted/variation"
)

// walk goes down a schema at random, rather to what the value has than to what it lacks, and returns the change of
// the field where it ends.
func walk(s variation.Schemas, schema map[string]any, value any, random *rand.Rand) change {
	var path []string
	for {
		names, next := steps(s, schema, value)
		present := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return variation.At(value, []string{name}) == nil })
		if len(present) > 0 && random.IntN(5) < 3 {
			names = present
		}
		if len(names) == 0 || len(path) > 0 && random.IntN(8) == 0 {
			break
		}
		name := names[random.IntN(len(names))]
		path, schema, value = append(path, name), next(name), variation.At(value, []string{name})
	}
	if value != nil && random.IntN(8) == 0 {
		return change{path: path, absent: true}
	}
	return change{path: path, value: corner(s, schema, value, random)}
}

// steps are the fields below a value, and the schema of each.
func steps(s variation.Schemas, schema map[string]any, value any) ([]string, func(string) map[string]any) {
	if items := schema["items"]; items != nil {
		list, _ := value.([]any)
		var names []string
		for i := range list {
			names = append(names, strconv.Itoa(i))
		}
		return names, func(string) map[string]any { return s.Resolve(items) }
	}
	if properties := variation.Object(schema["properties"]); len(properties) > 0 {
		return keys(properties), func(name string) map[string]any { return s.Resolve(properties[name]) }
	}
	return keys(variation.Object(value)), func(string) map[string]any { return s.Resolve(schema["additionalProperties"]) }
}

// corner is a value at the edge of what a schema allows, or behind it.
func corner(s variation.Schemas, schema map[string]any, value any, random *rand.Rand) any {
	if random.IntN(20) == 0 {
		return pick(random, malformed)
	}
	if members, _ := schema["enum"].([]any); len(members) > 0 {
		return pick(random, append(slices.Clone(members), "NoMember"))
	}
	if schema["x-kubernetes-int-or-string"] == true {
		return pick(random, amounts)
	}
	switch schema["type"] {
	case "boolean":
		return value != true
	case "integer", "number":
		return pick(random, append(limits(schema), integers...))
	case "string":
		return pick(random, words)
	case "array":
		return pick(random, lists(s, schema, value, random))
	}
	return map[string]any{}
}

// limits are the edges of a number, and what is beyond them.
func limits(schema map[string]any) (edges []any) {
	for _, edge := range []string{"minimum", "maximum"} {
		switch limit := schema[edge].(type) {
		case float64:
			edges = append(edges, int64(limit)-1, int64(limit), int64(limit)+1)
		case int64:
			edges = append(edges, limit-1, limit, limit+1)
		}
	}
	return edges
}

// many is more items than a policy can look at one by one, with the cost that an API server grants it.
const many = 2000

// lists are empty, longer than the value, or have one more item, or many.
func lists(s variation.Schemas, schema map[string]any, value any, random *rand.Rand) []any {
	now, _ := value.([]any)
	item := corner(s, s.Resolve(schema["items"]), nil, random)
	all := []any{[]any{}, append(slices.Clone(now), item)}
	if random.IntN(8) == 0 {
		all = append(all, slices.Repeat([]any{item}, many))
	}
	if len(now) > 0 {
		all = append(all, slices.Concat(now, now), now[:len(now)-1])
	}
	return all
}

var (
	integers = []any{int64(0), int64(1), int64(2), int64(5), int64(-1), int64(30), int64(90), int64(math.MaxInt32), int64(math.MaxInt64)}
	amounts  = []any{"0", int64(0), "1", int64(1), int64(3), "100m", "1e-3", "-1", "8", "1Ei", "9223372036854775807", "1e400", "50%"}
	// words mean something to Kubernetes or to operators where they are expected, and nothing elsewhere.
	words = []any{
		"", "a", Episode + "-a", Episode + "-b", "none-such", "Always", "Never", "OnFailure", "None", "All", "Running", "default-queue",
		"kueue.x-k8s.io/multikueue", "ray.io/kuberay-operator", "workload.codeflare.dev/appwrapper", "default-scheduler",
		"system-node-critical", "low-priority", "gpu-0", "1s", "24h", "${X}", "Ü/ .. ", strings.Repeat("x", 5000),
	}
	malformed = []any{nil, true, int64(7), "7", []any{}, map[string]any{}}
)

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }
