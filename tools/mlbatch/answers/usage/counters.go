// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/controller/nodesigns"
)

// Increase is how much the counter of a team, resource and class has grown, in seconds times devices.
type Increase struct {
	Team, Resource, Class string
	Seconds               float64
}

// counter is the metric that is asked for, with the labels in the query.
const counter = "appwrapper_usage_device_seconds_total"

// Counters is the question for a Prometheus, or an error if its counters cannot say it. An empty namespace is all.
func Counters(q Query, namespace string) (promQL string, err error) {
	switch {
	case q.By != "team" && q.By != "cause":
		return "", fmt.Errorf("prometheus cannot tell usage by %s, because no label of its counters says it: use --by team or cause, or leave out --prometheus", q.By)
	case q.Since < time.Second:
		return "", errors.New("say for how long: --since, such as 30d, and no longer than Prometheus keeps its data")
	case q.Resource != "" && q.Resource != otherDevices && !nodesigns.IsDevice(corev1.ResourceName(q.Resource)):
		return "", fmt.Errorf("prometheus counts devices only, not %s: leave out --resource, or name a device such as nvidia.com/gpu", q.Resource)
	}
	var where []string
	for _, label := range []struct{ name, value string }{{"namespace", namespace}, {"resource", q.Resource}} {
		if label.value != "" {
			where = append(where, label.name+"="+strconv.Quote(label.value))
		}
	}
	return fmt.Sprintf("sum by (namespace, resource, class) (increase(%s{%s}[%ds]))", counter, strings.Join(where, ", "), int64(q.Since/time.Second)), nil
}

// otherDevices are those that the configuration of the controller does not name.
const otherDevices = "Other"

// Add makes a report of increases.
func Add(all []Increase, q Query, now time.Time) Report {
	start := now.Add(-q.Since)
	report := Report{At: now, Since: &start, By: q.By, Source: "prometheus", Notes: ofCounters}
	rows, totals, unknown := sums{}, sums{}, map[string]bool{}
	for _, i := range all {
		if !slices.Contains(ledger.Classes(), i.class()) {
			unknown[i.Class] = true
			continue
		}
		if i.booked() > 0 {
			rows.grow(i.key(q.By), i)
			totals.grow(Key{Resource: i.Resource}, i)
		}
	}
	report.Rows, report.Totals = rows.sorted(), totals.sorted()
	if len(all) == 0 {
		report.Notes = append(slices.Clone(ofCounters), "Prometheus has no "+counter+" in this time: does it scrape the controller, and keep its data for so long?")
	}
	for _, class := range slices.Sorted(maps.Keys(unknown)) {
		report.Notes = append(slices.Clone(report.Notes), fmt.Sprintf("the class %q is not known, and not counted: use the mlbatch of the controller's version", class))
	}
	return report
}

// ofCounters is what a report from counters does not know.
var ofCounters = []string{
	"these are hours that were booked in this time: those of an attempt that has ended, also what it did before; not those that still run",
	"only devices count, and increases are estimated between scrapes (docs/commands-admin.md)",
}

func (i Increase) class() ledger.Class { return ledger.Class(i.Class) }

// booked are its hours.
func (i Increase) booked() Hours { return Hours(math.Round(i.Seconds * 1000)) }

func (i Increase) key(by string) Key {
	if by == "cause" {
		return Key{Cause: i.class(), Resource: i.Resource}
	}
	return Key{Team: i.Team, Resource: i.Resource}
}

// grow adds hours of which all may have been before the window: they count when they are booked.
func (s sums) grow(key Key, i Increase) {
	if s[key] == nil {
		s[key] = &Row{Key: key}
	}
	row := s[key]
	row.Reserved += i.booked()
	row.Earlier += i.booked()
	if key.Cause != "" {
		return
	}
	if row.Classes == nil {
		row.Classes = map[ledger.Class]Hours{}
		for _, class := range ledger.Classes() {
			row.Classes[class] = 0
		}
	}
	row.Classes[i.class()] += i.booked()
}
