// SPDX-License-Identifier: Apache-2.0

// Package needs answers: can this story be told on that cluster? On our own local
// cluster all stories can. One of somebody else's may lack what a story needs,
// which is then reported and not passed over.
package needs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// Cluster is what is known of a cluster when stories begin.
type Cluster struct {
	// Own is true for the local cluster that the run has made.
	Own bool
	// Kinds are the kinds of the platform's optional parts that are there.
	Kinds map[string]bool
	// Simulated are the names of its simulated nodes with 8 GPUs.
	Simulated []string
	// Workload is the image of test/workload, Training that of samples/pytorch-digits,
	// and Ray that of tools/artifacts/components/ray.
	Workload, Training, Ray Image
}

// Image is one that pods of stories run.
type Image struct {
	Name string
	// There is true if nodes have it or can pull it.
	There bool
}

// Need is what a story needs and a cluster may lack.
type Need struct {
	what string
	met  func(Cluster) bool
}

// All that stories need so far. A story that runs a kind needs its operator.
var (
	Pods = Need{
		"pods that run the image of test/workload (" + WorkloadVariable + ")",
		func(c Cluster) bool { return c.Workload.There },
	}
	TrainingPods = Need{
		"pods that run the image of samples/pytorch-digits (" + TrainingVariable + ")",
		func(c Cluster) bool { return c.Training.There },
	}
	SimulatedNodes = Need{
		fmt.Sprintf("%d simulated nodes with 8 GPUs each", localcluster.DefaultSimulatedNodes),
		func(c Cluster) bool { return len(c.Simulated) == localcluster.DefaultSimulatedNodes },
	}
	PyTorchJobs      = kind("PyTorchJob", "the training operator")
	Gangs            = kind("PodGroup", "the Coscheduler")
	RayClusters      = kind("RayCluster", "KubeRay")
	LeaderWorkerSets = kind("LeaderWorkerSet", "the LeaderWorkerSet controller")
	RayPods          = Need{
		"pods that run the image of tools/artifacts/components/ray (" + RayVariable + ")",
		func(c Cluster) bool { return c.Ray.There },
	}
	EveryKind = Need{
		"every operator, and the kinds of test/e2e/testdata",
		func(c Cluster) bool {
			for _, kind := range optional {
				if !c.Kinds[kind.Kind] {
					return false
				}
			}
			return true
		},
	}
	Machine = Need{"the machine that the cluster runs on", func(c Cluster) bool { return c.Own }}
)

func kind(name, part string) Need {
	return Need{part, func(c Cluster) bool { return c.Kinds[name] }}
}

// Report knows what became of stories.
type Report struct {
	// told are names, and impossible names with why: one story may judge twice.
	told, impossible []string
}

// Verdict is whether a story is told.
type Verdict struct {
	// Why is empty if the story is told; else it says what is missing.
	Why string
	// Wrong is true if the story had to be told: it is a failure that it is not.
	Wrong bool
}

// Judge decides on a story and takes it down.
func (r *Report) Judge(c Cluster, story string, wanted ...Need) Verdict {
	if len(wanted) == 0 {
		return Verdict{Why: "a story has to say what it needs of a cluster", Wrong: true}
	}
	var missing []string
	for _, n := range wanted {
		if !n.met(c) {
			missing = append(missing, n.what)
		}
	}
	if len(missing) == 0 {
		r.told = add(r.told, story)
		return Verdict{}
	}
	why := "not applicable: needs " + strings.Join(missing, ", and ")
	r.impossible = add(r.impossible, story+": "+why)
	return Verdict{Why: why, Wrong: c.Own}
}

func add(list []string, item string) []string {
	if slices.Contains(list, item) {
		return list
	}
	return append(list, item)
}

// String is the report as it is printed at the end of a run.
func (r *Report) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s told", count(len(r.told), "story was", "stories were"))
	if len(r.impossible) == 0 {
		return out.String()
	}
	fmt.Fprintf(&out, ", %s not applicable to this cluster:", count(len(r.impossible), "was", "were"))
	for _, story := range r.impossible {
		out.WriteString("\n  " + story)
	}
	return out.String()
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Empty is true if stories were asked for and none could be told: such a run has
// shown nothing.
func (r *Report) Empty() bool { return len(r.told) == 0 && len(r.impossible) > 0 }
