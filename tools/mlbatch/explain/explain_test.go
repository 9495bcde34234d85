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
	"k8s.io/apimachinery/pkg/api/resource"
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
	// Placed are pods of others.
	Placed []corev1.Pod `json:"placed"`
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
	case "Node":
		return targetN(&o.Nodes)
	case "ResourceFlavor":
		return target1(&o.Flavor)
	case "Event":
		return targetN(&o.Events)
	case "Scene":
		s := &scene{}
		return s, func() { o.Absent, o.Unread, o.Position, o.Placed = s.Absent, s.Unread, s.Position, s.Placed }
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
			if want, is := computed(o, evidence); is {
				if evidence.Value != want {
					t.Errorf("cause %s: %s is %s, but %s", c.Code, evidence.Object, want, evidence)
				}
				continue
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

// computed is what evidence has to be that is no value of one object.
func computed(o explain.Objects, e explain.Evidence) (text string, is bool) {
	_, object, _ := strings.Cut(e.Object, " ")
	what, _ := strings.CutPrefix(e.Field[strings.LastIndex(e.Field, " ")+1:], " ")
	name := corev1.ResourceName(what)
	switch strings.TrimSuffix(e.Field, what) {
	case "request of ":
		for i, pod := range o.Pods { // scenes that are mixed have several of the same name
			if sum := requested(o.Pods[i:i+1], name, everyPod); pod.Name == object && (text == "" || text != e.Value) {
				text = sum.String()
			}
		}
		return text, true
	case "free ":
		for _, node := range o.Nodes {
			has := node.Status.Allocatable[name]
			free := has.DeepCopy()
			if free.Sub(requested(o.Placed, name, func(p corev1.Pod) bool { return p.Spec.NodeName == object })); free.Sign() < 0 {
				free = resource.Quantity{}
			}
			if node.Name == object && (text == "" || text != e.Value) {
				text = free.String() + " of " + has.String()
			}
		}
		return text, true
	case "sum of the quota of ":
		sum := promised(o, name)
		return sum.String(), true
	case "sum of what its nodes have of ":
		sum := resource.Quantity{}
		for _, node := range o.Nodes {
			if wanted := o.Flavor.Spec.NodeLabels["gpu"]; wanted == "" || node.Labels["gpu"] == wanted {
				sum.Add(node.Status.Allocatable[name])
			}
		}
		return sum.String(), true
	}
	return "", false
}

func everyPod(corev1.Pod) bool { return true }

func requested(pods []corev1.Pod, name corev1.ResourceName, counts func(corev1.Pod) bool) (sum resource.Quantity) {
	for _, pod := range pods {
		for _, c := range pod.Spec.Containers {
			if counts(pod) {
				sum.Add(c.Resources.Requests[name])
			}
		}
	}
	return sum
}

// promised is the quota of the flavor in all scenes, which have one group of resources.
func promised(o explain.Objects, name corev1.ResourceName) (sum resource.Quantity) {
	for _, q := range o.ClusterQueues {
		for _, group := range q.Spec.ResourceGroups {
			for _, flavor := range group.Flavors {
				for _, r := range flavor.Resources {
					if string(flavor.Name) == o.Flavor.Name && r.Name == name {
						sum.Add(r.NominalQuota)
					}
				}
			}
		}
	}
	return sum
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
