// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"strings"
	"testing"
)

// questionOfStranded is what the dashboard asks.
func questionOfStranded(t *testing.T) string {
	t.Helper()
	for _, p := range panels(t) {
		if p.Title == "Stranded" {
			return p.Targets[0].Expr
		}
	}
	t.Fatal("the dashboard has no such panel")
	return ""
}

// node has what kube-state-metrics says of a node with 8 GPUs, and of its pods.
func node(name string, cordoned int, pods ...string) string {
	of := fmt.Sprintf(`kube_node_status_allocatable{node=%[1]q,resource="nvidia_com_gpu",unit="integer"} 8x15
kube_node_status_allocatable{node=%[1]q,resource="pods",unit="integer"} 110x15
kube_node_status_allocatable{node=%[1]q,resource="memory",unit="byte"} 1000x15
kube_node_spec_unschedulable{node=%[1]q} %[2]dx15`, name, cordoned)
	return strings.ReplaceAll(strings.Join(append([]string{of}, pods...), "\n"), "NODE", name)
}

// pod has two containers, of which one requests GPUs.
func pod(name string, gpus int, running, done int) string {
	return fmt.Sprintf(`kube_pod_container_resource_requests{namespace="blue",pod=%[1]q,container="main",node="NODE",resource="nvidia_com_gpu",unit="integer"} %[2]dx15
kube_pod_container_resource_requests{namespace="blue",pod=%[1]q,container="main",node="NODE",resource="memory",unit="byte"} 10x15
kube_pod_container_resource_requests{namespace="blue",pod=%[1]q,container="side",node="NODE",resource="nvidia_com_gpu",unit="integer"} 0x15
kube_pod_status_phase{namespace="blue",pod=%[1]q,phase="Running"} %[3]dx15
kube_pod_status_phase{namespace="blue",pod=%[1]q,phase="Pending"} 0x15
kube_pod_status_phase{namespace="blue",pod=%[1]q,phase="Succeeded"} %[4]dx15`, name, gpus, running, done)
}

func TestWhatIsStranded(t *testing.T) {
	for sentence, tc := range map[string]struct {
		series []string
		want   float64
		shown  bool
	}{
		"all nodes are free":                 {[]string{node("a", 0), node("b", 0)}, 0, false},
		"a node is full":                     {[]string{node("a", 0, pod("p", 8, 1, 0)), node("b", 0)}, 0, true},
		"two are partly used":                {[]string{node("a", 0, pod("p", 5, 1, 0)), node("b", 0, pod("q", 2, 1, 0), pod("r", 1, 1, 0))}, 3 + 5, true},
		"a pod that has ended uses nothing":  {[]string{node("a", 0, pod("p", 5, 0, 1), pod("q", 6, 1, 0))}, 2, true},
		"nor does one that requests nothing": {[]string{node("a", 0, pod("p", 0, 1, 0))}, 0, false},
		"a cordoned node has nothing to use": {[]string{node("a", 1, pod("p", 5, 1, 0)), node("b", 0, pod("q", 7, 1, 0))}, 1, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			found := evaluated(t, questionOfStranded(t), strings.Join(tc.series, "\n"))
			if tc.shown != (len(found) == 1) {
				t.Fatalf("it shows %v", found)
			}
			if tc.shown && (found[0].F != tc.want || found[0].Metric.Get("resource") != "nvidia_com_gpu") {
				t.Errorf("it shows %v, want %v", found, tc.want)
			}
		})
	}
}
