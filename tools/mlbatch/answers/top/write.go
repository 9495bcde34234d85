// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// WriteTable prints an overview for people. The wide one also has namespaces, why a team is not active, and
// resources without quota and use.
func (o Overview) WriteTable(out io.Writer, wide bool) error {
	for i, table := range o.Tables(wide) {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := printing.Table(out, table); err != nil {
			return err
		}
	}
	return nil
}

// Tables are those that have rows, each below its headings.
func (o Overview) Tables(wide bool) (all [][][]string) {
	if o.By == Own {
		return [][][]string{o.own()}
	}
	for _, table := range [][][]string{o.teams(wide), o.pools(wide), o.flavors(wide), o.queues(wide), o.nodes(wide)} {
		if len(table) > 1 {
			all = append(all, table)
		}
	}
	return all
}

func (o Overview) teams(wide bool) [][]string {
	heading := []string{"TEAM", "COHORT", "PENDING", "RUNNING", "FLAVOR", "RESOURCE", "USE", "USED", "QUOTA", "BORROWED", "UNUSED"}
	if wide {
		heading = append(heading, "QUEUE", "INACTIVE")
	}
	rows := [][]string{heading}
	for _, t := range o.Teams {
		for _, c := range t.Quota {
			if c.empty() && !wide {
				continue
			}
			row := append([]string{t.Title(), t.Cohort, number(t.Pending), number(t.Running)}, c.columns()...)
			if wide {
				row = append(row, t.Name, t.Inactive)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// pools have what is lent, which is what all their teams have borrowed.
func (o Overview) pools(wide bool) [][]string {
	rows := [][]string{{"COHORT", "FLAVOR", "RESOURCE", "USE", "USED", "QUOTA", "LENT", "UNUSED"}}
	for _, p := range o.Cohorts {
		for _, c := range p.Cells {
			if !c.empty() || wide {
				rows = append(rows, append([]string{p.Cohort}, c.columns()...))
			}
		}
	}
	return rows
}

func (o Overview) flavors(wide bool) [][]string {
	rows := [][]string{{"FLAVOR", "RESOURCE", "USED", "QUOTA", "SLACK", "LENDS", "TOTAL", "USABLE", "STRANDED", "UNUSABLE"}}
	for _, f := range o.Flavors {
		if f.Quota.IsZero() && f.Used.IsZero() && !wide {
			continue
		}
		amount := of(f.Resource)
		row := []string{f.Name, f.Resource, amount(&f.Used), amount(&f.Quota), amount(&f.Slack), amount(&f.Lends)}
		rows = append(rows, append(row, amount(f.Total), amount(f.Usable), amount(f.Stranded), f.losses()))
	}
	return rows
}

// of writes amounts of a resource. What is not known is empty.
func of(name string) func(*resource.Quantity) string {
	return func(q *resource.Quantity) string {
		if q == nil {
			return ""
		}
		return quota.Amount(corev1.ResourceName(name), *q)
	}
}

func (f Flavor) losses() string {
	all := make([]string, len(f.Unusable))
	for i, l := range f.Unusable {
		all[i] = of(f.Resource)(&l.Amount) + " " + l.Cause
	}
	return strings.Join(all, ", ")
}

// queues have a column with namespaces if there are several.
func (o Overview) queues(wide bool) [][]string {
	several := slices.ContainsFunc(o.Queues, func(q Queue) bool { return q.Namespace != o.Queues[0].Namespace })
	rows := [][]string{}
	add := func(namespace string, row []string, inactive string) {
		if several {
			row = append([]string{namespace}, row...)
		}
		if wide {
			row = append(row, inactive)
		}
		rows = append(rows, row)
	}
	add("NAMESPACE", []string{"QUEUE", "CLUSTERQUEUE", "PENDING", "RUNNING", "FLAVOR", "RESOURCE", "USED"}, "INACTIVE")
	for _, q := range o.Queues {
		row := []string{q.Name, q.ClusterQueue, number(q.Pending), number(q.Running)}
		for _, c := range q.Used {
			add(q.Namespace, append(row[:4:4], c.Flavor, c.Resource, of(c.Resource)(&c.Used)), q.Inactive)
		}
		if len(q.Used) == 0 {
			add(q.Namespace, append(row, "", "", ""), q.Inactive)
		}
	}
	return rows
}

func (c Cell) empty() bool { return c.Quota.IsZero() && c.Used.IsZero() }

func (c Cell) columns() []string {
	amount := of(c.Resource)
	return []string{c.Flavor, c.Resource, bar(c.Used, c.Quota), amount(&c.Used), amount(&c.Quota), amount(&c.Borrowed), amount(&c.Unused)}
}

func number(n int32) string { return strconv.Itoa(int(n)) }

// bar draws how much of a quota is used. A plus follows if more is.
func bar(used, quota resource.Quantity) string {
	const width = 10
	filled := 0
	if quota.Sign() > 0 {
		filled = min(width, int(used.AsApproximateFloat64()/quota.AsApproximateFloat64()*width))
	}
	if filled == 0 && used.Sign() > 0 {
		filled = 1 // a little is not nothing
	}
	text := "[" + strings.Repeat("#", filled) + strings.Repeat(".", width-filled) + "]"
	return text + strings.Repeat("+", max(0, cmp.Compare(used.Cmp(quota), 0)))
}
