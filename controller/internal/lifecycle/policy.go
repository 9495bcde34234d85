// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Policy holds the timers and limits of one AppWrapper.
type Policy struct {
	// AdmissionGrace is how long creating the components, and then their pods, may take.
	AdmissionGrace time.Duration
	// WarmupGrace is how long pods may take to run once all of them exist.
	WarmupGrace time.Duration
	// InitGrace is how long each init container of a pod may run, while nothing but such is waited for.
	InitGrace time.Duration
	// FailureGrace is how long failed or lost pods may take to be replaced.
	FailureGrace time.Duration
	// SurplusGrace is how long pods may exceed the pod sets: the configured failure grace, which
	// no annotation makes longer.
	SurplusGrace time.Duration
	// NoProgressGrace is how long a pod may run without being ready; 0 is no limit.
	NoProgressGrace time.Duration
	// IdleGrace is how long the pods may hold devices that they do not use; 0 is no limit.
	IdleGrace time.Duration
	// ResetSurplus: pods that exceed the pod sets for longer are a failure, and not only reported.
	ResetSurplus bool
	// SameFailure is how soon after its start a program must end in the same way in two attempts to get no third; 0 is
	// never.
	SameFailure time.Duration
	// RetryPause is how long to wait after one attempt is gone and before the next.
	RetryPause time.Duration
	// RetryLimit is how many times a failed workload is retried, and how many times more one is whose start is late.
	RetryLimit int32
	// MigrationLimit is how many times a workload migrates from unhealthy nodes.
	MigrationLimit int32
	// Avoid is how many nodes that failed the workload it avoids, and for how long.
	Avoid Avoidance
	// ForcefulDeletionGrace is how long a deletion may take before it is forced.
	ForcefulDeletionGrace time.Duration
	// KeptGrace is the longest that quota is held for what cannot use it: the configured
	// forceful deletion grace, or admission grace, which no annotation makes longer.
	KeptGrace time.Duration
	// DeletionOnFailureHold is how long the components of a failed workload are kept.
	DeletionOnFailureHold time.Duration
	// SuccessTTL is how long the components of a successful workload are kept.
	SuccessTTL time.Duration
	// TerminalExitCodes forbid a retry.
	TerminalExitCodes []int32
	// RetryableExitCodes, if any, are the only exit codes that allow a retry.
	RetryableExitCodes []int32
	// LastWords: what programs write last is kept in the status.
	LastWords bool
	// LastCheckpoint is when the workload last saved what it had done; zero if it does not say.
	LastCheckpoint time.Time
}

// Problem is an annotation that cannot be parsed. The default is used instead.
type Problem struct {
	Annotation, Value, Message string
}

// Error makes a Problem an error.
func (p Problem) Error() string {
	return fmt.Sprintf("annotation %s: %q %s", p.Annotation, p.Value, p.Message)
}

// ParsePolicy reads the annotations of an AppWrapper.
func ParsePolicy(annotations map[string]string, d Defaults) (Policy, []Problem) {
	r := reader{annotations: annotations, ceiling: d.GraceCeiling}
	policy := r.policy(d)
	return policy, r.problems
}

// Annotations are the names of the annotations that ParsePolicy reads.
func Annotations() []string {
	r := reader{}
	r.policy(StandardDefaults())
	return r.asked
}

// policy overrides the defaults with the annotations.
func (r *reader) policy(d Defaults) Policy {
	asked := d
	asked.SurplusGrace = d.FailureGrace
	asked.KeptGrace = max(d.ForcefulDeletionGrace, d.AdmissionGrace)
	for _, p := range periods {
		if p.Ceiling == GraceCeilingKey {
			*p.In(&asked) = r.grace(p.Annotation, *p.In(&d))
		}
	}
	if r.saysWhenToRetry() {
		asked.SameFailure = 0
	}
	asked.RetryLimit = min(r.count(v1beta2.RetryLimitAnnotation, d.RetryLimit), d.RetryLimitCeiling)
	asked.TerminalExitCodes = r.exitCodes(v1beta2.TerminalExitCodesAnnotation)
	asked.RetryableExitCodes = r.exitCodes(v1beta2.RetryableExitCodesAnnotation)
	asked.LastCheckpoint = r.time(v1beta2.LastCheckpointAnnotation)
	asked.LastWords = r.flag(v1beta2.LastWordsAnnotation, true)
	if !r.flag(v1beta2.AvoidNodesAnnotation, true) {
		asked.Avoid.Nodes = 0
	}
	if ttl, ok := r.duration(v1beta2.SuccessTTLAnnotation); ok && 0 < ttl && ttl < d.SuccessTTL {
		asked.SuccessTTL = ttl
	}
	return asked.Policy
}

// reader parses annotations. It remembers which ones it was asked for and which ones it
// could not parse.
type reader struct {
	annotations map[string]string
	ceiling     time.Duration
	asked       []string
	problems    []Problem
}

// saysWhenToRetry: the author has chosen retries, and has not said that the same failure ends them.
func (r *reader) saysWhenToRetry() bool {
	has := func(annotation string) bool {
		_, ok := r.annotations[annotation]
		return ok
	}
	return !has(v1beta2.SameFailurePeriodDurationAnnotation) && (has(v1beta2.RetryLimitAnnotation) || has(v1beta2.RetryableExitCodesAnnotation))
}

func (r *reader) text(annotation string) (string, bool) {
	r.asked = append(r.asked, annotation)
	text, ok := r.annotations[annotation]
	return text, ok
}

func (r *reader) problem(annotation, value string, err error) {
	r.problems = append(r.problems, Problem{Annotation: annotation, Value: value, Message: err.Error()})
}

func (r *reader) duration(annotation string) (time.Duration, bool) {
	text, ok := r.text(annotation)
	if !ok {
		return 0, false
	}
	d, err := parseDuration(text)
	if err != nil {
		r.problem(annotation, text, err)
		return 0, false
	}
	return d, true
}

func (r *reader) grace(annotation string, otherwise time.Duration) time.Duration {
	d, ok := r.duration(annotation)
	if !ok {
		d = otherwise
	}
	return min(max(d, 0), r.ceiling)
}

func (r *reader) count(annotation string, otherwise int32) int32 {
	text, ok := r.text(annotation)
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		r.problem(annotation, text, errors.New("is not a whole number from 0 to 2147483647"))
		return otherwise
	}
	return int32(n)
}

func (r *reader) flag(annotation string, otherwise bool) bool {
	text, ok := r.text(annotation)
	if !ok {
		return otherwise
	}
	if text != "true" && text != "false" {
		r.problem(annotation, text, errors.New("is neither true nor false"))
		return otherwise
	}
	return text == "true"
}

func (r *reader) time(annotation string) time.Time {
	text, ok := r.text(annotation)
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		r.problem(annotation, text, errors.New("is not a time such as 2026-11-24T17:05:00Z"))
	}
	return t
}

func (r *reader) exitCodes(annotation string) []int32 {
	text, ok := r.text(annotation)
	if !ok {
		return nil
	}
	var codes []int32
	for item := range strings.SplitSeq(text, ",") {
		code, err := strconv.ParseInt(strings.TrimSpace(item), 10, 32)
		if err != nil {
			r.problem(annotation, text, fmt.Errorf("has the item %q, which is not a whole number", item))
			continue
		}
		codes = append(codes, int32(code))
	}
	return codes
}

const day = 24 * time.Hour

// maxDays keeps a number of days within what a Duration can hold.
const maxDays = 100_000

// parseDuration parses a Go duration or, because users expect it, a number of days.
func parseDuration(text string) (time.Duration, error) {
	if digits, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.ParseInt(digits, 10, 32); err == nil && 0 <= days && days <= maxDays {
			return time.Duration(days) * day, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New(`is not a duration such as "90s", "1h30m" or "7d"`)
	}
	return d, nil
}

// terminal tells whether one of these exit codes forbids a retry.
func (p Policy) terminal(exitCodes []int32) bool {
	return slices.ContainsFunc(exitCodes, func(code int32) bool {
		if slices.Contains(p.TerminalExitCodes, code) {
			return true
		}
		return len(p.RetryableExitCodes) > 0 && !slices.Contains(p.RetryableExitCodes, code)
	})
}
