// SPDX-License-Identifier: Apache-2.0

// Package views answers: how do answers look as pages? It makes HTML of what commands print, wherever that comes from:
// it has no client, and decides nothing.
package views

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Part is an answer on a page: that of one command.
type Part struct {
	// Heading is empty if it is alone on its page.
	Heading string
	// Command is what prints the same, and API the path of the same for programs.
	Command, API string
	// Kind and Answer are what the command prints with -o json.
	Kind   string
	Answer any
	// Shown is what the template of the kind shows, and Chart what is drawn above it, or nil.
	Shown any
	Chart *Chart
	// Notes are what the command prints beside its answer, and what could not be read.
	Notes []string
	// Error is why there is no answer.
	Error string
	Now   time.Time
}

// Page is a whole page.
type Page struct {
	// Path is that of the page, with its query.
	Path, Title, About string
	// Cluster is where it comes from, and Namespace the one of the user.
	Cluster, Namespace string
	Screens            []Link
	// Choices are other views of the same.
	Choices []Link
	Parts   []Part
	// Live is set if it changes while it is open.
	Live bool
}

// Question is a form that asks whether something is to be done.
type Question struct {
	// Path is where the form is sent to, and Back where nothing is done.
	Path, Back, Sentence, Button string
	// Form is the token of the form, and UID what it is about.
	Form, UID string
}

// Link is a way to another page.
type Link struct {
	Path, Text string
	// Here is set if this is the page.
	Here bool
}

//go:embed *.html
var files embed.FS

//go:embed page.css live.js icon.svg
var assets embed.FS

// Assets are the files that pages load: a style sheet, a script and an icon.
func Assets() embed.FS { return assets }

// Views make pages whose links begin with a folder.
type Views struct{ templates *template.Template }

// New returns views for pages in a folder.
func New(folder string) Views {
	functions := template.FuncMap{
		"at":      func(path string) string { return folder + path },
		"job":     jobPath,
		"line":    printing.OneLine,
		"text":    printing.WithoutControls,
		"means":   explain.Means,
		"word":    func(word any) string { return strings.ToLower(fmt.Sprint(word)) },
		"when":    stamp,
		"ago":     ago,
		"nothing": explain.NothingWrong,
		"number":  number,
		"grouped": grouped,
	}
	return Views{template.Must(template.New("").Funcs(functions).ParseFS(files, "*.html"))}
}

// Write writes a page.
func (v Views) Write(out io.Writer, p Page) error {
	return v.templates.ExecuteTemplate(out, "page.html", p)
}

// WriteMain writes what changes of a page.
func (v Views) WriteMain(out io.Writer, p Page) error {
	return v.templates.ExecuteTemplate(out, "main", p)
}

// jobPath is the page of some work.
func jobPath(kind, namespace, name string) string {
	return "/job/" + url.PathEscape(namespace) + "/" + url.PathEscape(strings.ToLower(kind)) + "/" + url.PathEscape(name)
}

// moment is a time that may be missing.
func moment(at any) time.Time {
	switch at := at.(type) {
	case time.Time:
		return at
	case metav1.Time:
		return at.Time
	case *metav1.Time:
		if at != nil {
			return at.Time
		}
	}
	return time.Time{}
}

func stamp(at any) string {
	if m := moment(at); !m.IsZero() {
		return m.UTC().Format(time.RFC3339)
	}
	return ""
}

func ago(at any, now time.Time) string {
	if m := moment(at); !m.IsZero() {
		return duration.HumanDuration(max(0, now.Sub(m))) // the clocks of two machines differ
	}
	return ""
}

func number(n *int64) any {
	if n == nil {
		return ""
	}
	return *n
}
