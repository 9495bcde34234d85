// SPDX-License-Identifier: Apache-2.0

package views

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/top"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// Chart draws numbers of an answer as bars. It says nothing that the answer does not say.
type Chart struct {
	Title string
	Bars  []Bar
	// Left is how many bars more there would be.
	Left int
}

// Bar is a row of a chart.
type Bar struct {
	Label string
	Spans []Span
}

// Span is a part of a bar, which has Whole as its width. Class says how it looks, and Text what it is.
type Span struct {
	X, Width    int
	Class, Text string
}

// Whole is the width of a bar.
const Whole = 1000

// mostBars are as many as people compare.
const mostBars = 50

// Text is the bar in words.
func (b Bar) Text() string {
	words := make([]string, len(b.Spans))
	for i, s := range b.Spans {
		words[i] = s.Text
	}
	return strings.Join(words, "; ")
}

// add draws from one place to another, out of a whole. What is there is seen.
func (b *Bar) add(from, to, whole float64, class, text string) {
	if from, to = max(from, 0), min(to, whole); to <= from {
		return
	}
	x, end := int(from/whole*Whole), int(to/whole*Whole)
	b.Spans = append(b.Spans, Span{X: min(x, Whole-2), Width: max(end-x, 2), Class: class, Text: text})
}

// charted is nil without bars.
func charted(title string, bars []Bar) *Chart {
	if len(bars) == 0 {
		return nil
	}
	shown := bars[:min(len(bars), mostBars)]
	return &Chart{Title: title, Bars: shown, Left: len(bars) - len(shown)}
}

// Quota draws the quota of teams and cohorts. Bars of one resource have one scale.
func Quota(o top.Overview) *Chart {
	var bars []Bar
	scale := map[string]float64{}
	each := func(name string, cells []top.Cell, beyond string) {
		for _, c := range cells {
			scale[c.Resource] = max(scale[c.Resource], amount(c.Quota), amount(c.Used), amount(c.Quota)+amount(c.Borrowed))
			if c.Quota.IsZero() && c.Used.IsZero() {
				continue
			}
			bars = append(bars, quotaBar(fmt.Sprintf("%s, %s in %s", name, c.Resource, c.Flavor), c, scale[c.Resource], beyond))
		}
	}
	for range 2 { // once for the scale
		bars = nil
		for _, t := range o.Teams {
			each(t.Title(), t.Quota, "borrowed")
		}
		for _, p := range o.Cohorts {
			each("cohort "+p.Cohort, p.Cells, "lent")
		}
	}
	return charted("Used, unused and borrowed of each quota", bars)
}

// quotaBar has what a team uses of its own, what may start or be lent, what it keeps, and what it borrows. A cohort's
// loans are in its own quota.
func quotaBar(label string, c top.Cell, scale float64, beyond string) Bar {
	b := Bar{Label: label}
	quota, used, borrowed := amount(c.Quota), amount(c.Used), amount(c.Borrowed)
	own := used - borrowed
	b.add(0, own, scale, "used", fmt.Sprintf("%s used of %s", &c.Used, &c.Quota))
	at, lent := own, own+borrowed
	if beyond == "lent" {
		b.add(own, lent, scale, "beyond", fmt.Sprintf("%s lent", &c.Borrowed))
		at = lent
	}
	b.add(at, at+amount(c.Unused), scale, "free", fmt.Sprintf("%s unused", &c.Unused))
	b.add(at+amount(c.Unused), quota, scale, "kept", "the rest of "+c.Quota.String())
	if beyond != "lent" {
		b.add(max(quota, own), max(quota, own)+borrowed, scale, "beyond", fmt.Sprintf("%s borrowed", &c.Borrowed))
	}
	return b
}

func amount(q resource.Quantity) float64 { return q.AsApproximateFloat64() }

// Usage draws what was reserved, and for what. Bars of one resource have one scale.
func Usage(r usage.Report) *Chart {
	scale := map[string]float64{}
	for _, row := range r.Rows {
		scale[row.Resource] = max(scale[row.Resource], float64(row.Reserved))
	}
	var bars []Bar
	for _, row := range r.Rows {
		what := cmp.Or(row.AppWrapper, row.Queue, row.User, string(row.Cause), row.Team)
		if row.Team != "" && what != row.Team {
			what = row.Team + "/" + what
		}
		b := Bar{Label: strings.TrimPrefix(what+", "+row.Resource, ", ")}
		at := 0.0
		for _, class := range ledger.Classes() {
			if n := row.Classes[class]; n > 0 {
				b.add(at, at+float64(n), scale[row.Resource], "c"+string(class), fmt.Sprintf("%s %s", class, n))
				at += float64(n)
			}
		}
		if row.Cause != "" {
			b.add(0, float64(row.Reserved), scale[row.Resource], "c"+string(row.Cause), row.Reserved.String()+" hours")
		}
		bars = append(bars, b)
	}
	return charted("Hours reserved, and for what", bars)
}

// Life draws what is known of some work: waits, attempts and the present state, and below them its pods.
func Life(r work.Report, now time.Time) *Chart {
	begin := moment(r.Created)
	if begin.IsZero() || r.Since.IsZero() {
		return nil
	}
	end := now
	if ended(r.Stage) {
		end = r.Since.Time
	}
	if !end.After(begin) { // clocks differ, or the time of the end is not known
		return nil
	}
	l := life{begin, end}
	bars := []Bar{l.ofWork(r)}
	for _, p := range r.Pods {
		bars = append(bars, l.ofPod(p))
	}
	return charted(fmt.Sprintf("From %s to %s", stamp(begin), stamp(end)), bars)
}

func ended(stage string) bool {
	return stage == work.Succeeded || stage == work.Failed || stage == work.Cancelled || stage == work.Ended
}

// life is a span of time.
type life struct{ begin, end time.Time }

func (l life) add(b *Bar, from, to time.Time, class, what string) {
	b.add(from.Sub(l.begin).Seconds(), to.Sub(l.begin).Seconds(), l.end.Sub(l.begin).Seconds(), class, what+" for "+ago(from, to))
}

// ofWork has attempts that ended without success, the present state, and what was before each.
func (l life) ofWork(r work.Report) Bar {
	b, at := Bar{Label: r.Kind + " " + r.Name}, l.begin
	for i, a := range r.LastAttempts {
		before := "waited"
		if i == 0 && int(r.Retries) > len(r.LastAttempts) {
			before = "waits and earlier attempts"
		}
		l.add(&b, at, a.Began.Time, "queued", before)
		class, what := "failed", "attempt until "+a.Cause
		if a.Pod == "" && a.Reason != "" {
			class = "preempted" // its quota was taken back
		}
		if a.Reason != "" {
			what += ", " + a.Reason
		}
		l.add(&b, a.Began.Time, a.Ended.Time, class, what)
		at = a.Ended.Time
	}
	class, before := "queued", "before it was "+r.Stage
	if r.Stage == work.Succeeded {
		class = "succeeded"
	}
	l.add(&b, at, r.Since.Time, class, before)
	l.add(&b, r.Since.Time, l.end, strings.ToLower(r.Stage), cmp.Or(r.Stage, r.State))
	return b
}

// ofPod is from its start to the end of its containers.
func (l life) ofPod(p podlogs.Pod) Bar {
	name := p.Name
	if p.Number() != "" {
		name = "rank " + p.Number()
	}
	if p.Node != "" {
		name += " on " + p.Node
	}
	b := Bar{Label: name}
	if p.Stored.Status.StartTime == nil {
		return b
	}
	end := l.end
	for _, c := range p.Stored.Status.ContainerStatuses {
		if done := c.State.Terminated; done != nil && done.FinishedAt.Time.Before(end) {
			end = done.FinishedAt.Time
		}
	}
	class, _, _ := strings.Cut(p.State, ":")
	class, _, _ = strings.Cut(class, ",")
	l.add(&b, p.Stored.Status.StartTime.Time, end, strings.ToLower(class), p.State)
	return b
}
