// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"slices"
	"strings"
)

// Outcome is how a run ended.
type Outcome string

// The outcomes. Work that never ends by itself is Ready as soon as all its pods are, and else NotReady.
const (
	Succeeded Outcome = "Succeeded"
	Failed    Outcome = "Failed"
	Ready     Outcome = "Ready"
	NotReady  Outcome = "NotReady"
	// Unready work runs, in all its pods, and some of them do not become ready.
	Unready Outcome = "Unready"
	// Refused is not created at all.
	Refused Outcome = "Refused"
)

// Summary is what is compared.
type Summary struct {
	Outcome Outcome
	// Final is what the object said last.
	Final []string
	// Pods and Starts count the pods and container starts of each set; Most is how many pods it had at a time.
	Pods, Starts, Most map[string]int
	// After says of two slots that the second one was created only after the first one "was ready" or "had ended".
	After map[[2]string]string
	// Shapes are the fields of the first pod of each slot.
	Shapes map[string]map[string]string
}

// endings are conditions with which objects of the known kinds end.
var endings = map[string]Outcome{
	"Complete": Succeeded, "Completed": Succeeded, "Succeeded": Succeeded, "Failed": Failed,
	"jobDeploymentStatus=Complete": Succeeded, "jobDeploymentStatus=Failed": Failed, "jobDeploymentStatus=ValidationFailed": Failed,
}

// Ended returns how the object ended by itself, or "".
func (t *Transcript) Ended() Outcome {
	for _, f := range t.final {
		kind, _, _ := strings.Cut(f, "/")
		if outcome, known := endings[kind]; known {
			return outcome
		}
	}
	return ""
}

// AllReady reports whether there are pods, and all of them are ready or have succeeded.
func (t *Transcript) AllReady() bool { return t.all(func(l *life) bool { return l.isReady }) }

// all reports whether there are pods, and something holds of each that has not ended. One that has failed has to be
// replaced.
func (t *Transcript) all(holds func(*life) bool) bool {
	found := false
	for _, l := range t.order {
		if l.going != 0 {
			continue
		}
		if found = true; l.ended == 0 && !holds(l) || l.failed && !t.replaced(l) {
			return false
		}
	}
	return found
}

// replaced reports whether the slot of a pod has got another one.
func (t *Transcript) replaced(of *life) bool {
	return slices.ContainsFunc(t.order, func(l *life) bool { return l.slot == of.slot && l.created > of.created })
}

// Bare is the outcome of an object without AppWrapper.
func (t *Transcript) Bare() Outcome {
	switch ended := t.Ended(); {
	case ended != "":
		return ended
	case t.Restarts() >= Crashes:
		return NotReady
	case t.onlyPod() != "":
		return t.onlyPod()
	case t.AllReady():
		return Ready
	case t.allRun() && !t.short:
		return Unready
	}
	return NotReady
}

// onlyPod is how a Pod ended that nothing made, or "".
func (t *Transcript) onlyPod() Outcome {
	if len(t.order) != 1 || !t.order[0].alone || t.order[0].ended == 0 {
		return ""
	}
	if t.order[0].failed {
		return Failed
	}
	return Succeeded
}

// allRun reports whether there are pods, and the containers of all of them run or have succeeded.
func (t *Transcript) allRun() bool { return t.all(func(l *life) bool { return l.runs }) }

// Crashes is how often containers are started again before that is believed to go on.
const Crashes = 4

// Wrapped is the outcome that the AppWrapper states.
func (t *Transcript) Wrapped() Outcome {
	switch phase, _, _ := strings.Cut(t.wrapper, ","); {
	case phase == "Succeeded":
		return Succeeded
	case phase == "Failed":
		return Failed
	case t.wrapper == "Running, PodsReady":
		return Ready
	}
	return NotReady
}

// HasPods reports whether there has been a pod.
func (t *Transcript) HasPods() bool { return len(t.order) > 0 }

// Rests reports whether the AppWrapper runs or has ended, and is not on the way to another phase.
func (t *Transcript) Rests() bool {
	phase, _, _ := strings.Cut(t.wrapper, ",")
	return phase == "Running" || phase == "Succeeded" || phase == "Failed"
}

// Summary is what is compared of a transcript, with its outcome.
func (t *Transcript) Summary(outcome Outcome) Summary {
	s := Summary{
		Outcome: outcome, Final: slices.Clone(t.final), Pods: map[string]int{}, Starts: map[string]int{}, Most: map[string]int{},
		After: map[[2]string]string{}, Shapes: map[string]map[string]string{},
	}
	for _, l := range t.order {
		s.Pods[l.slot.Set]++
		s.Starts[l.slot.Set] += l.starts
		s.Most[l.slot.Set] = max(s.Most[l.slot.Set], t.atATime(l))
		if s.Shapes[l.slot.String()] == nil {
			s.Shapes[l.slot.String()] = l.shape
		}
	}
	for a, first := range t.slots() {
		for b, second := range t.slots() {
			switch {
			case a == b:
			case first.ended > 0 && second.created > first.ended:
				s.After[[2]string{a, b}] = "had ended"
			case first.ready > 0 && second.created > first.ready:
				s.After[[2]string{a, b}] = "was ready"
			}
		}
	}
	return s
}

// atATime counts the pods of a set when one of them was created.
func (t *Transcript) atATime(of *life) (n int) {
	for _, l := range t.order {
		if l.slot.Set == of.slot.Set && l.created <= of.created && !before(l.ended, of.created) && !before(l.going, of.created) {
			n++
		}
	}
	return n
}

func before(turn, other int) bool { return turn != 0 && turn < other }

// slots says of each slot when one of its pods was first created, ready, and ended.
func (t *Transcript) slots() map[string]life {
	all := map[string]life{}
	for _, l := range t.order {
		one, known := all[l.slot.String()]
		if !known {
			one = *l
		}
		one.ready, one.ended = earlier(one.ready, l.ready), earlier(one.ended, l.ended)
		all[l.slot.String()] = one
	}
	return all
}

func earlier(a, b int) int {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
