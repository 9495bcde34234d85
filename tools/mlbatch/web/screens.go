// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
	"github.com/mlbatch/mlbatch/tools/mlbatch/web/views"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// asked is a command with its flags. If a page has several, each has a heading.
type asked struct {
	heading, command string
	flags            url.Values
}

// screen is a page of its own.
type screen struct {
	path, name, about string
	// parts are what it shows for the flags in its address, and choices are other flags by name.
	parts   func(url.Values) []asked
	choices func(url.Values) []choice
	// still is set if it is not live, and actions if something can be done with what it is about.
	still, actions bool
}

type choice struct{ name, query string }

// screens are in the order of the navigation.
var screens = []screen{
	{path: "/", name: "My work", parts: myWork, choices: someWork},
	{path: "/team", name: "My team", about: "The quota of teams: what is used, borrowed, lent and pending.",
		parts: func(q url.Values) []asked { return []asked{{"", "top", q}} }, choices: byTop},
	{path: "/cluster", name: "The cluster", about: "What the nodes have, and what waits and runs.", parts: cluster},
	{path: "/usage", name: "Usage", about: "The hours for which quota was reserved, and what they were used for.",
		parts: func(q url.Values) []asked { return []asked{{"", "usage", q}} }, choices: byUsage},
	{path: "/check", name: "Check", about: "What is wrong with the cluster, for administrators.",
		parts: func(url.Values) []asked { return []asked{{"", "check", nil}} }},
	{path: "/audit", name: "Audit", about: "What gets past the quota, for administrators. It is read anew each time you open this page. What is found must still be there ten seconds later.",
		parts: func(url.Values) []asked { return []asked{{"", "audit", nil}} }, still: true},
}

func myWork(q url.Values) []asked {
	if len(q["me"])+len(q["all-namespaces"])+len(q["namespace"]) == 0 {
		q = merged(q, "me", "true")
	}
	return []asked{{"", "list", q}}
}

func merged(q url.Values, pairs ...string) url.Values {
	all := url.Values{}
	for name, values := range q {
		all[name] = values
	}
	for i := 0; i < len(pairs); i += 2 {
		all.Set(pairs[i], pairs[i+1])
	}
	return all
}

func someWork(q url.Values) []choice {
	past := choice{"with what ended earlier", merged(q, "past", "true").Encode()}
	if q.Get("past") == "true" {
		past = choice{"without what ended earlier", merged(q, "past", "false").Encode()}
	}
	return []choice{{"mine", ""}, {"mine, in all namespaces", "all-namespaces=true&me=true"}, {"everybody's", "me=false"}, {"everybody's, in all namespaces", "all-namespaces=true"}, past}
}

func byTop(url.Values) []choice {
	return []choice{{"all", ""}, {"teams", "by=team"}, {"queues", "by=queue"}, {"flavors", "by=flavor"}, {"nodes", "by=node"}}
}

func byUsage(url.Values) (all []choice) {
	for _, by := range usage.Dimensions() {
		all = append(all, choice{"by " + by, "by=" + by})
	}
	return append(all, choice{"a week, by user", "by=user&since=168h"})
}

func cluster(url.Values) []asked {
	everywhere := url.Values{"all-namespaces": {"true"}, "first": {"oldest"}}
	return []asked{
		{"Flavors", "top", url.Values{"by": {"flavor"}}}, {"Nodes", "top", url.Values{"by": {"node"}}},
		{"What waits, the longest first", "list", merged(everywhere, "state", work.Queued)},
		{"What runs, the longest first", "list", merged(everywhere, "state", work.Running)},
	}
}

// job is the page of one piece of work.
func job(r *http.Request) screen {
	flags := url.Values{"namespace": {r.PathValue("namespace")}, "name": {r.PathValue("kind") + "/" + r.PathValue("name")}}
	return screen{
		path: strings.TrimPrefix(r.URL.EscapedPath(), "/live"), name: r.PathValue("name"), actions: true,
		parts: func(url.Values) []asked { return []asked{{"", "why", flags}, {"What it consists of", "status", flags}} },
	}
}

// page asks everything that a screen shows.
func (s *Server) page(ctx context.Context, of screen, query url.Values, now time.Time) views.Page {
	p := views.Page{Path: of.path, Title: of.name, About: of.about, Cluster: s.asker.Cluster, Namespace: s.asker.Namespace, Live: !of.still}
	if len(query) > 0 {
		p.Path += "?" + query.Encode()
	}
	for _, other := range screens {
		p.Screens = append(p.Screens, views.Link{Path: other.path, Text: other.name, Here: other.path == of.path})
	}
	if of.choices != nil {
		for _, c := range of.choices(query) {
			p.Choices = append(p.Choices, views.Link{Path: strings.TrimSuffix(of.path+"?"+c.query, "?"), Text: c.name, Here: c.query == query.Encode()})
		}
	}
	if of.actions {
		for _, a := range actions {
			p.Choices = append(p.Choices, views.Link{Path: of.path + "/" + a.name, Text: a.name + "…"})
		}
	}
	for _, ask := range of.parts(query) {
		part, _ := s.asker.part(ctx, ask.command, ask.flags, now)
		part.Heading = ask.heading
		p.Parts = append(p.Parts, part)
	}
	return p
}

// rows are those of one page of a list.
func rows(all []work.Item, past int, flags url.Values) views.WorkRows {
	if flags.Get("first") == "oldest" {
		slices.SortStableFunc(all, func(a, b work.Item) int { return a.Since.Compare(b.Since.Time) })
	}
	from, err := strconv.Atoi(flags.Get("from"))
	if err != nil || from < 0 || from > len(all) {
		from = 0
	}
	shown := views.WorkRows{All: len(all), Past: past, Items: all[from:min(len(all), from+views.Rows)]}
	to := func(n int) string { return "/?" + merged(flags, "from", strconv.Itoa(n)).Encode() }
	if from > 0 {
		shown.Earlier = to(max(0, from-views.Rows))
	}
	if from+views.Rows < len(all) {
		shown.Later = to(from + views.Rows)
	}
	return shown
}
