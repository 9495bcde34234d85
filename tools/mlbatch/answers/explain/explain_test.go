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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/test/recording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// now is when every scene plays.
var now = recording.Now

func read(t *testing.T, in []byte) explain.Objects {
	t.Helper()
	o, err := recording.Read(in)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestScenes(t *testing.T) {
	golden.Pairs(t, "testdata", func(t *testing.T, in []byte) []byte {
		if !bytes.HasPrefix(in, []byte("# Constructed: ")) {
			t.Error("the first line does not say that the scene is constructed")
		}
		_, text := answer(t, in)
		return text
	})
}

// answer is what mlbatch why says of a scene.
func answer(t *testing.T, in []byte) (explain.Explanation, []byte) {
	t.Helper()
	o := read(t, in)
	e := explain.Explain(o)
	evident(t, o, e)
	data, err := yaml.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return e, fmt.Appendf(data, "---\n%s", explain.Text(e, now))
}

// Every cause of the catalogue is the answer to a constructed scene, and there are no others.
func TestEveryCauseHasAScene(t *testing.T) {
	found := answered(t, "testdata")
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

// answered are all causes of the scenes in a folder.
func answered(t *testing.T, folder string) map[explain.Code]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.in.yaml"))
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
	return found
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

// The page lists all causes, and says which of them were seen on a cluster.
func TestThePageListsTheCauses(t *testing.T) {
	recorded := answered(t, "testdata/recorded")
	var table strings.Builder
	table.WriteString("# All causes of `mlbatch why`\n\n<!-- Written by go test ./tools/mlbatch/answers/explain -update -->\n")
	fmt.Fprintf(&table, "\n%d of these %d causes are recorded.\n", len(recorded), len(explain.Catalogue))
	table.WriteString("\n| cause | what it means | what you can do | where it is seen | scene |\n|---|---|---|---|---|\n")
	var codes []string
	for _, e := range explain.Catalogue {
		if slices.Contains(codes, string(e.Code)) {
			t.Errorf("%s is there twice", e.Code)
		}
		codes = append(codes, string(e.Code))
		scene := "constructed"
		if recorded[e.Code] {
			scene = "recorded"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", e.Code, e.Means, e.Remedy, e.Evidence, scene)
	}
	golden.Compare(t, "testdata/causes.md", []byte(table.String()))
}

// The page begins with answers.
func TestThePageShowsAnswers(t *testing.T) {
	var shown strings.Builder
	for _, scene := range []struct{ about, file string }{
		{"Others use the quota", "testdata/recorded/QuotaLent"},
		{"A pod is larger than any node, which a member may not list", "testdata/a pod of a member fits no node"},
		{"The command is misspelt", "testdata/a command is not in the image"},
	} {
		content, err := os.ReadFile(scene.file + ".out.yaml")
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(string(content), "\n---\n")
		fmt.Fprintf(&shown, "\n%s:\n\n```text\n%s```\n", scene.about, text)
	}
	golden.Between(t, "../../../../docs/why.md", "<!-- answers: written by go test ./tools/mlbatch/answers/explain -update -->\n", "\n<!-- end of answers -->", shown.String())
}

// What people read is the beginning and the end of what was written, or parts of it in their order.
func TestFoldingOnlyLeavesOut(t *testing.T) {
	for code, message := range map[string]string{
		"Preemption is not helpful": "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling., PodGroup a/b gets rejected",
		"victims":                   "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.",
	} {
		pod := corev1.Pod{}
		pod.Name, pod.Status.Phase = "p", corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message}}
		text := explain.Text(explain.Explain(explain.Objects{Now: now, AppWrapper: &v1beta2.AppWrapper{}, Pods: []corev1.Pod{pod}}), now)
		_, line, _ := strings.Cut(text, "Unschedulable: ")
		line, _, _ = strings.Cut(line, "\n")
		if strings.Contains(text, code) || !strings.Contains(line, "[…]") {
			t.Errorf("%q is not folded", line)
		}
		rest := message
		for _, part := range strings.Split(line, "[…]") {
			before, after, found := strings.Cut(rest, strings.TrimSpace(part))
			if rest = after; !found {
				t.Errorf("%q is not in %q after %q", part, message, before)
			}
		}
	}
}

func TestTextHasNoControlCharacters(t *testing.T) {
	o := explain.Objects{Now: now, AppWrapper: &v1beta2.AppWrapper{}, Unread: []string{"a\x1b[31m"}}
	o.Pods = []corev1.Pod{{Status: corev1.PodStatus{Reason: "Evicted", Message: "b\x1b[2J\nc"}}}
	if text := explain.Text(explain.Explain(o), now); strings.Contains(text, "\x1b") || !strings.Contains(text, "b [2J c") {
		t.Errorf("got %q", text)
	}
}
