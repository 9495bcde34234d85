// SPDX-License-Identifier: Apache-2.0

package quotawatch

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Excuse is why an excess is known and accepted. Excused findings are counted and printed at
// the end.
type Excuse string

// The known excuses.
const (
	// Replaced: a terminating pod still runs while its controller has already created the
	// replacement. Kueue does not model the second pod, and the AppWrapper keeps the quota of
	// the first.
	Replaced Excuse = "a pod ends beside the one that replaces it"
	// Deactivated: an administrator set spec.active=false. Kueue counts the quota as free
	// before it has told the AppWrapper to stop: docs/decisions/0004.
	Deactivated Excuse = "the Workload was deactivated"
)

// Finding is an AppWrapper whose pods use more of a resource than Kueue reserves for it.
// Without findings, no ClusterQueue is exceeded either, because its usage is the sum of its
// AppWrappers'.
type Finding struct {
	AppWrapper types.NamespacedName
	// Excess says how much is used and how much is held.
	Excess string
	// Excuse is empty for a violation.
	Excuse Excuse
}

// Findings returns all findings at this moment, in a fixed order.
func (m Moment) Findings() []Finding {
	var found []Finding
	for _, e := range m.entries() {
		if e.used.Cmp(e.held) <= 0 {
			continue
		}
		found = append(found, Finding{AppWrapper: e.appWrapper, Excess: e.excess(), Excuse: e.excuse()})
	}
	return found
}

// violations are the findings without an excuse.
func (m Moment) violations() []Finding {
	return slices.DeleteFunc(m.Findings(), func(f Finding) bool { return f.Excuse != "" })
}

func (e entry) excess() string {
	of := "no quota is held for that"
	if e.queue != "" {
		of = fmt.Sprintf("%s of flavor %s are held for it in %s", e.held.String(), e.flavor, e.queue)
	}
	return fmt.Sprintf("AppWrapper %s uses %s %s with pods %s, and %s", e.appWrapper, e.used.String(), e.resource, strings.Join(e.pods, ", "), of)
}

func (e entry) excuse() Excuse {
	staying, entitled := e.used.DeepCopy(), e.held.DeepCopy()
	staying.Sub(e.replaced)
	entitled.Add(e.deactivated)
	switch {
	case e.used.Cmp(entitled) <= 0:
		return Deactivated
	case e.queue != "" && staying.Cmp(e.held) <= 0:
		return Replaced
	}
	return ""
}
