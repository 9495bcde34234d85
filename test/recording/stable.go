// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

var (
	times     = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	uids      = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	addresses = regexp.MustCompile(`\b(10|172|192)(\.\d{1,3}){3}\b`)
	digests   = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	hashed    = regexp.MustCompile(`-[0-9a-f]{5}$`)
)

// stable replaces what differs from one recording to the next one: times, UIDs and random parts of names.
func stable(text string, o explain.Objects) string {
	names := renamed(o)
	// A name may begin another one.
	longest := slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for _, name := range longest {
		text = strings.ReplaceAll(text, name, names[name])
	}
	text = times.ReplaceAllStringFunc(text, func(said string) string {
		at, err := time.Parse(time.RFC3339Nano, said)
		if err != nil {
			return said
		}
		return Now.Add(at.Sub(o.Now).Round(time.Second)).Format(time.RFC3339)
	})
	seen := map[string]string{}
	text = uids.ReplaceAllStringFunc(text, func(uid string) string {
		if seen[uid] == "" {
			seen[uid] = fmt.Sprintf("00000000-0000-0000-0000-%012d", len(seen)+1)
		}
		return seen[uid]
	})
	return digests.ReplaceAllString(addresses.ReplaceAllString(text, "10.0.0.1"), strings.Repeat("0", 64))
}

// renamed are the names with random parts, and what takes their place.
func renamed(o explain.Objects) map[string]string {
	names, count := map[string]string{}, map[string]int{}
	for _, p := range slices.Concat(o.Pods, o.Placed) {
		prefix, random := randomly(p)
		if random && names[p.Name] == "" {
			count[prefix]++
			names[p.Name] = fmt.Sprintf("%s%d", prefix, count[prefix])
		}
	}
	if o.Workload != nil {
		names[o.Workload.Name] = hashed.ReplaceAllString(o.Workload.Name, "-1")
	}
	return names
}

// randomly is the beginning of a name that the API server has made up.
func randomly(p corev1.Pod) (prefix string, random bool) {
	prefix = p.GenerateName
	return prefix, prefix != "" && strings.HasPrefix(p.Name, prefix) && len(p.Name) > len(prefix)
}
