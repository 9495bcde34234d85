// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// FaultTolerance holds the grace periods and limits that an AppWrapper's annotations may
// change, and the ceilings of those annotations. Defaults are those of the lifecycle's table.
type FaultTolerance struct {
	AdmissionGracePeriod         Duration `json:"admissionGracePeriod"`
	WarmupGracePeriod            Duration `json:"warmupGracePeriod"`
	InitGracePeriod              Duration `json:"initGracePeriod"`
	FailureGracePeriod           Duration `json:"failureGracePeriod"`
	SameFailurePeriod            Duration `json:"sameFailurePeriod"`
	ResetPause                   Duration `json:"resetPause"`
	RetryLimit                   int32    `json:"retryLimit"`
	DeletionGracePeriod          Duration `json:"deletionGracePeriod"`
	BorrowedDeletionGracePeriod  Duration `json:"borrowedDeletionGracePeriod"`
	NoProgressGracePeriod        Duration `json:"noProgressGracePeriod"`
	IdleGracePeriod              Duration `json:"idleGracePeriod"`
	DeletionOnFailureGracePeriod Duration `json:"deletionOnFailureGracePeriod"`
	GracePeriodCeiling           Duration `json:"gracePeriodCeiling"`
	RetryLimitCeiling            int32    `json:"retryLimitCeiling"`
	SuccessTTLCeiling            Duration `json:"successTTLCeiling"`
}

// periods are the durations by their keys in the lifecycle's table.
func (f *FaultTolerance) periods() map[string]*Duration {
	return map[string]*Duration{
		"admissionGracePeriod":         &f.AdmissionGracePeriod,
		"warmupGracePeriod":            &f.WarmupGracePeriod,
		"initGracePeriod":              &f.InitGracePeriod,
		"failureGracePeriod":           &f.FailureGracePeriod,
		"sameFailurePeriod":            &f.SameFailurePeriod,
		"resetPause":                   &f.ResetPause,
		"deletionGracePeriod":          &f.DeletionGracePeriod,
		"borrowedDeletionGracePeriod":  &f.BorrowedDeletionGracePeriod,
		"noProgressGracePeriod":        &f.NoProgressGracePeriod,
		"idleGracePeriod":              &f.IdleGracePeriod,
		"deletionOnFailureGracePeriod": &f.DeletionOnFailureGracePeriod,
		lifecycle.GraceCeilingKey:      &f.GracePeriodCeiling,
		"successTTLCeiling":            &f.SuccessTTLCeiling,
	}
}

// limits are the counts by their keys in the lifecycle's table.
func (f *FaultTolerance) limits() map[string]*int32 {
	return map[string]*int32{
		"retryLimit":                   &f.RetryLimit,
		lifecycle.RetryLimitCeilingKey: &f.RetryLimitCeiling,
	}
}

func defaultFaultTolerance() FaultTolerance {
	var f FaultTolerance
	for _, p := range lifecycle.Periods() {
		f.periods()[p.Key].Duration = p.Default
	}
	for _, l := range lifecycle.Limits() {
		*f.limits()[l.Key] = l.Default
	}
	return f
}

// Defaults are those of AppWrappers under this configuration.
func (a AppWrapper) Defaults() lifecycle.Defaults {
	d := lifecycle.StandardDefaults()
	for _, p := range lifecycle.Periods() {
		*p.In(&d) = a.FaultTolerance.periods()[p.Key].Duration
	}
	for _, l := range lifecycle.Limits() {
		*l.In(&d) = *a.FaultTolerance.limits()[l.Key]
	}
	d.Avoid = a.NodeHealth.Avoid.bounds()
	d.MigrationLimit, d.ResetSurplus = a.Autopilot.MigrationLimit, a.ResetSurplusPods
	return d
}

func (f *FaultTolerance) validate(path *field.Path) field.ErrorList {
	problems := f.validatePeriods(path)
	if f.GracePeriodCeiling.Duration < 0 {
		problems = append(problems, field.Invalid(path.Child(lifecycle.GraceCeilingKey), f.GracePeriodCeiling.String(), "must not be negative"))
	}
	if f.AdmissionGracePeriod.Duration > f.WarmupGracePeriod.Duration {
		problems = append(problems, field.Invalid(path.Child("admissionGracePeriod"), f.AdmissionGracePeriod.String(),
			fmt.Sprintf("must not exceed warmupGracePeriod, which is %s", f.WarmupGracePeriod)))
	}
	if f.SuccessTTLCeiling.Duration <= 0 {
		problems = append(problems, field.Invalid(path.Child("successTTLCeiling"), f.SuccessTTLCeiling.String(), "must be greater than 0"))
	}
	return append(problems, f.validateRetries(path)...)
}

func (f *FaultTolerance) validateRetries(path *field.Path) field.ErrorList {
	if f.RetryLimitCeiling < 0 {
		return field.ErrorList{field.Invalid(path.Child(lifecycle.RetryLimitCeilingKey), f.RetryLimitCeiling, "must not be negative")}
	}
	if f.RetryLimit < 0 {
		return field.ErrorList{field.Invalid(path.Child("retryLimit"), f.RetryLimit, "must not be negative")}
	}
	if f.RetryLimit > f.RetryLimitCeiling {
		return field.ErrorList{field.Invalid(path.Child("retryLimit"), f.RetryLimit,
			fmt.Sprintf("must not exceed %s, which is %d", lifecycle.RetryLimitCeilingKey, f.RetryLimitCeiling))}
	}
	return nil
}

// validatePeriods is about those that have a ceiling, which is the same for all of them.
func (f *FaultTolerance) validatePeriods(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for _, p := range lifecycle.Periods() {
		if p.Ceiling == "" {
			continue
		}
		value, ceiling := f.periods()[p.Key], f.periods()[p.Ceiling]
		if value.Duration < 0 {
			problems = append(problems, field.Invalid(path.Child(p.Key), value.String(), "must not be negative"))
		}
		if value.Duration > ceiling.Duration {
			problems = append(problems, field.Invalid(path.Child(p.Key), value.String(),
				fmt.Sprintf("must not exceed %s, which is %s", p.Ceiling, ceiling)))
		}
	}
	return problems
}
