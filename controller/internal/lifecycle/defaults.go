// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Defaults is the policy of an AppWrapper without annotations, and the ceilings of its
// annotations. SuccessTTL is both a default and a ceiling.
type Defaults struct {
	Policy
	// GraceCeiling is the longest of any period but SuccessTTL.
	GraceCeiling time.Duration
	// RetryLimitCeiling is the most retries that an annotation may ask for.
	RetryLimitCeiling int32
	// BorrowedGrace is the longest forceful deletion grace of work that has borrowed what its owner wants back.
	BorrowedGrace time.Duration
}

// Setting is a row of the table of fault tolerance.
type Setting[T time.Duration | int32] struct {
	// Key below appwrapper.faultTolerance of the configuration file sets the default.
	Key string
	// Annotation sets the value of one AppWrapper. It is empty if no annotation does.
	Annotation string
	// Ceiling is the key of the setting that this one must not exceed, or empty.
	Ceiling string
	// Default holds unless the configuration file says otherwise.
	Default T
	// In is where the setting is.
	In func(*Defaults) *T
}

// The ceilings.
const (
	GraceCeilingKey      = "gracePeriodCeiling"
	RetryLimitCeilingKey = "retryLimitCeiling"
)

// periods and limits are the one table of fault tolerance. The configuration file, its
// validation, the annotations and the documentation take keys and defaults from it.
var periods = []Setting[time.Duration]{
	{"admissionGracePeriod", v1beta2.AdmissionGracePeriodDurationAnnotation, GraceCeilingKey,
		time.Minute, func(d *Defaults) *time.Duration { return &d.AdmissionGrace }},
	{"warmupGracePeriod", v1beta2.WarmupGracePeriodDurationAnnotation, GraceCeilingKey,
		5 * time.Minute, func(d *Defaults) *time.Duration { return &d.WarmupGrace }},
	{"initGracePeriod", v1beta2.InitGracePeriodDurationAnnotation, GraceCeilingKey,
		time.Hour, func(d *Defaults) *time.Duration { return &d.InitGrace }},
	{"failureGracePeriod", v1beta2.FailureGracePeriodDurationAnnotation, GraceCeilingKey,
		time.Minute, func(d *Defaults) *time.Duration { return &d.FailureGrace }},
	{"sameFailurePeriod", v1beta2.SameFailurePeriodDurationAnnotation, GraceCeilingKey,
		2 * time.Minute, func(d *Defaults) *time.Duration { return &d.SameFailure }},
	{"resetPause", v1beta2.RetryPausePeriodDurationAnnotation, GraceCeilingKey,
		90 * time.Second, func(d *Defaults) *time.Duration { return &d.RetryPause }},
	{"deletionGracePeriod", v1beta2.ForcefulDeletionGracePeriodAnnotation, GraceCeilingKey,
		10 * time.Minute, func(d *Defaults) *time.Duration { return &d.ForcefulDeletionGrace }},
	{"borrowedDeletionGracePeriod", "", "",
		10 * time.Minute, func(d *Defaults) *time.Duration { return &d.BorrowedGrace }},
	{"deletionOnFailureGracePeriod", v1beta2.DeletionOnFailureGracePeriodAnnotation, GraceCeilingKey,
		0, func(d *Defaults) *time.Duration { return &d.DeletionOnFailureHold }},
	{"noProgressGracePeriod", v1beta2.NoProgressGracePeriodDurationAnnotation, GraceCeilingKey,
		0, func(d *Defaults) *time.Duration { return &d.NoProgressGrace }},
	{"idleGracePeriod", v1beta2.IdleGracePeriodDurationAnnotation, GraceCeilingKey,
		0, func(d *Defaults) *time.Duration { return &d.IdleGrace }},
	{"successTTLCeiling", v1beta2.SuccessTTLAnnotation, "",
		7 * day, func(d *Defaults) *time.Duration { return &d.SuccessTTL }},
	{GraceCeilingKey, "", "",
		day, func(d *Defaults) *time.Duration { return &d.GraceCeiling }},
}

var limits = []Setting[int32]{
	{"retryLimit", v1beta2.RetryLimitAnnotation, RetryLimitCeilingKey,
		v1beta2.DefaultRetryLimit, func(d *Defaults) *int32 { return &d.RetryLimit }},
	{RetryLimitCeilingKey, "", "",
		100, func(d *Defaults) *int32 { return &d.RetryLimitCeiling }},
}

// standardAvoidance is the default of appwrapper.nodeHealth.avoid.
var standardAvoidance = Avoidance{Nodes: 8, Period: time.Hour, SuspectAfter: 3}

// standardMigrationLimit is the default of appwrapper.autopilot.migrationLimit.
const standardMigrationLimit = 10

// Periods are the rows of the table that are durations.
func Periods() []Setting[time.Duration] { return periods }

// Limits are the rows of the table that are counts.
func Limits() []Setting[int32] { return limits }

// StandardDefaults are those of a controller that nobody has configured.
func StandardDefaults() Defaults {
	d := Defaults{Policy: Policy{MigrationLimit: standardMigrationLimit, Avoid: standardAvoidance, ResetSurplus: true}}
	for _, p := range periods {
		*p.In(&d) = p.Default
	}
	for _, l := range limits {
		*l.In(&d) = l.Default
	}
	return d
}
