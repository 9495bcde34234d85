// SPDX-License-Identifier: Apache-2.0

package quotawatch

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// tally accumulates the findings of all moments.
type tally struct {
	out     io.Writer
	moments int
	pods    map[types.UID]bool
	holders map[audit.Holder]bool
	most    map[corev1.ResourceName]load
	// found has every finding once, in order of discovery.
	found    []*sighting
	expected map[types.NamespacedName][]audit.Excess
}

// sighting is a finding and how often it was found.
type sighting struct {
	audit.Excess
	first   string // the revisions of two watches come in any order
	moments int
}

// load is the use of a resource in all queues at one moment, and the quota held then.
type load struct{ used, held resource.Quantity }

func newTally(out io.Writer) tally {
	return tally{
		out: out, pods: map[types.UID]bool{}, holders: map[audit.Holder]bool{},
		most: map[corev1.ResourceName]load{}, expected: map[types.NamespacedName][]audit.Excess{},
	}
}

// add counts a moment, in which the excesses of some holders are excused.
func (t *tally) add(m audit.Moment, excused map[audit.Holder]bool) {
	t.moments++
	for i := range m.Pods {
		if p := &m.Pods[i]; quota.UsesNode(p) {
			t.pods[p.UID] = true
		}
	}
	t.weigh(m)
	for _, e := range m.Excesses() {
		if e.Excuse == "" && excused[e.Holder] {
			e.Excuse = LeftBehind
		}
		planted := e.Holder.NamespacedName
		if whole := (types.NamespacedName{Namespace: planted.Namespace}); t.isExpected(whole) {
			planted = whole
		}
		if !t.isExpected(planted) {
			t.see(e, m)
			continue
		}
		t.expected[planted] = append(t.expected[planted], e)
	}
}

func (t *tally) isExpected(name types.NamespacedName) bool {
	_, expected := t.expected[name]
	return expected
}

func (t *tally) see(e audit.Excess, m audit.Moment) {
	i := slices.IndexFunc(t.found, func(s *sighting) bool { return s.Excess == e })
	if i < 0 {
		i = len(t.found)
		t.found = append(t.found, &sighting{Excess: e, first: m.Revision})
		fmt.Fprintf(t.out, "-- quota, revision %s: %s%s\n", m.Revision, e.Amounts, excused(e.Excuse))
		if e.Excuse == "" {
			fmt.Fprint(t.out, scene(m, e.Holder))
		}
	}
	t.found[i].moments++
}

// weigh updates the maximum use, and who has used anything.
func (t *tally) weigh(m audit.Moment) {
	now := map[corev1.ResourceName]load{}
	for _, u := range m.Usages() {
		t.holders[u.Holder] = true
		l := now[u.Resource]
		l.used.Add(u.Used)
		l.held.Add(u.Held)
		now[u.Resource] = l
	}
	for name, l := range now {
		if l.used.Cmp(t.most[name].used) > 0 {
			t.most[name] = l
		}
	}
}

// close prints a summary, and returns an error if there was a violation.
func (t *tally) close() error {
	var peaks []string
	for _, name := range slices.SortedFunc(maps.Keys(t.most), cmp.Compare[corev1.ResourceName]) {
		l := t.most[name]
		peaks = append(peaks, fmt.Sprintf("%s %s of %s", name, l.used.String(), l.held.String()))
	}
	by := map[audit.Excuse][]string{}
	for _, s := range t.found {
		by[s.Excuse] = append(by[s.Excuse], fmt.Sprintf("%s (at %d moments, first seen at revision %s)", s.Amounts, s.moments, s.first))
	}
	fmt.Fprintf(t.out, "-- quota: %d moments, %d pods of %d AppWrappers; at most %s; violations: %d, excused: %d (%s), %d (%s), %d (%s); planted: %d\n",
		t.moments, len(t.pods), len(t.holders), strings.Join(peaks, ", "),
		len(by[""]), len(by[audit.Replaced]), audit.Replaced, len(by[audit.Deactivated]), audit.Deactivated, len(by[LeftBehind]), LeftBehind, len(t.expected))
	if violations := by[""]; len(violations) > 0 {
		return fmt.Errorf("pods used more than Kueue had admitted, see what was printed at that time: %s, and %d more", violations[0], len(violations)-1)
	}
	return nil
}

func excused(e audit.Excuse) string {
	if e == "" {
		return ""
	}
	return ", which is excused: " + string(e)
}
