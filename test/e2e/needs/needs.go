// SPDX-License-Identifier: Apache-2.0

// Package needs decides whether a story can run on a cluster. Our own local cluster supports
// all stories. An existing cluster may lack something that a story needs; the report lists such
// stories.
package needs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// Cluster is what is known about a cluster when the stories begin.
type Cluster struct {
	// Own is true if the run has created the cluster.
	Own bool
	// Kinds are the installed kinds of the platform's optional parts.
	Kinds map[string]bool
	// Simulated are the names of the simulated nodes with 8 GPUs.
	Simulated []string
	// Workload is the image of test/workload, Training that of samples/pytorch-digits, and Ray and
	// S3 those of tools/artifacts/components/ray and s3.
	Workload, Training, Ray, S3 Image
}

// Image is an image that stories use.
type Image struct {
	Name string
	// There is true if nodes have it or can pull it.
	There bool
}

// Need is something that a story needs and a cluster may lack.
type Need struct {
	what string
	met  func(Cluster) bool
}

// All needs of the stories. A story that runs a kind needs its operator.
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
	Runs             = kind("Run", "the controller of Runs")
	RayPods          = Need{
		"pods that run the image of tools/artifacts/components/ray (" + RayVariable + ")",
		func(c Cluster) bool { return c.Ray.There },
	}
	Buckets = Need{
		"pods that run the image of tools/artifacts/components/s3 (" + S3Variable + ")",
		func(c Cluster) bool { return c.S3.There },
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

// Report has the results of stories.
type Report struct {
	// told has the names of stories that ran, impossible the names of others with the reason. A
	// story may be judged twice.
	told, impossible []string
}

// Verdict says whether a story runs.
type Verdict struct {
	// Why says what is missing; it is empty if the story runs.
	Why string
	// Wrong is true if the cluster should be able to run the story, so that not running is a
	// failure.
	Wrong bool
}

// Judge decides on a story and records the decision.
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

// String returns the report that is printed at the end of a run.
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

// Empty is true if stories were requested and none could run. Such a run has tested nothing.
func (r *Report) Empty() bool { return len(r.told) == 0 && len(r.impossible) > 0 }
