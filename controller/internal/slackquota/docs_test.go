// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

// events are what happens in the table of docs/slack-queue.md.
var events = map[string]func(nodes map[string]*corev1.Node){
	"all nodes are healthy":                      func(map[string]*corev1.Node) {},
	"`gpu-0` is cordoned":                        func(n map[string]*corev1.Node) { n["gpu-0"].Spec.Unschedulable = true },
	"a GPU of `gpu-1` breaks: 7 are allocatable": func(n map[string]*corev1.Node) { allocatable(7)(n["gpu-1"]) },
	"Autopilot labels `gpu-1` with EVICT":        func(n map[string]*corev1.Node) { n["gpu-1"].Labels[healthLabel] = "EVICT" },
	"`gpu-2` is not ready":                       func(n map[string]*corev1.Node) { taint(corev1.TaintNodeNotReady, "NoSchedule")(n["gpu-2"]) },
	"`gpu-0` is uncordoned":                      func(n map[string]*corev1.Node) { n["gpu-0"].Spec.Unschedulable = false },
	"`gpu-1` boots with 7 GPUs, without the label": func(n map[string]*corev1.Node) {
		delete(n["gpu-1"].Labels, healthLabel)
		n["gpu-1"].Status.Capacity[gpu] = count(7)
	},
	"`gpu-2` is ready again":         func(n map[string]*corev1.Node) { n["gpu-2"].Spec.Taints = nil },
	"the GPU of `gpu-1` is replaced": func(n map[string]*corev1.Node) { n["gpu-1"].Status = nodeOf("gpu-1", 8).Status },
}

func TestTheNumbersOfTheDocumentationAreTrue(t *testing.T) {
	text, err := os.ReadFile("../../../docs/slack-queue.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	values, _, _ := strings.Cut(rest, "```")
	_, rest, found := strings.Cut(rest, "|---|---|---|---|\n")
	table, _, _ := strings.Cut(rest, "\n\n")
	rows := strings.Split(table, "\n")
	if !found || len(rows) != len(events) {
		t.Fatalf("the table has %d rows, want %d", len(rows), len(events))
	}
	var teams struct {
		SlackQueues []struct {
			Name, Cohort string
			Quota        map[kueue.ResourceFlavorReference]corev1.ResourceList
		}
	}
	if err := yaml.UnmarshalStrict([]byte(values), &teams); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, "0")
	c.queue = slackQueue(group("h100", teams.SlackQueues[0].Quota["h100"]))
	c.flavors = []kueue.ResourceFlavor{flavorOf("h100", nil)}
	for i := range 10 {
		name := fmt.Sprintf("gpu-%d", i)
		c.nodes[name] = nodeOf(name, 8)
	}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		happens, known := events[cells[0]]
		if !known {
			t.Fatalf("nobody knows %q", cells[0])
		}
		happens(c.nodes)
		c.settle()
		nodes := c.all()
		missing := Find(c.rules, c.flavors, nodes, Parse(c.stored).Learn(nodes))["h100"][gpu]
		if got := missing.String(); got != cells[1] {
			t.Errorf("%s: %s GPUs are missing, want %s", cells[0], got, cells[1])
		}
		for i, name := range []corev1.ResourceName{gpu, corev1.ResourceCPU} {
			c.lends("h100", name, strings.Replace(cells[2+i], "no limit", "", 1))
		}
	}
}
