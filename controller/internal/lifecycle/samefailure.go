// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// A program that makes a mistake ends soon, and always in the same way. Nodes, networks and file systems fail programs,
// too, and then another attempt helps. So the program is only to blame if nothing else can be: what is not certain is
// retried.

// bySignal is the first exit code of a program that a signal has ended: SIGTERM, SIGKILL, the SIGABRT of a collective
// that waits for another rank.
const bySignal = 128

// outage is how long a file system or a network may be away without failing two attempts: as long as attempts are
// apart by default.
const outage = 90 * time.Second

// sameFailure is how this attempt failed like the one before because of its program; empty if that is not certain.
func (v *view) sameFailure(reason string) string {
	ofProgram := reason == v1beta2.ReasonFailedComponent || reason == v1beta2.ReasonFoundFailedPods
	if !ofProgram {
		return ""
	}
	before, now := v.failureBefore(), v1beta2.AppWrapperAttempt{}
	v.tellFirstFailure(&now)
	if before == nil || !v.byItsProgram(*before) || !v.byItsProgram(now) || !alike(*before, now) {
		return ""
	}
	return v.describeSame(*before, now)
}

// failureBefore is the attempt before this one, if pods ended it, and no outage can have failed both.
func (v *view) failureBefore() *v1beta2.AppWrapperAttempt {
	if len(v.Status.LastAttempts) == 0 {
		return nil
	}
	before := &v.Status.LastAttempts[len(v.Status.LastAttempts)-1]
	failed := before.Cause == string(CauseComponentFailed) || before.Cause == string(CausePodsFailed)
	if apart := v.transitionTime(v1beta2.ResourcesDeployed).Sub(before.Ended.Time); !failed || apart < outage {
		return nil
	}
	return before
}

// alike: the same rank ended with the same code.
func alike(a, b v1beta2.AppWrapperAttempt) bool {
	return a.Rank == b.Rank && *a.PodSet == *b.PodSet && a.Container == b.Container && a.ExitCode == b.ExitCode
}

// byItsProgram: the attempt failed first where it is known who that was, soon after its start, with a code of its own,
// on a node of which nobody knows anything bad.
func (v *view) byItsProgram(a v1beta2.AppWrapperAttempt) bool {
	known := a.FailedByItself && a.Rank != "" && a.PodSet != nil && a.Node != "" && a.RanSeconds != nil
	return known && a.Reason == "" && 0 < a.ExitCode && a.ExitCode < bySignal &&
		time.Duration(*a.RanSeconds)*time.Second < v.Policy.SameFailure && !v.isDoubted(a.Node)
}

// isDoubted: the node has failed this work, or other work.
func (v *view) isDoubted(node string) bool {
	for _, n := range v.status.AvoidedNodes {
		if n.Name == node {
			return true
		}
	}
	for _, s := range v.Suspects {
		if s.Node == node {
			return true
		}
	}
	return false
}

// failedByItself: nothing else is known that may have failed the container.
func (v *view) failedByItself(f *Failure, of Pod) bool {
	return v.allHadStarted() && v.certainlyFirst(f, of) && !v.cameFromOutside(f)
}

// allHadStarted: each pod of this attempt has run. Who waits for a pod that does not start gives up some time, and
// that is nobody's mistake. Owners remove pods that wait when others fail, so it does not help that none is there.
func (v *view) allHadStarted() bool {
	if meta.IsStatusConditionTrue(v.Status.Conditions, string(v1beta2.PodsReady)) {
		return true
	}
	expected, started := 0, map[string]bool{}
	for _, c := range v.status.ComponentStatus {
		for _, s := range c.PodSets {
			expected += int(s.Count())
		}
	}
	for _, p := range v.Pods {
		if p.Phase != corev1.PodPending && !p.Foreign {
			started[fmt.Sprintf("%d/%d/%s", p.Component, p.PodSet, p.Rank)] = true
		}
	}
	return len(started) >= expected
}

// certainlyFirst: all that failed besides did so later, in seconds, or is a pod in whose place this one came or that
// came in its place, and failed in the same way. Of what a pod does not tell, nobody knows when it was.
func (v *view) certainlyFirst(f *Failure, of Pod) bool {
	for _, p := range v.Pods {
		if p.Name == of.Name || v.belongsToFinished(p) {
			continue
		}
		if p.sameRank(of) && !v.failedLike(f, p) {
			return false
		}
		if p.Phase == corev1.PodUnknown || p.Phase == corev1.PodFailed && len(p.Failures) == 0 {
			return false
		}
	}
	return !v.anyBefore(f, of)
}

// anyBefore: another container failed no later, or nobody knows when.
func (v *view) anyBefore(f *Failure, of Pod) bool {
	for _, p := range v.Pods {
		for i := range p.Failures {
			g := &p.Failures[i]
			itself := p.Name == of.Name && g.Container == f.Container
			if !itself && !v.belongsToFinished(p) && !g.At.After(f.At) {
				return true
			}
		}
	}
	return false
}

func (p Pod) sameRank(of Pod) bool {
	return p.Component == of.Component && p.PodSet == of.PodSet && p.Rank == of.Rank
}

// failedLike: the pod, which its owner made for the same rank, has failed like f, as soon after its start.
func (v *view) failedLike(f *Failure, p Pod) bool {
	soon := func(g Failure) bool {
		return g.Container == f.Container && g.ExitCode == f.ExitCode && !g.Began.IsZero() && g.At.Sub(g.Began) < v.Policy.SameFailure
	}
	return p.Phase == corev1.PodFailed && !p.Terminating && len(p.Failures) == 1 && soon(p.Failures[0])
}

// cameFromOutside: something else happened to pods of this attempt that may have failed the others. A node is bad, a
// pod was evicted, or interrupted or gone before anything failed. Nobody knows whether one had gone before this process
// watched.
func (v *view) cameFromOutside(f *Failure) bool {
	before := func(at time.Time) bool { return !at.IsZero() && !at.After(f.At) }
	if len(v.evictedFrom()) > 0 || before(v.LastGone) || before(v.Interrupted) || v.transitionTime(v1beta2.ResourcesDeployed).Before(v.WatchedSince) {
		return true
	}
	return slices.ContainsFunc(v.Pods, func(p Pod) bool { return p.MigrateFrom != "" || len(p.MigrateBecause) > 0 || before(p.Interrupted) })
}

func (v *view) describeSame(before, now v1beta2.AppWrapperAttempt) string {
	who := "rank " + now.Rank
	if len(v.podSets().sets) > 1 {
		who += fmt.Sprintf(" of pod set %d", *now.PodSet)
	}
	where := "both times on node " + now.Node
	if before.Node != now.Node {
		where = fmt.Sprintf("on nodes %s and %s", before.Node, now.Node)
	}
	return fmt.Sprintf("%s ended twice with exit code %d within %d s of its start, %s; it is not tried again: mend the program, "+
		"then use mlbatch retry; an explicit retryLimit changes this", who, now.ExitCode, 1+max(*before.RanSeconds, *now.RanSeconds), where)
}
