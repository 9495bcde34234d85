// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// Finding is something that gets past the quota, or helps to.
type Finding struct {
	// Rule is the name of the rule that is broken.
	Rule string `json:"rule"`
	// Object is what breaks it, such as "PyTorchJob blue/train".
	Object string `json:"object"`
	// Evidence is a sentence with the numbers.
	Evidence string `json:"evidence"`
	// Remedy is what to do.
	Remedy string `json:"remedy"`
	// Note is set if the rules allow it: an administrator has probably caused it.
	Note bool `json:"note,omitempty"`
}

// sameAs reports whether two moments have the same finding, maybe with other numbers.
func (f Finding) sameAs(other Finding) bool {
	return f.Rule == other.Rule && f.Object == other.Object && f.Note == other.Note
}

// Tolerance is what an administrator does not want to hear of.
type Tolerance struct {
	// Grace is how long pods may take to end after their time is up. Quota may be idle five
	// times as long.
	Grace time.Duration
	// Except are patterns of NAMESPACE/KIND/NAME: the topmost owner of pods that are not judged.
	// Its kind must be one that members cannot create.
	Except []string
}

// rule is a promise of the platform. find returns what breaks it.
type rule struct {
	name, remedy string
	find         func(look) []Finding
}

// rules are all rules, in the order of the report. docs/audit.md describes them.
var rules = []rule{
	{"over-quota", "find out who admitted the work: only Kueue may write the status of Workloads", look.overQuota},
	{"over-reservation", "delete what has too many or too large pods, and enable policies.ownership and policies.growth", look.overReservation},
	{"no-quota", "delete the object, or name it with --except if it is yours; enable policies.ownership and policies.lifecycle", look.noQuota},
	{"orphan", "delete the Workload, or the AppWrapper with all its pods; enable policies.lifecycle", look.orphans},
	{"idle-quota", "see why the work neither ends nor starts, and delete it if its owner has forgotten it", look.idleQuota},
	{"mislabelled", "delete the work; enable policies.labels", look.mislabelled},
	{"misplaced", "delete the work; enable policies.placement, and check the labels of the node", look.misplaced},
	{"node-access", "delete the work; enable policies.podSecurity, and enforce baseline in the namespace", look.nodeAccess},
	{"system-priority", "delete the work; limit the team's PriorityClasses with priorities of the chart teams", look.systemPriority},
	{"open-port", "delete the Service, or the Ray cluster of the Ingress; enable policies.exposure", look.openPorts},
}

// Findings returns what breaks a rule at this moment, by rule and then by object. Some of it may
// be over a moment later: see Sightings.
func (m Moment) Findings(t Tolerance) []Finding {
	l := m.look(t)
	var all []Finding
	for _, r := range rules {
		found := r.find(l)
		for i := range found {
			found[i].Rule, found[i].Remedy = r.name, r.remedy
		}
		slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Object, b.Object) })
		all = append(all, found...)
	}
	return all
}

// Sightings compares the findings of one look with those of the last, because what is found only
// once may be a thing of a moment.
type Sightings struct{ before, reported []Finding }

// Next returns what has now been found twice and was not returned before, and what was returned
// and is not found any more.
func (s *Sightings) Next(now []Finding) (appeared, gone []Finding) {
	appeared = without(now, func(f Finding) bool {
		return !slices.ContainsFunc(s.before, f.sameAs) || slices.ContainsFunc(s.reported, f.sameAs)
	})
	gone = without(s.reported, func(f Finding) bool { return slices.ContainsFunc(now, f.sameAs) })
	s.reported = append(without(s.reported, func(f Finding) bool { return slices.ContainsFunc(gone, f.sameAs) }), appeared...)
	s.before = now
	return appeared, gone
}

func without(all []Finding, drop func(Finding) bool) []Finding {
	return slices.DeleteFunc(slices.Clone(all), drop)
}

// look is a moment, prepared for the rules.
type look struct {
	Moment
	Tolerance
	books
	running []corev1.Pod // that use a node, and are not about to end
}

func (m Moment) look(t Tolerance) look {
	l := look{Moment: m, Tolerance: t, books: m.books()}
	for _, p := range m.Pods {
		if quota.UsesNode(&p) && !l.ends(p) && !l.excepted(p) {
			l.running = append(l.running, p)
		}
	}
	return l
}

// ends reports whether a pod was told to end, and still has time.
func (l look) ends(p corev1.Pod) bool {
	return p.DeletionTimestamp != nil && l.Time.Before(p.DeletionTimestamp.Add(l.Grace))
}

// audited reports whether a namespace is looked at.
func (l look) audited(namespace string) bool { return slices.Contains(l.Namespaces, namespace) }

// excepted reports whether the topmost owner of a pod is an exception.
func (l look) excepted(p corev1.Pod) bool {
	chain := l.ancestry(p)
	root := chain[len(chain)-1].holder
	return slices.ContainsFunc(l.Except, func(pattern string) bool {
		matches, err := path.Match(pattern, root.Namespace+"/"+root.Kind+"/"+root.Name)
		return err == nil && matches // the command has checked the patterns
	})
}
