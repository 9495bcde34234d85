// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/top"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
	"github.com/mlbatch/mlbatch/tools/mlbatch/images"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamsdiff"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamsfile"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// promised are the answers of testdata/answers.md: their kinds, the commands that print them, and their Go types.
var promised = []struct {
	kind, commands string
	answer         any
}{
	{"WorkList", "list", work.Overview{}},
	{"WorkStatus", "status", printing.Items[work.Report]{}},
	{"Explanation", "why", printing.Items[explain.Explanation]{}},
	{"QuotaOverview", "top", top.Answer{}},
	{"QuotaOverview", "top --by=queue", top.Items[top.Queue]{}},
	{"QuotaOverview", "top --by=node", top.Items[top.Node]{}},
	{"QuotaOverview", "top --by=flavor", top.Items[top.Flavor]{}},
	{"Usage", "usage", usage.Report{}},
	{"WorkQueue", "queue ls", runs.QueueAnswer{}},
	{"TeamList", "team list", teamsfile.Answer{}},
	{"Team", "team show", printing.Items[teamsfile.Team]{}},
	{"SlackQueue", "team show", printing.Items[teamsfile.SlackQueue]{}},
	{"TeamChange", "team add, team set, team remove", teamResult{}},
	{"TeamDiff", "team diff", teamsdiff.Report{}},
	{"Check", "check", checkup.Report{}},
	{"Audit", "audit", audit.Report{}},
	{"AuditChange", "audit --watch", auditChange{}},
	{"ComponentList", "components", printing.Items[install.Component]{}},
	{"ImageList", "images", printing.Items[images.Image]{}},
}

// manifests are printed by these commands: objects of Kubernetes, and no answer.
var manifestCommands = []string{"mlbatch run plan", "mlbatch pack"}

// A command that prints for programs is on the page.
func TestEveryCommandWithOutputIsPromised(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		has := cmd.Flags().Lookup("output") != nil && !cmd.Hidden // an old spelling answers like the new one
		line := strings.TrimPrefix(cmd.CommandPath(), "mlbatch ")
		onPage := slices.ContainsFunc(promised, func(row struct {
			kind, commands string
			answer         any
		}) bool {
			return slices.Contains(strings.Split(row.commands, ", "), line)
		})
		if has && onPage == slices.Contains(manifestCommands, cmd.CommandPath()) {
			t.Errorf("%s has --output: add its answer to promised", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	root := rootCommand("")
	root.Use = "mlbatch"
	walk(root)
}

func TestThePageOfOutputHasAllFields(t *testing.T) {
	page := strings.Builder{}
	page.WriteString("# Fields of the answers\n\n<!-- Written by go test ./tools/mlbatch -run TestThePageOfOutput -update -->\n\n" +
		"What they mean for a program, and what stays: [output for programs](../../../docs/output.md).\n")
	for _, row := range promised {
		fmt.Fprintf(&page, "\n## %s: `mlbatch %s`\n\n| field | type | |\n|---|---|---|\n", row.kind, strings.ReplaceAll(row.commands, ", ", "`, `mlbatch "))
		w := walker{visit: func(path, kind, about string) { fmt.Fprintf(&page, "| `%s` | %s | %s |\n", path, kind, about) }}
		w.fields(t, reflect.TypeOf(row.answer), "")
	}
	golden.Compare(t, "testdata/answers.md", []byte(page.String()))
}

// What commands print has the shape, and the fields that are promised.
func TestAnswersKeepTheirPromise(t *testing.T) {
	research := " --file=" + filepath.Join("testdata", "team", "research.yaml")
	slack := " --file=" + filepath.Join("..", "..", "charts", "testdata", "teams", "slack-queues.in.yaml")
	for line, world := range map[string]map[string]string{
		"list": crowded(), "status train7": busyNamespace(), "why train7": busyNamespace(),
		"top": teams(), "top --by=queue": teams(), "top --by=node": teams(), "top --by=flavor": teams(),
		"usage": used(), "usage --by=cause": used(), "check": soundWorld(t),
		"team list" + research: nil, "team list" + slack: nil, "team show vision" + research: nil, "team show slack-of-products" + slack: nil,
		"team set vision h100:nvidia.com/gpu=40 --dry-run" + research: nil, "team diff" + research: applied(t, twoTeams),
	} {
		t.Run(line, func(t *testing.T) {
			run := func(format string) (out string, err error) {
				if world == nil {
					out, _, err = command(t, strings.Fields(line+" -o "+format)...)
					return out, err
				}
				out, _, _, err = ask(t, world, line+" -o "+format)
				return out, err
			}
			asJSON, err := run("json")
			if err != nil && !errors.Is(err, somethingFound) {
				t.Fatal(err)
			}
			asYAML, _ := run("yaml")
			if same, err := yaml.YAMLToJSON([]byte(asYAML)); err != nil || keysOf(t, same) != keysOf(t, []byte(asJSON)) {
				t.Errorf("YAML and JSON have other fields: %v\n%s%s", err, asYAML, asJSON)
			}
			keepsPromise(t, line, []byte(asJSON))
		})
	}
}

// Those that no test here has a cluster for are printed by the same flag.
func TestAnswersOfOtherCommandsKeepTheirPromise(t *testing.T) {
	for line, answer := range map[string]any{
		"components": printing.Items[install.Component]{Items: []install.Component{{Name: "kueue"}}},
		"queue ls":   runs.ForPrograms(queue.Stat{Tasks: []queue.Task{{}}}),
		"images":     printing.Items[images.Image]{Items: []images.Image{{Part: "kueue"}}},
		"audit":      audit.Report{Namespaces: []string{}, LookedAt: map[string]int{"pods": 1}}, "audit --watch": auditChange{},
	} {
		i := slices.IndexFunc(promised, func(row struct {
			kind, commands string
			answer         any
		}) bool {
			return row.commands == line
		})
		var out bytes.Buffer
		if err := (&output{format: "json"}).print(&out, promised[i].kind, answer, nil); err != nil {
			t.Fatal(err)
		}
		keepsPromise(t, line, out.Bytes())
	}
}

// keepsPromise compares an answer with what is promised of the longest command that the line begins with.
func keepsPromise(t *testing.T, line string, answer []byte) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	if _, isList := got["items"].([]any); got["apiVersion"] != "mlbatch.dev/v1" || !isList && line != "audit" && line != "audit --watch" {
		t.Errorf("the answer has not the shape: %.300s", answer)
	}
	best := ""
	for _, row := range promised {
		for command := range strings.SplitSeq(row.commands, ", ") {
			if strings.HasPrefix(line, command) && len(command) >= len(best) && row.kind == got["kind"] {
				best = command
			}
		}
	}
	for _, row := range promised {
		if row.kind == got["kind"] && slices.Contains(strings.Split(row.commands, ", "), best) {
			delete(got, "apiVersion")
			delete(got, "kind")
			compare(t, reflect.TypeOf(row.answer), got, row.kind)
			return
		}
	}
	t.Errorf("no answer of the kind %v is promised of %s", got["kind"], line)
}

// compare finds fields that are not promised, and promised ones that are not there.
func compare(t *testing.T, kind reflect.Type, value any, path string) {
	t.Helper()
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch {
	case value == nil, leaf(kind) != "":
	case kind.Kind() == reflect.Slice:
		for _, item := range value.([]any) {
			compare(t, kind.Elem(), item, path+"[]")
		}
	case kind.Kind() == reflect.Map:
		for _, item := range value.(map[string]any) {
			compare(t, kind.Elem(), item, path+".*")
		}
	default:
		has := maps.Clone(value.(map[string]any))
		for _, f := range fieldsOf(kind) {
			item, there := has[f.name]
			if !there && !f.optional {
				t.Errorf("%s.%s is promised, and missing", path, f.name)
			}
			if there {
				compare(t, f.kind, item, path+"."+f.name)
			}
			delete(has, f.name)
		}
		for name := range has {
			t.Errorf("%s.%s is not promised", path, name)
		}
	}
}

type field struct {
	name, goName string
	owner, kind  reflect.Type
	optional     bool
}

// fieldsOf are those that encoding/json takes.
func fieldsOf(kind reflect.Type) (all []field) {
	for i := range kind.NumField() {
		f := kind.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-", !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "":
			all = append(all, fieldsOf(f.Type)...)
		default:
			all = append(all, field{name, f.Name, kind, f.Type, strings.Contains(options, "omitempty")})
		}
	}
	return all
}

// leaf names the type of a value without fields.
func leaf(kind reflect.Type) string {
	switch kind {
	case reflect.TypeFor[v1alpha1.Run]():
		return "[Run](../../../docs/api/codeflare.md)"
	case reflect.TypeFor[time.Time](), reflect.TypeFor[metav1.Time]():
		return "time"
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[teamsfile.Amount]():
		return "quantity"
	}
	switch kind.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		return "number"
	}
	if kind.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || kind.Implements(reflect.TypeFor[json.Marshaler]()) {
		return "unknown type " + kind.String()
	}
	return ""
}

// walker visits the fields of a type.
type walker struct {
	visit func(path, kind, about string)
}

func (w walker) fields(t *testing.T, kind reflect.Type, path string) {
	for _, f := range fieldsOf(kind) {
		name, in := path+f.name, f.kind
		for in.Kind() == reflect.Pointer || in.Kind() == reflect.Slice || in.Kind() == reflect.Map {
			switch in.Kind() {
			case reflect.Slice:
				name += "[]"
			case reflect.Map:
				name += ".*"
			}
			in = in.Elem()
		}
		what := leaf(in)
		if what == "" {
			what = "object"
		}
		if f.optional {
			what += ", optional"
		}
		if comment := about(t, f.owner, f.goName); what != "object" || comment != "" {
			w.visit(name, what, comment)
		}
		if leaf(in) == "" {
			w.fields(t, in, name+".")
		}
	}
}

// about is the comment of a field in the source.
func about(t *testing.T, owner reflect.Type, name string) string {
	t.Helper()
	folder := strings.TrimPrefix(owner.PkgPath(), "github.com/mlbatch/mlbatch/")
	if owner.PkgPath() == "main" {
		folder = "tools/mlbatch"
	}
	kind, _, _ := strings.Cut(owner.Name(), "[")
	return commentsIn(t, filepath.Join("../..", folder))[kind+"."+name]
}

var commented = map[string]map[string]string{}

func commentsIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	if commented[folder] != nil {
		return commented[folder]
	}
	found := map[string]string{}
	commented[folder] = found
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source in %s: %v", folder, err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, is := n.(*ast.TypeSpec)
			if !is {
				return true
			}
			if fields, is := spec.Type.(*ast.StructType); is {
				for _, f := range fields.Fields.List {
					for _, name := range f.Names {
						found[spec.Name.Name+"."+name.Name] = oneParagraph(f.Doc)
					}
				}
			}
			return false
		})
	}
	return found
}

// oneParagraph is a comment without markers, which stand in lines of their own.
func oneParagraph(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(doc.Text()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "+") {
			lines = append(lines, line)
		}
	}
	return strings.ReplaceAll(strings.Join(lines, " "), "|", "\\|")
}

func keysOf(t *testing.T, text []byte) string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return strings.Join(slices.Sorted(maps.Keys(object)), " ")
}
