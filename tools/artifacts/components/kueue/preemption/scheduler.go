// SPDX-License-Identifier: Apache-2.0

// Package preemption answers the question: with our queues, whom does Kueue preempt, and how
// often? It runs the scheduler, the queues and the cache of the pinned Kueue, a cycle at a time
// and with a clock of its own. What Kueue's controllers and the jobs do in between is written
// out in simulation.go.
package preemption

import (
	"context"
	_ "unsafe" // for go:linkname

	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/util/routine"
	"sigs.k8s.io/kueue/pkg/util/wait"
)

// schedule runs one cycle. Kueue exports only the endless loop of them.
//
//go:linkname schedule sigs.k8s.io/kueue/pkg/scheduler.(*Scheduler).schedule
func schedule(s *scheduler.Scheduler, ctx context.Context) wait.SpeedSignal

//go:linkname setAdmissionRoutineWrapper sigs.k8s.io/kueue/pkg/scheduler.(*Scheduler).setAdmissionRoutineWrapper
func setAdmissionRoutineWrapper(s *scheduler.Scheduler, wrapper routine.Wrapper)

// atOnce runs what the scheduler would run in a goroutine.
type atOnce struct{}

func (atOnce) Run(f func()) { f() }
