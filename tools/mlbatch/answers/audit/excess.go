// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"
	"strings"
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

// Excess is a holder whose pods use more of a resource than Kueue reserves for it. Without
// excesses, no ClusterQueue is exceeded either, because its usage is the sum of its holders'.
type Excess struct {
	Holder Holder
	// Amounts says how much is used and how much is held.
	Amounts string
	// Excuse is empty for a violation.
	Excuse Excuse
}

// Excesses returns all excesses at this moment, in a fixed order.
func (m Moment) Excesses() []Excess { return excesses(m.Usages()) }

func excesses(usages []Usage) []Excess {
	var found []Excess
	for _, u := range usages {
		if u.Used.Cmp(u.Held) <= 0 {
			continue
		}
		found = append(found, Excess{Holder: u.Holder, Amounts: u.amounts(), Excuse: u.excuse()})
	}
	return found
}

// Unexcused are the excesses without an excuse.
func (m Moment) Unexcused() []Excess { return unexcused(m.Usages()) }

func unexcused(usages []Usage) []Excess {
	return slices.DeleteFunc(excesses(usages), func(e Excess) bool { return e.Excuse != "" })
}

func (u Usage) amounts() string {
	of := "no quota is held for that"
	if u.Queue != "" {
		of = fmt.Sprintf("%s of flavor %s are held for it in %s", u.Held.String(), u.Flavor, u.Queue)
	}
	return fmt.Sprintf("%s uses %s %s with pods %s, and %s", u.Holder, u.Used.String(), u.Resource, few(u.pods), of)
}

// few joins names, but not hundreds of them.
func few(names []string) string {
	const enough = 5
	if more := len(names) - enough; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:enough], ", "), more)
	}
	return strings.Join(names, ", ")
}

func (u Usage) excuse() Excuse {
	staying, entitled := u.Used.DeepCopy(), u.Held.DeepCopy()
	staying.Sub(u.replaced)
	entitled.Add(u.deactivated)
	switch {
	case u.Used.Cmp(entitled) <= 0:
		return Deactivated
	case u.Queue != "" && staying.Cmp(u.Held) <= 0:
		return Replaced
	}
	return ""
}
