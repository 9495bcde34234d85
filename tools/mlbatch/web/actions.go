// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/web/views"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// action is a command that changes some work, after a question.
type action struct {
	name, button string
	question     func(explain.Objects) string
	do           func(context.Context, client.Client, explain.Objects, io.Writer) error
}

var actions = []action{
	{"cancel", "Yes, cancel it", func(o explain.Objects) string { return work.Ending([]explain.Objects{o}) }, work.Cancel},
	{"retry", "Yes, submit it again", work.Repeating, func(ctx context.Context, c client.Client, o explain.Objects, out io.Writer) error {
		return work.Retry(ctx, c, o, work.Change{}, out)
	}},
}

// actionOf is what a request is about. The objects are read from the cluster, as by a command.
func (s *Server) actionOf(w http.ResponseWriter, r *http.Request) (a action, found explain.Objects, page views.Page, ok bool) {
	i := slices.IndexFunc(actions, func(a action) bool { return a.name == r.PathValue("action") })
	if i < 0 {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return a, found, page, false
	}
	a = actions[i]
	flags := url.Values{"namespace": {r.PathValue("namespace")}, "name": {r.PathValue("kind") + "/" + r.PathValue("name")}}
	of := screen{path: r.URL.EscapedPath(), name: r.PathValue("name"), still: true, parts: func(url.Values) []asked { return nil }}
	page = s.page(r.Context(), of, nil, time.Now())
	part := views.Part{Command: "mlbatch " + a.name + " " + quoted(flags.Get("name")) + " --namespace=" + quoted(flags.Get("namespace"))}
	target, err := s.asker.target(flags)
	if err == nil {
		found, err = why.Find(r.Context(), s.asker.Client, target)
	}
	if err != nil {
		part.Error = printing.OneLine(err.Error())
	}
	page.Parts = []views.Part{part}
	return a, found, page, true
}

// confirm asks whether something is to be done.
func (s *Server) confirm(w http.ResponseWriter, r *http.Request) {
	a, found, page, ok := s.actionOf(w, r)
	if !ok {
		return
	}
	if p := &page.Parts[0]; p.Error == "" {
		p.Kind, p.Shown = "Question", views.Question{
			Path: r.URL.EscapedPath(), Back: strings.TrimSuffix(r.URL.EscapedPath(), "/"+a.name), Sentence: a.question(found), Button: a.button, Form: s.guard.Form(), UID: identity(found),
		}
	}
	s.write(w, page)
}

// act does what the user has confirmed, to the object that the question was about.
func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	a, found, page, ok := s.actionOf(w, r)
	if !ok {
		return
	}
	if p := &page.Parts[0]; p.Error == "" {
		var out strings.Builder
		err := errors.New("there is another one of this name now, and nothing was done: go back, and look at it")
		if identity(found) == r.PostFormValue("uid") {
			err = a.do(r.Context(), s.asker.Client, found, &out)
		}
		p.Kind, p.Shown = "Done", out.String()
		if err != nil {
			p.Error = printing.OneLine(err.Error())
		}
	}
	s.write(w, page)
}

// identity tells an object from a later one of its name.
func identity(o explain.Objects) string {
	switch {
	case o.Run != nil:
		return string(o.Run.UID)
	case o.AppWrapper != nil:
		return string(o.AppWrapper.UID)
	}
	return string(o.Job.GetUID())
}
