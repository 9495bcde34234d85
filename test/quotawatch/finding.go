// SPDX-License-Identifier: Apache-2.0

package quotawatch

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Excuse is why an excess is known and accepted. There are two, and both are
// counted and printed at the end.
type Excuse string

// The excuses.
const (
	// Replaced: a pod that was told to end still runs beside the one that its own
	// controller has made in its place. Kueue's model has no room for that second,
	// and the AppWrapper keeps the quota of the first.
	Replaced Excuse = "a pod ends beside the one that replaces it"
	// Deactivated: an administrator has set spec.active=false, and Kueue has the
	// quota counted as free before it has told the AppWrapper to end: docs/decisions/0004.
	Deactivated Excuse = "the Workload was deactivated"
)

// Finding is an AppWrapper whose pods use more of something than Kueue holds for
// it. Where there is none, no ClusterQueue is exceeded either: a queue's use is
// the sum of its AppWrappers'.
type Finding struct {
	AppWrapper types.NamespacedName
	// Excess says what is used and what is held.
	Excess string
	// Excuse is empty for a violation.
	Excuse Excuse
}

// Findings are all at this moment, in a fixed order.
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

// violations are the findings that nothing excuses.
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
