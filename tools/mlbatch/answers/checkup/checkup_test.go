// SPDX-License-Identifier: Apache-2.0

package checkup_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
)

var now = time.Date(2026, 11, 22, 10, 30, 0, 0, time.UTC)

// scene has what are no objects.
type scene struct {
	Kind          string                  `json:"kind"`
	Kueue         *checkup.Kueue          `json:"kueue"`
	Install       checkup.Install         `json:"install"`
	Definitions   []checkup.Definition    `json:"definitions"`
	Controller    string                  `json:"controller"`
	DeclaredSlack []string                `json:"declaredSlack"`
	Unread        map[checkup.Kind]string `json:"unread"`
}

func none() checkup.Objects {
	release := setup.Versions{Version: "1.0.0", ImageRepository: "r", Platform: setup.Platform{
		"kueue": {Image: "r/kueue:v0.19.2"}, "coscheduler": {Image: "r/s:v0.34.7", OtherKubernetes: map[string]string{"1.30": "v0.30.12"}},
	}}
	return checkup.Objects{Now: now, Release: release, Signs: nodesigns.Default(), Unread: map[checkup.Kind]string{}}
}

// read makes objects of a file with many documents.
func read(t *testing.T, in []byte) checkup.Objects {
	t.Helper()
	o := none()
	for _, doc := range bytes.Split(in, []byte("---\n")) {
		if err := add(&o, doc, yaml.UnmarshalStrict); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
	}
	return o
}

type decoder func([]byte, any, ...yaml.JSONOpt) error

func add(o *checkup.Objects, doc []byte, decode decoder) error {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return err
	}
	switch head.Kind {
	case "Node":
		return more(&o.Nodes, doc, decode)
	case "Pod":
		return more(&o.Pods, doc, decode)
	case "Namespace":
		return more(&o.Namespaces, doc, decode)
	case "Deployment":
		return more(&o.Deployments, doc, decode)
	case "ClusterQueue":
		return more(&o.ClusterQueues, doc, decode)
	case "Cohort":
		return more(&o.Cohorts, doc, decode)
	case "ResourceFlavor":
		return more(&o.Flavors, doc, decode)
	case "LocalQueue":
		return more(&o.LocalQueues, doc, decode)
	case "Workload":
		return more(&o.Workloads, doc, decode)
	case "AppWrapper":
		return more(&o.AppWrappers, doc, decode)
	case "Scene":
		return scenery(o, doc, decode)
	}
	return fmt.Errorf("unknown kind %q", head.Kind)
}

func more[T any](into *[]T, doc []byte, decode decoder) error {
	one := new(T)
	if err := decode(doc, one); err != nil {
		return err
	}
	*into = append(*into, *one)
	return nil
}

func scenery(o *checkup.Objects, doc []byte, decode decoder) (err error) {
	s := scene{}
	if err := decode(doc, &s); err != nil {
		return err
	}
	o.Kueue, o.Install, o.Definitions, o.DeclaredSlack = s.Kueue, s.Install, s.Definitions, s.DeclaredSlack
	if s.Unread != nil {
		o.Unread = s.Unread
	}
	if s.Controller != "" {
		o.Signs, err = nodesigns.Parse([]byte(s.Controller))
	}
	return err
}

func TestScenes(t *testing.T) {
	golden.Pairs(t, "testdata", func(t *testing.T, in []byte) []byte {
		report := checkup.Find(read(t, in))
		evident(t, report)
		data, err := yaml.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		return data
	})
}

// evident fails the test unless each finding has evidence.
func evident(t interface{ Errorf(string, ...any) }, r checkup.Report) {
	for _, f := range r.Findings {
		if f.Means == "" || f.Next == "" || f.Subject == "" || len(f.Evidence) == 0 {
			t.Errorf("finding %s has no meaning, subject, evidence or next step: %+v", f.Code, f)
		}
		for _, e := range f.Evidence {
			if e.Name == "" || e.Value == "" {
				t.Errorf("finding %s has empty evidence: %+v", f.Code, f)
			}
		}
	}
}

func scenes(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		if all[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Every finding of the catalogue is made in a scene, and there are no others.
func TestEveryFindingHasAScene(t *testing.T) {
	found := map[checkup.Code]bool{}
	for _, in := range scenes(t) {
		for _, f := range checkup.Find(read(t, in)).Findings {
			found[f.Code] = true
		}
	}
	for _, entry := range checkup.Catalogue {
		if !found[entry.Code] {
			t.Errorf("no scene in testdata has the finding %s", entry.Code)
		}
		delete(found, entry.Code)
	}
	if len(found) > 0 {
		t.Errorf("not in the catalogue: %v", found)
	}
}

// A check needs what it looks at: it finds the same if all other kinds are empty. So nothing that
// was not read decides.
func TestAFindingDependsOnlyOnWhatItNeeds(t *testing.T) {
	for file, in := range scenes(t) {
		o := read(t, in)
		all := checkup.Find(o).Findings
		for _, entry := range checkup.Catalogue {
			for _, left := range []checkup.Objects{only(o, entry.Needs), without(o, entry.Needs)} {
				want, got := codes(all, entry.Code), codes(checkup.Find(left).Findings, entry.Code)
				if len(left.Unread) > 0 && slices.ContainsFunc(entry.Needs, func(k checkup.Kind) bool { return left.Unread[k] != "" }) {
					want = nil
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: %s (-want +got)\n%s", file, entry.Code, diff)
				}
			}
		}
	}
}

func codes(all []checkup.Finding, code checkup.Code) (some []checkup.Finding) {
	for _, f := range all {
		if f.Code == code {
			some = append(some, f)
		}
	}
	return some
}

// only has no objects of other kinds. Install says nothing of kinds.
func only(o checkup.Objects, needs []checkup.Kind) checkup.Objects {
	for kind, empty := range map[checkup.Kind]func(){
		checkup.Nodes: func() { o.Nodes = nil }, checkup.Pods: func() { o.Pods = nil }, checkup.Namespaces: func() { o.Namespaces = nil },
		checkup.Deployments: func() { o.Deployments = nil }, checkup.Definitions: func() { o.Definitions = nil },
		checkup.ClusterQueues: func() { o.ClusterQueues = nil }, checkup.Cohorts: func() { o.Cohorts = nil }, checkup.Flavors: func() { o.Flavors = nil },
		checkup.LocalQueues: func() { o.LocalQueues = nil }, checkup.Workloads: func() { o.Workloads = nil }, checkup.AppWrappers: func() { o.AppWrappers = nil },
		checkup.ConfigMaps: func() { o.Kueue, o.Signs = nil, nodesigns.Settings{} },
	} {
		if !slices.Contains(needs, kind) {
			empty()
		}
	}
	return o
}

// without lacks the first kind that is needed.
func without(o checkup.Objects, needs []checkup.Kind) checkup.Objects {
	o.Unread = map[checkup.Kind]string{}
	if len(needs) > 0 {
		o.Unread[needs[0]] = "you may not"
	}
	return o
}

// The page lists all findings.
func TestThePageListsTheFindings(t *testing.T) {
	var table strings.Builder
	table.WriteString("\n| finding | severity | what it means | what you can do | what it needs to read |\n|---|---|---|---|---|\n")
	var known []checkup.Code
	for _, e := range checkup.Catalogue {
		if slices.Contains(known, e.Code) {
			t.Errorf("%s is there twice", e.Code)
		}
		known = append(known, e.Code)
		needs := make([]string, len(e.Needs))
		for i, k := range e.Needs {
			needs[i] = string(k)
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", e.Code, e.Severity, e.Means, e.Next, strings.Join(needs, ", "))
	}
	golden.Between(t, "../../../../docs/check.md", "<!-- findings: written by go test ./tools/mlbatch/answers/checkup -run TestThePage -update -->\n", "\n<!-- end of findings -->", table.String())
}

func TestWorseFindingsComeFirst(t *testing.T) {
	o := none()
	for _, in := range scenes(t) {
		data, _ := json.Marshal(read(t, in).Nodes)
		if err := json.Unmarshal(data, &o.Nodes); err != nil {
			t.Fatal(err)
		}
	}
	o.Install = checkup.Install{Problems: []string{"a"}, Unusual: []string{"b"}}
	r := checkup.Find(o)
	if r.Findings[0].Severity != checkup.Error || !r.Has(checkup.Warning) || !r.Has(checkup.Error) || (checkup.Report{}).Has(checkup.Note) {
		t.Errorf("got %+v", r)
	}
}
