// SPDX-License-Identifier: Apache-2.0

// Package usage answers: how many hours of which resources were reserved, for whom, and what were they used for?
// It adds up the books of the AppWrappers that exist (package controller/ledger), and compares the sum with what
// Kueue's Workloads say; or it adds up what the counters of the controller say. Only Read calls an API, and the time
// is an argument.
package usage

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/ledger"
)

// Objects are what was read.
type Objects struct {
	// Namespace is that of all objects; empty if they are of all namespaces.
	Namespace   string
	AppWrappers []v1beta2.AppWrapper
	// Workloads are Kueue's, or nil if they are not known.
	Workloads []kueue.Workload
	// Unread says in sentences what could not be read.
	Unread []string
	// requested is what those request whose components Add has left out.
	requested map[types.UID]units
}

// Query is what is asked.
type Query struct {
	// By is what each row is about: one of Dimensions.
	By string
	// Since leaves out AppWrappers that have had no quota for so long; 0 leaves out none.
	Since time.Duration
	// Resource is what is counted; empty for what matters of each AppWrapper.
	Resource string
}

// Report is the answer.
type Report struct {
	// At is until when AppWrappers are counted that have quota.
	At time.Time `json:"at"`
	// Since is when the window begins, if there is one.
	Since *time.Time `json:"since,omitempty"`
	By    string     `json:"by"`
	// Source is prometheus if the hours are not those of the AppWrappers that exist.
	Source string `json:"source,omitempty"`
	Rows   []Row  `json:"items"`
	// Totals have a row for each resource.
	Totals []Row `json:"totals"`
	// Kueue compares the totals with Kueue's Workloads.
	Kueue []Comparison `json:"kueue,omitempty"`
	// Notes say what is not counted, and what could not be read.
	Notes []string `json:"notes,omitempty"`
}

// Key is what a row is about. Only the fields of its dimension are set.
type Key struct {
	// Team is a namespace.
	Team       string       `json:"team,omitempty"`
	User       string       `json:"user,omitempty"`
	Queue      string       `json:"queue,omitempty"`
	AppWrapper string       `json:"appWrapper,omitempty"`
	Cause      ledger.Class `json:"cause,omitempty"`
	Resource   string       `json:"resource"`
}

// Row is what was reserved of one resource.
type Row struct {
	Key
	// AppWrappers is how many; 0 if it is not known.
	AppWrappers int   `json:"appWrappers,omitempty"`
	Reserved    Hours `json:"reservedHours"`
	// Classes add up to what was reserved. A row about a cause has none.
	Classes map[ledger.Class]Hours `json:"classHours,omitempty"`
	// Earlier is how much of it may have been before the window, at most.
	Earlier Hours `json:"earlierHours"`
}

// dimension is a way to make rows.
type dimension struct {
	name    string
	columns []column
	// key is that of an AppWrapper; nil if its classes go to rows of their own.
	key func(*v1beta2.AppWrapper) Key
}

var dimensions = []dimension{
	{"team", []column{ofTeam}, func(aw *v1beta2.AppWrapper) Key { return Key{Team: aw.Namespace} }},
	{"user", []column{ofUser}, func(aw *v1beta2.AppWrapper) Key { return Key{User: aw.Labels[v1beta2.UserLabel]} }},
	{"queue", []column{ofTeam, ofQueue}, func(aw *v1beta2.AppWrapper) Key {
		return Key{Team: aw.Namespace, Queue: aw.Labels[v1beta2.QueueNameLabel]}
	}},
	{"cause", []column{ofCause}, nil},
	{"appwrapper", []column{ofTeam, ofAppWrapper}, func(aw *v1beta2.AppWrapper) Key { return Key{Team: aw.Namespace, AppWrapper: aw.Name} }},
}

// Dimensions are what rows may be about.
func Dimensions() (names []string) {
	for _, d := range dimensions {
		names = append(names, d.name)
	}
	return names
}

func dimensionOf(by string) dimension {
	return dimensions[slices.IndexFunc(dimensions, func(d dimension) bool { return d.name == by })]
}

// Count makes a report of objects.
func Count(o Objects, q Query, now time.Time) Report {
	w := window{now: now}
	report := Report{At: now, By: q.By}
	if q.Since > 0 {
		w.start = now.Add(-q.Since)
		report.Since = &w.start
	}
	all := o.accounts(w, q.Resource)
	rows, totals := sums{}, sums{}
	for _, a := range all {
		rows.post(dimensionOf(q.By), a)
		totals.post(dimension{key: func(*v1beta2.AppWrapper) Key { return Key{} }}, a)
	}
	report.Rows, report.Totals = rows.sorted(), totals.sorted()
	report.Kueue = o.compare(all, now)
	report.Notes = slices.Concat(o.Unread, o.unknown(report))
	return report
}

// account is what is known of one AppWrapper.
type account struct {
	aw   *v1beta2.AppWrapper
	used v1beta2.AppWrapperUsage
	// since are the seconds in the window since it got the quota that it has now.
	since int64
	// earlier are the seconds that may have been before the window, at most.
	earlier int64
	units   units
}

// earlierOf is the same of a class. What is in flight was done with the quota that it has now.
func (a account) earlierOf(class ledger.Class) int64 {
	n := *ledger.In(&a.used, class)
	if class == ledger.InFlight {
		return min(max(0, n-a.since), a.earlier)
	}
	return min(n, a.earlier)
}

// accounts are the AppWrappers that have had quota in a window.
func (o Objects) accounts(w window, resource string) (all []account) {
	for i := range o.AppWrappers {
		aw := &o.AppWrappers[i]
		if w.has(aw.Status) {
			a := account{aw: aw, used: ledger.Until(aw.Status, w.now), since: w.since(aw.Status), units: o.unitsOf(aw).counted(resource)}
			a.earlier = w.earlier(aw, seconds(ledger.Sum(a.used))-a.since)
			all = append(all, a)
		}
	}
	return all
}

// sums are rows that are being added up.
type sums map[Key]*Row

func (s sums) post(d dimension, a account) {
	for name, n := range a.units {
		if d.key == nil {
			s.postClasses(name, n, a)
			continue
		}
		key := d.key(a.aw)
		key.Resource = name
		row := s.row(key)
		if row.Classes == nil {
			row.Classes = map[ledger.Class]Hours{}
		}
		for _, class := range ledger.Classes() {
			row.Classes[class] += hours(*ledger.In(&a.used, class), n)
			row.Reserved += hours(*ledger.In(&a.used, class), n)
		}
		row.Earlier += hours(a.earlier, n)
	}
}

// postClasses makes a row of each class.
func (s sums) postClasses(name string, n int64, a account) {
	for _, class := range ledger.Classes() {
		if seconds := *ledger.In(&a.used, class); seconds > 0 {
			row := s.row(Key{Cause: class, Resource: name})
			row.Reserved += hours(seconds, n)
			row.Earlier += hours(a.earlierOf(class), n)
		}
	}
}

// row is that of a key, with one more AppWrapper.
func (s sums) row(key Key) *Row {
	if s[key] == nil {
		s[key] = &Row{Key: key}
	}
	s[key].AppWrappers++
	return s[key]
}

func (s sums) sorted() []Row {
	rows := []Row{}
	for _, key := range slices.SortedFunc(maps.Keys(s), compareKeys) {
		rows = append(rows, *s[key])
	}
	return rows
}

// compareKeys sorts causes as they are declared, and everything else by name.
func compareKeys(a, b Key) int {
	return slices.Compare(a.order(), b.order())
}

func (k Key) order() []string {
	place := ""
	if k.Cause != "" {
		place = fmt.Sprintf("%02d", slices.Index(ledger.Classes(), k.Cause))
	}
	return []string{k.Team, k.User, k.Queue, k.AppWrapper, place, k.Resource}
}

// unknown is what the report cannot know.
func (o Objects) unknown(r Report) []string {
	all := []string{"AppWrappers that are deleted are not counted: where Prometheus runs, --prometheus counts them, too"}
	if slices.ContainsFunc(r.Totals, func(row Row) bool { return row.Earlier > 0 }) {
		all = append(all, "AppWrappers are counted from their beginning: EARLIER is how much of that may have been before "+r.Since.UTC().Format(time.RFC3339)+", at most")
	}
	if n := o.withoutBooks(); n > 0 {
		all = append(all, fmt.Sprintf("%d AppWrapper(s) got quota from a controller that keeps no books: they are not counted", n))
	}
	if n := o.bare(); n > 0 {
		all = append(all, fmt.Sprintf("%d job(s) that no AppWrapper wraps got quota: they are not counted", n))
	}
	return all
}

// withoutBooks are the AppWrappers that have certainly had quota, and have no books.
func (o Objects) withoutBooks() (n int) {
	for _, aw := range o.AppWrappers {
		if s := aw.Status; s.Usage == nil && (holdsQuota(s) || s.Phase == v1beta2.AppWrapperSucceeded) {
			n++
		}
	}
	return n
}
