// SPDX-License-Identifier: Apache-2.0

// Package referee decides whether what a cluster stored at some moments is a success of whoever attacks it. Its
// witnesses are mlbatch audit, which follows owners, and a recount, which only reads names. It calls no API, and knows
// the time only from the moments.
package referee

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/counted/recount"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// The rules about what is left of an episode, and LongGrace about pods that nobody can take their quota from.
const (
	Stays         = "stays"
	HeldByNothing = "held by nothing"
	LongGrace     = "long grace"
)

// Finding is something that got past the quota, or helps to.
type Finding struct {
	Rule, Object, Evidence string
}

func (f Finding) String() string { return f.Rule + ": " + f.Object + ": " + f.Evidence }

// Episode is the name of the episode that a finding is about, or "".
func (f Finding) Episode() string { return EpisodeOf(f.Object) }

var namespaces = regexp.MustCompile(`([a-z0-9-]+)/`)

// Namespace is that of the object, or "".
func (f Finding) Namespace() string {
	if found := namespaces.FindStringSubmatch(f.Object); found != nil {
		return found[1]
	}
	return ""
}

// key distinguishes findings. The numbers in the evidence may change.
func (f Finding) key() string { return f.Rule + " " + f.Object }

var episodes = regexp.MustCompile(`(?:^|[/ -])(e[0-9]+)-[a-d](?:-|$)`)

// EpisodeOf reads the episode in the name of an object. Operators put it into the names of what they make.
func EpisodeOf(name string) string {
	if found := episodes.FindStringSubmatch(name); found != nil {
		return found[1]
	}
	return ""
}

// Referee remembers since when something is wrong.
type Referee struct {
	// Grace is how long pods may take to end after their time is up.
	Grace time.Duration
	// Lasting is how long something has to be wrong, at every look, to be a finding: controllers work one after the other.
	Lasting time.Duration
	// Stays is how long quota may be held by nothing, after the end of an episode.
	Stays time.Duration

	// From is when judging begins, or begins again. What is wrong before that counts for nothing.
	From time.Time
	// Known is what is excused of this attacker, beside what is excused of everybody.
	Known []Known

	since map[string]lasting
	// Excused counts what the list of known exceptions explains, by their reasons.
	Excused map[string]int
}

// lasting is since when, and at how many looks, something is wrong.
type lasting struct {
	since time.Time
	looks int
}

// fewestLooks at which something has to be wrong. On a slow machine, two looks may be far apart, and find two different
// moments of the same work.
const fewestLooks = 3

// Judge returns what has been wrong for long enough. ended has when all objects of an episode were deleted.
func (r *Referee) Judge(m audit.Moment, ended map[string]time.Time) []Finding {
	if m.Time.Before(r.From) {
		r.since = nil
		return nil
	}
	now := map[string]lasting{}
	var found []Finding
	for _, f := range slices.Concat(r.audited(m), r.recounted(m), r.left(m, ended), longGraces(m)) {
		wrong, known := r.since[f.key()]
		if !known {
			wrong.since = m.Time
		}
		wrong.looks++
		now[f.key()] = wrong
		if m.Time.Sub(wrong.since) >= r.Lasting && wrong.looks >= fewestLooks {
			found = append(found, f)
		}
	}
	r.since = now
	return r.unexcused(found)
}

func (r *Referee) audited(m audit.Moment) (all []Finding) {
	for _, f := range m.Findings(audit.Tolerance{Grace: r.Grace}) {
		if !f.Note {
			all = append(all, Finding{f.Rule, f.Object, f.Evidence})
		}
	}
	return all
}

// work is what belongs to an episode of a namespace.
type work struct {
	pods      []corev1.Pod
	workloads []kueue.Workload
}

// byEpisode sorts pods and Workloads by NAMESPACE/EPISODE.
func byEpisode(m audit.Moment) map[string]work {
	all := map[string]work{}
	add := func(namespace, name string, change func(*work)) {
		if episode := EpisodeOf(name); episode != "" && slices.Contains(m.Namespaces, namespace) {
			w := all[namespace+"/"+episode+"-a"]
			change(&w)
			all[namespace+"/"+episode+"-a"] = w
		}
	}
	for _, p := range m.Pods {
		add(p.Namespace, p.Name, func(w *work) { w.pods = append(w.pods, p) })
	}
	for _, w := range m.Workloads {
		add(w.Namespace, w.Name, func(of *work) { of.workloads = append(of.workloads, w) })
	}
	return all
}

// recounted: held ≤ reserved for each episode, and reserved ≤ quota for each cohort, without a look at owners.
func (r *Referee) recounted(m audit.Moment) (all []Finding) {
	for name, w := range byEpisode(m) {
		alive, reserved := recount.Alive(w.pods), recount.Reserved(w.workloads)
		if alive.Devices > reserved.Devices {
			all = append(all, Finding{"held", "episode " + name, fmt.Sprintf("%d pods hold %d devices, and %d are reserved", alive.Pods, alive.Devices, reserved.Devices)})
		}
	}
	slices.SortFunc(all, func(a, b Finding) int { return cmp.Compare(a.Object, b.Object) })
	return append(all, overReserved(m)...)
}

func overReserved(m audit.Moment) (all []Finding) {
	group, nominal, reserved := map[string]string{}, map[string]int64{}, map[string]int64{}
	for _, q := range m.Queues {
		group[q.Name] = "cohort " + string(q.Spec.CohortName)
		if q.Spec.CohortName == "" {
			group[q.Name] = "queue " + q.Name
		}
		nominal[group[q.Name]] += devices(q)
	}
	for _, w := range m.Workloads {
		if w.Status.Admission != nil && len(w.Status.ReclaimablePods) == 0 { // else it has given something back
			reserved[group[string(w.Status.Admission.ClusterQueue)]] += recount.Reserved([]kueue.Workload{w}).Devices
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reserved)) {
		if reserved[name] > nominal[name] {
			all = append(all, Finding{"reserved", name, fmt.Sprintf("%d devices are reserved, and it has %d", reserved[name], nominal[name])})
		}
	}
	return all
}

func devices(q kueue.ClusterQueue) (n int64) {
	for _, g := range q.Spec.ResourceGroups {
		for _, f := range g.Flavors {
			for _, r := range f.Resources {
				if r.Name == recount.GPU {
					n += r.NominalQuota.Value()
				}
			}
		}
	}
	return n
}

// mostGrace is how many seconds the pods of work that no AppWrapper wraps may take to end.
const mostGrace = 600

// longGraces: an owner waits no longer for the quota that others have borrowed. Our controller ends the pods of
// AppWrappers.
func longGraces(m audit.Moment) (all []Finding) {
	for _, p := range m.Pods {
		grace := p.Spec.TerminationGracePeriodSeconds
		if p.Labels[workload.AppWrapperLabel] == "" && quota.UsesNode(&p) && grace != nil && *grace > mostGrace {
			all = append(all, Finding{LongGrace, "Pod " + p.Namespace + "/" + p.Name, fmt.Sprintf("it may take %d seconds to end", *grace)})
		}
	}
	return all
}

// left: some time after everybody has deleted what an episode made, it holds nothing.
func (r *Referee) left(m audit.Moment, ended map[string]time.Time) (all []Finding) {
	for name, w := range byEpisode(m) {
		at, over := ended[EpisodeOf(name)]
		if !over || m.Time.Sub(at) < r.Stays {
			continue
		}
		pods := r.staying(w.pods, m.Time)
		held := slices.ContainsFunc(w.workloads, func(w kueue.Workload) bool { return quota.Holds(&w) })
		switch {
		case len(pods) > 0:
			all = append(all, Finding{Stays, "episode " + name, "its pods run on: " + strings.Join(pods, ", ")})
		case held && len(w.pods) == 0:
			all = append(all, Finding{HeldByNothing, "episode " + name, "it has quota, and no pods"})
		}
	}
	slices.SortFunc(all, func(a, b Finding) int { return cmp.Compare(a.Object, b.Object) })
	return all
}

// staying are pods that use a node, and that nobody has told to end, or whose time is up.
func (r *Referee) staying(pods []corev1.Pod, now time.Time) (names []string) {
	for _, p := range pods {
		if quota.UsesNode(&p) && (p.DeletionTimestamp == nil || now.Sub(p.DeletionTimestamp.Time) > r.Grace) {
			names = append(names, p.Name)
		}
	}
	return names
}
