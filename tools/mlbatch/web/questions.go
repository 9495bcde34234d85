// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/top"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clustercheck"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/snapshot"
	"github.com/mlbatch/mlbatch/tools/mlbatch/web/views"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// Source is the cluster as its user sees it.
type Source struct {
	Client client.WithWatch
	// Everything is a client that can read kinds which the other one does not know.
	Everything func() (client.Client, error)
	// Cluster is its name for people, and Namespace the one of the context.
	Cluster, Namespace string
}

// asker asks what commands ask.
type asker struct {
	Source
	watched *clusterstate.Watched

	mutex sync.Mutex
	user  string
}

// question is a command. The flags are those of the command line, and name is its argument.
type question struct {
	ask func(*asker, context.Context, url.Values, time.Time) (views.Part, error)
	// flags are those that it takes.
	flags []string
}

// questions are the commands that a page shows, by name.
var questions = map[string]question{
	"list":   {(*asker).list, []string{"namespace", "all-namespaces", "me", "state"}},
	"status": {(*asker).status, []string{"namespace", "name"}},
	"why":    {(*asker).why, []string{"namespace", "name"}},
	"top":    {(*asker).top, []string{"namespace", "by"}},
	"usage":  {(*asker).usage, []string{"namespace", "by", "since"}},
	"check":  {(*asker).check, nil},
	"audit":  {(*asker).audit, nil},
}

// part asks, and says what went wrong in place of an answer.
func (a *asker) part(ctx context.Context, command string, flags url.Values, now time.Time) (views.Part, error) {
	q := questions[command]
	line, query := "mlbatch "+command, url.Values{}
	if name := flags.Get("name"); name != "" && slices.Contains(q.flags, "name") {
		line += " " + quoted(name)
		query.Set("name", name)
	}
	for _, flag := range q.flags {
		for _, value := range flags[flag] {
			if flag != "name" {
				line += " --" + strings.TrimSuffix(flag+"="+quoted(value), "=true")
				query.Add(flag, value)
			}
		}
	}
	p, err := q.ask(a, ctx, flags, now)
	p.Command, p.API, p.Now = line, "/api/"+command+"?"+query.Encode(), now
	if err != nil {
		p.Error = printing.OneLine(err.Error())
	}
	return p, err
}

// quoted is a word for a shell.
func quoted(word string) string {
	word = printing.OneLine(word)
	if strings.Trim(strings.ToLower(word), "abcdefghijklmnopqrstuvwxyz0123456789-./_,") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func (a *asker) in(flags url.Values) string { return cmp.Or(flags.Get("namespace"), a.Namespace) }

func (a *asker) list(ctx context.Context, flags url.Values, now time.Time) (p views.Part, err error) {
	var f work.Filter
	namespace := a.in(flags)
	if flags.Get("all-namespaces") == "true" {
		namespace = ""
	}
	if f.Stages, err = work.ParseStages(flags["state"]); err != nil {
		return p, err
	}
	if flags.Get("me") == "true" {
		if f.User, err = a.whoami(ctx); err != nil {
			return p, err
		}
	}
	all, err := work.List(ctx, a.watched, namespace, now)
	if err != nil {
		return p, err
	}
	wanted, _ := all.Only(f, now)
	if flags.Get("past") != "true" {
		f.Ended = 24 * time.Hour
	}
	shown, past := all.Only(f, now)
	return views.Part{Kind: "WorkList", Answer: wanted, Shown: rows(shown.Items, past, flags), Notes: all.Unknown}, nil
}

// whoami asks who the user is, which does not change.
func (a *asker) whoami(ctx context.Context) (string, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var err error
	if a.user == "" {
		a.user, err = clusterstate.User(ctx, a.watched)
	}
	return a.user, err
}

func (a *asker) target(flags url.Values) (why.Target, error) {
	name := flags.Get("name")
	target, err := why.Parse(a.in(flags), name)
	if err == nil {
		return target, nil
	}
	if kind, only, both := strings.Cut(name, "/"); both { // a kind that can only be found by what it has in a queue
		if target, err := why.Parse(a.in(flags), only); err == nil && kind != "" {
			return target, nil
		}
	}
	return target, err
}

func (a *asker) why(ctx context.Context, flags url.Values, now time.Time) (p views.Part, err error) {
	target, err := a.target(flags)
	if err != nil {
		return p, err
	}
	e, err := why.Explain(ctx, a.watched, target, now)
	if err != nil {
		return p, err
	}
	all := []explain.Explanation{e}
	return views.Part{Kind: "Explanation", Answer: printing.Items[explain.Explanation]{Items: all}, Shown: all, Notes: e.Unknown}, nil
}

func (a *asker) status(ctx context.Context, flags url.Values, now time.Time) (p views.Part, err error) {
	target, err := a.target(flags)
	if err != nil {
		return p, err
	}
	r, err := work.Status(ctx, a.watched, target, now)
	if err != nil {
		return p, err
	}
	return views.Part{Kind: "WorkStatus", Answer: printing.Items[work.Report]{Items: []work.Report{r}}, Shown: views.Status(r, r.Tables(now)), Chart: views.Life(r, now), Notes: r.Unknown}, nil
}

func (a *asker) top(ctx context.Context, flags url.Values, _ time.Time) (p views.Part, err error) {
	view := top.View(flags.Get("by"))
	if view != "" && !slices.Contains(top.Views(), string(view)) {
		return p, fmt.Errorf("cannot show anything by %s: use %s", view, strings.Join(top.Views(), ", "))
	}
	objects, err := clusterstate.Top(ctx, a.watched, a.in(flags), view)
	if err != nil {
		return p, err
	}
	overview := top.Judge(objects, view)
	return views.Part{Kind: "QuotaOverview", Answer: overview.Answer(), Shown: views.Tables(overview.Tables(false)), Chart: views.Quota(overview), Notes: overview.Notes}, nil
}

func (a *asker) usage(ctx context.Context, flags url.Values, now time.Time) (p views.Part, err error) {
	q := usage.Query{By: cmp.Or(flags.Get("by"), "team")}
	if !slices.Contains(usage.Dimensions(), q.By) {
		return p, fmt.Errorf("unknown --by %q: use %s", q.By, strings.Join(usage.Dimensions(), ", "))
	}
	if since := flags.Get("since"); since != "" {
		if q.Since, err = time.ParseDuration(since); err != nil || q.Since <= 0 {
			return p, errors.New("write a time that is longer than 0, such as 12h")
		}
	}
	objects, err := clusterstate.Usage(ctx, a.watched, flags.Get("namespace"), a.Namespace)
	if err != nil {
		return p, err
	}
	report := usage.Count(objects, q, now.UTC().Truncate(time.Second))
	return views.Part{Kind: "Usage", Answer: report, Shown: views.Tables(report.Tables()), Chart: views.Usage(report), Notes: report.Notes}, nil
}

func (a *asker) check(ctx context.Context, _ url.Values, now time.Time) (p views.Part, err error) {
	objects, err := clustercheck.Read(ctx, a.watched, now)
	if err != nil {
		return p, err
	}
	report := checkup.Find(objects)
	p = views.Part{Kind: "Check", Answer: report, Shown: report, Notes: report.Unknown}
	if report.Installed != nil && !*report.Installed {
		p.Notes = append(p.Notes, "the cluster does not have the platform: 'mlbatch check' also says what 'mlbatch install' would refuse")
	}
	return p, nil
}

// confirmation is the time between the two looks of an audit.
const confirmation = 10 * time.Second

// audit reads everything as of one revision each time it is asked, so it is never live.
func (a *asker) audit(ctx context.Context, _ url.Values, _ time.Time) (p views.Part, err error) {
	api, err := a.Everything()
	if err != nil {
		return p, err
	}
	m, found, err := snapshot.Confirmed(ctx, api, nil, audit.Tolerance{Grace: 2 * time.Minute}, confirmation)
	if err != nil {
		return p, err
	}
	report := audit.Reported(m, found)
	return views.Part{Kind: "Audit", Answer: report, Shown: report}, nil
}
