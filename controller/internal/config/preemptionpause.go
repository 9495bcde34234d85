// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/preemptionpause"
)

// PreemptionPause is how long work waits that is preempted again and again.
type PreemptionPause struct {
	// After is the preemption from which on it waits; 0 for never.
	After int32 `json:"after"`
	// First is how long it waits then. Each pause is twice as long as the one before, up to Longest.
	First   Duration `json:"first"`
	Longest Duration `json:"longest"`
}

// Pause is the rule about it.
func (p PreemptionPause) Pause() preemptionpause.Pause {
	return preemptionpause.Pause{After: p.After, First: p.First.Duration, Longest: p.Longest.Duration}
}

func defaultPreemptionPause() PreemptionPause {
	d := preemptionpause.Default()
	return PreemptionPause{After: d.After, First: Duration{d.First}, Longest: Duration{d.Longest}}
}

// The times of Kubernetes have whole seconds.
const shortestPause, longestPause = time.Second, 7 * 24 * time.Hour

func (p PreemptionPause) validate(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if p.After < 0 {
		problems = append(problems, field.Invalid(path.Child("after"), p.After, "must not be negative; 0 means that work is queued again at once"))
	}
	if p.First.Duration < shortestPause {
		problems = append(problems, field.Invalid(path.Child("first"), p.First.String(), "must be at least 1s; to have no pauses, set after to 0"))
	}
	if p.Longest.Duration < p.First.Duration || p.Longest.Duration > longestPause {
		problems = append(problems, field.Invalid(path.Child("longest"), p.Longest.String(), "must be at least as long as first, and at most 168h"))
	}
	return problems
}
