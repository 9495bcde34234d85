// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

const (
	// attemptsKept is how many attempts the status has at most, and attemptsSize how many bytes of JSON they are.
	attemptsKept = 3
	attemptsSize = 12 << 10
)

// recordAttempt adds an attempt to the status that ends without success, in the write that ends it.
func (v *view) recordAttempt(d Decision) Decision {
	to := d.Status.Phase
	under := v.Status.Phase == v1beta2.AppWrapperResuming || v.Status.Phase == v1beta2.AppWrapperRunning
	ends := to == v1beta2.AppWrapperResetting || to == v1beta2.AppWrapperFailed || to == v1beta2.AppWrapperSuspending
	if !under || !ends {
		return d
	}
	began := meta.FindStatusCondition(v.Status.Conditions, string(v1beta2.ResourcesDeployed))
	if began == nil {
		return d
	}
	attempt := v1beta2.AppWrapperAttempt{Began: began.LastTransitionTime, Ended: metav1.Time{Time: v.now.Truncate(time.Second)}, Cause: string(d.Because)}
	if to == v1beta2.AppWrapperSuspending {
		attempt.Reason = whyRequeued(d.Status.Conditions)
	} else {
		v.tellFirstFailure(&attempt)
	}
	d.Status.LastAttempts = BoundAttempts(append(slices.Clone(d.Status.LastAttempts), attempt))
	return d
}

func whyRequeued(conditions []metav1.Condition) string {
	for _, kind := range []v1beta2.AppWrapperCondition{v1beta2.Deactivated, v1beta2.Requeued} {
		if c := meta.FindStatusCondition(conditions, string(kind)); c != nil && c.Status == metav1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

// tellFirstFailure adds which pod failed first, and how.
func (v *view) tellFirstFailure(a *v1beta2.AppWrapperAttempt) {
	f, p := v.firstFailure()
	if f == nil {
		nodes := v.nodesToMigrateFrom()
		maps.Copy(nodes, v.nodesToBlame())
		if names := slices.Sorted(maps.Keys(nodes)); len(names) > 0 && a.Cause == string(CauseNodeUnhealthy) {
			a.Node = names[0]
		}
		return
	}
	a.Pod, a.Rank, a.Node, a.PodSet = p.Name, p.Rank, p.Node, v.podSetNumber(p)
	a.Reason, a.Container, a.ExitCode = string(f.Cause), f.Container, f.ExitCode
	if f.Began.Unix() > 0 && !f.At.Before(f.Began) { // what a runtime cannot start has begun in 1970
		a.RanSeconds = new(int64(f.At.Sub(f.Began) / time.Second))
	}
	a.FailedByItself = v.failedByItself(f, p)
	if v.Policy.LastWords {
		a.LastWords = readable(f.LastWords)
	}
}

// podSetNumber counts pod sets through all components, as Kueue does; nil if the pod does not say its own.
func (v *view) podSetNumber(p Pod) *int32 {
	if p.PodSet == UnknownPodSet || p.Component < 0 || p.Component >= len(v.status.ComponentStatus) {
		return nil
	}
	n := p.PodSet
	for _, c := range v.status.ComponentStatus[:p.Component] {
		n += len(c.PodSets)
	}
	return new(int32(n))
}

// readable is text that is safe to store and to show: no broken characters, and no control characters, of which
// terminals make something.
func readable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
	return strings.TrimSpace(text)
}

// BoundAttempts leaves the latest attempts, and of what programs said as much of the end as there is room for. The
// latest have it first.
func BoundAttempts(all []v1beta2.AppWrapperAttempt) []v1beta2.AppWrapperAttempt {
	all = slices.Clone(all[max(0, len(all)-attemptsKept):])
	for i := range all {
		for size := sizeOf(all); size > attemptsSize && all[i].LastWords != ""; size = sizeOf(all) {
			all[i].LastWords = withoutBeginning(all[i].LastWords, size-attemptsSize)
		}
	}
	return all
}

func sizeOf(all []v1beta2.AppWrapperAttempt) int {
	text, err := json.Marshal(all)
	if err != nil {
		return 0
	}
	return len(text)
}

// withoutBeginning leaves out the first n bytes, at least, of a text and the rest of their line, unless it is the last.
func withoutBeginning(text string, n int) string {
	if n >= len(text) {
		return ""
	}
	for n < len(text) && !utf8.RuneStart(text[n]) {
		n++
	}
	rest := text[n:]
	if _, lines, more := strings.Cut(rest, "\n"); more {
		return lines
	}
	return rest
}
