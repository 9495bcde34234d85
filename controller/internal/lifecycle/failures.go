// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"time"
)

// Failure is how a container of a pod failed, or the pod as a whole.
type Failure struct {
	// Cause is empty if only the exit code is known.
	Cause FailureCause
	// Container is empty if the pod failed as a whole.
	Container string
	// ExitCode of the container.
	ExitCode int32
	// Why is nodehealth.EvictionByKubelet, if the cause is Evicted.
	Why string
	// At is when; zero if nobody knows.
	At time.Time
	// Began is when the container began; zero if that is not known.
	Began time.Time
	// LastWords are what its program wrote last. Caches drop them.
	LastWords string
}

// FailureCause is what ended a container or a pod from outside. The words are those of Kubernetes.
type FailureCause string

// The causes. There are no others.
const (
	// OOMKilled: the container used more memory than its limit, or than the node had.
	OOMKilled FailureCause = "OOMKilled"
	// Evicted: the kubelet ended the pod, because the node was short of something, or the pod used too much.
	Evicted FailureCause = "Evicted"
)

// tellingWhatFailed adds to a message how pods failed: the first failure with a cause or, if there is none, the first
// with an exit code. Later ones often are its consequences.
func (v *view) tellingWhatFailed(message string) string {
	first, of := v.firstFailure()
	if first == nil {
		return message
	}
	return message + "; pod " + of.Name + first.String()
}

// firstFailure is nil if no pod that is there tells of one.
func (v *view) firstFailure() (first *Failure, of Pod) {
	for _, p := range v.Pods {
		if v.belongsToFinished(p) {
			continue
		}
		for i := range p.Failures {
			f := &p.Failures[i]
			wasTold := p.Terminating && f.Cause == "" // to end
			if c := f.compare(first); !wasTold && (c < 0 || c == 0 && p.Name < of.Name) {
				first, of = f, p
			}
		}
	}
	return first, of
}

// compare is below 0 if f tells more than the other one, or as much and was earlier.
func (f *Failure) compare(other *Failure) int {
	if other == nil {
		return -1
	}
	return cmp.Or(precedes(f.Cause != "", other.Cause != ""), precedes(!f.At.IsZero(), !other.At.IsZero()), f.At.Compare(other.At))
}

// precedes is below 0 if only the first is true.
func precedes(first, second bool) int {
	switch {
	case first == second:
		return 0
	case first:
		return -1
	}
	return 1
}

// String goes on after the name of the pod.
func (f *Failure) String() string {
	switch f.Cause {
	case OOMKilled:
		return fmt.Sprintf(": container %s was killed for lack of memory (%s, exit code %d)", f.Container, f.Cause, f.ExitCode)
	case Evicted:
		said := fmt.Sprintf(" was evicted by its kubelet (%s)", f.Cause)
		if f.Why != "" {
			said += ": " + f.Why
		}
		return said
	}
	return fmt.Sprintf(": container %s ended with exit code %d", f.Container, f.ExitCode)
}
