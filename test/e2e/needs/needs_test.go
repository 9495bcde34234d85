// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAStoryIsToldWhereItsNeedsAreMet(t *testing.T) {
	all := Cluster{
		Kinds: map[string]bool{"PyTorchJob": true, "PodGroup": true, "RayCluster": true}, Simulated: make([]string, 10),
		Workload: Image{There: true}, Training: Image{There: true},
	}
	but := func(change func(*Cluster)) Cluster {
		c := all
		change(&c)
		return c
	}
	own := func(c *Cluster) { c.Own = true }
	for name, c := range map[string]struct {
		cluster Cluster
		wanted  []Need
		want    Verdict
	}{
		"somebody else's cluster that has everything": {all, []Need{Pods, TrainingPods, SimulatedNodes, PyTorchJobs, Gangs, RayClusters}, Verdict{}},
		"our own cluster":                {but(own), []Need{Pods, Machine}, Verdict{}},
		"nodes do not have the image":    {but(func(c *Cluster) { c.Workload.There = false }), []Need{Pods}, Verdict{Why: "not applicable: needs pods that run the image of test/workload (E2E_WORKLOAD_IMAGE)"}},
		"two needs are not met":          {but(func(c *Cluster) { c.Kinds, c.Simulated = nil, nil }), []Need{SimulatedNodes, RayClusters}, Verdict{Why: "not applicable: needs 10 simulated nodes with 8 GPUs each, and KubeRay"}},
		"one simulated node too many":    {but(func(c *Cluster) { c.Simulated = make([]string, 11) }), []Need{SimulatedNodes}, Verdict{Why: "not applicable: needs 10 simulated nodes with 8 GPUs each"}},
		"the machine is somebody else's": {all, []Need{Machine}, Verdict{Why: "not applicable: needs the machine that the cluster runs on"}},
		"our own cluster lacks something": {but(func(c *Cluster) { c.Own, c.Simulated = true, nil }), []Need{SimulatedNodes},
			Verdict{Why: "not applicable: needs 10 simulated nodes with 8 GPUs each", Wrong: true}},
		"a story that says nothing": {all, nil, Verdict{Why: "a story has to say what it needs of a cluster", Wrong: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, new(Report).Judge(c.cluster, "TestX", c.wanted...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheReportCountsStories(t *testing.T) {
	lacks := Cluster{Workload: Image{There: true}}
	for name, c := range map[string]struct {
		judge []string // names of stories; those with a capital letter need something that is missing
		want  string
		empty bool
	}{
		"none was asked for":        {nil, "0 stories were told", false},
		"all were told":             {[]string{"a", "b"}, "2 stories were told", false},
		"one was told by two teams": {[]string{"a", "a"}, "1 story was told", false},
		"two were not applicable": {[]string{"a", "B", "B", "C"}, "1 story was told, 2 were not applicable to this cluster:\n" +
			"  B: not applicable: needs KubeRay\n  C: not applicable: needs KubeRay", false},
		"none could be told": {[]string{"B"}, "0 stories were told, 1 was not applicable to this cluster:\n  B: not applicable: needs KubeRay", true},
	} {
		t.Run(name, func(t *testing.T) {
			var r Report
			for _, story := range c.judge {
				wanted := Pods
				if story == strings.ToUpper(story) {
					wanted = RayClusters
				}
				r.Judge(lacks, story, wanted)
			}
			if r.String() != c.want || r.Empty() != c.empty {
				t.Errorf("got %q, empty %t", r.String(), r.Empty())
			}
		})
	}
}
