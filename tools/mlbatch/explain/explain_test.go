// SPDX-License-Identifier: Apache-2.0

package explain_test

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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/mlbatch/explain"
)

var now = time.Date(2026, 11, 22, 10, 30, 0, 0, time.UTC)

// read makes objects of a file with many documents. Kind Scene has what are no objects.
func read(t *testing.T, in []byte) explain.Objects {
	t.Helper()
	o := explain.Objects{Now: now}
	for _, doc := range bytes.Split(in, []byte("---\n")) {
		into, keep := target(t, &o, doc)
		if err := yaml.UnmarshalStrict(doc, into); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		keep()
	}
	return o
}

type scene struct {
	Kind     string            `json:"kind"`
	Absent   map[string]string `json:"absent"`
	Unread   []string          `json:"unread"`
	Position *explain.Position `json:"position"`
}

func target(t *testing.T, o *explain.Objects, doc []byte) (any, func()) {
	t.Helper()
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(doc, &head); err != nil {
		t.Fatal(err)
	}
	switch head.Kind {
	case "AppWrapper":
		return target1(&o.AppWrapper)
	case "Run":
		return target1(&o.Run)
	case "Workload":
		return target1(&o.Workload)
	case "LocalQueue":
		return target1(&o.LocalQueue)
	case "ClusterQueue":
		return targetN(&o.ClusterQueues)
	case "Pod":
		return targetN(&o.Pods)
	case "Event":
		return targetN(&o.Events)
	case "Scene":
		s := &scene{}
		return s, func() { o.Absent, o.Unread, o.Position = s.Absent, s.Unread, s.Position }
	}
	o.Job = &unstructured.Unstructured{}
	return &o.Job.Object, func() {}
}

func target1[T any](into **T) (any, func()) {
	*into = new(T)
	return *into, func() {}
}

func targetN[T any](into *[]T) (any, func()) {
	one := new(T)
	return one, func() { *into = append(*into, *one) }
}

func TestScenes(t *testing.T) {
	golden.Pairs(t, "testdata", func(t *testing.T, in []byte) []byte {
		o := read(t, in)
		e := explain.Explain(o)
		evident(t, o, e)
		data, err := yaml.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Appendf(data, "---\n%s", explain.Text(e, now))
	})
}

// Every cause of the catalogue is the answer to a scene, and there are no others.
func TestEveryCauseHasAScene(t *testing.T) {
	files, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[explain.Code]bool{}
	for _, file := range files {
		in, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range explain.Explain(read(t, in)).Causes {
			found[c.Code] = true
		}
	}
	for _, entry := range explain.Catalogue {
		if !found[entry.Code] {
			t.Errorf("no scene in testdata has the cause %s", entry.Code)
		}
		delete(found, entry.Code)
	}
	if len(found) > 0 {
		t.Errorf("not in the catalogue: %v", found)
	}
}

// evident fails the test unless each cause has evidence that is in the objects.
func evident(t interface{ Errorf(string, ...any) }, o explain.Objects, e explain.Explanation) {
	data, _ := json.Marshal(o)
	objects := string(data)
	for _, c := range e.Causes {
		if c.Means == "" || c.Remedy == "" || len(c.Evidence) == 0 {
			t.Errorf("cause %s has no meaning, remedy or evidence: %+v", c.Code, c)
		}
		for _, evidence := range c.Evidence {
			kind, name, _ := strings.Cut(evidence.Object, " ")
			if wanted, looked := o.Absent[kind]; evidence.Field == "" && looked && wanted == name {
				continue
			}
			if evidence.Field == "status.resourceRequests, spec.resourceGroups" && o.Workload != nil && len(o.ClusterQueues) > 0 {
				continue // computed from both
			}
			quoted, _ := json.Marshal(evidence.Value)
			if value := strings.Trim(string(quoted), `"`); value == "" || !strings.Contains(objects, value) {
				t.Errorf("cause %s: no object has %q", c.Code, evidence.Value)
			}
			if last := evidence.Object[strings.LastIndex(evidence.Object, " ")+1:]; last != "" && !strings.Contains(objects, `"`+last+`"`) {
				t.Errorf("cause %s: there is no %s", c.Code, evidence.Object)
			}
		}
	}
}

// The page lists all causes.
func TestThePageListsTheCauses(t *testing.T) {
	var table strings.Builder
	table.WriteString("\n| cause | what it means | what you can do | where it is seen |\n|---|---|---|---|\n")
	var codes []string
	for _, e := range explain.Catalogue {
		if slices.Contains(codes, string(e.Code)) {
			t.Errorf("%s is there twice", e.Code)
		}
		codes = append(codes, string(e.Code))
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", e.Code, e.Means, e.Remedy, e.Evidence)
	}
	golden.Between(t, "../../../docs/why.md", "<!-- causes -->\n", "\n<!-- end of causes -->", table.String())
}

func TestTextHasNoControlCharacters(t *testing.T) {
	o := explain.Objects{Now: now, AppWrapper: &v1beta2.AppWrapper{}, Unread: []string{"a\x1b[31m"}}
	o.Pods = []corev1.Pod{{Status: corev1.PodStatus{Reason: "Evicted", Message: "b\x1b[2J\nc"}}}
	if text := explain.Text(explain.Explain(o), now); strings.Contains(text, "\x1b") || !strings.Contains(text, "b [2J c") {
		t.Errorf("got %q", text)
	}
}
