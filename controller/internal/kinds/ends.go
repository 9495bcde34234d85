// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Ends is how the pods of a pod set end where it is not enough that each of them succeeds once.
type Ends struct {
	// Completions is how many pods of a Job have to succeed, if fewer run at the same time; else 0.
	Completions int `json:"completions,omitempty"`
	// WorkQueue: a Job makes no more pods once one has succeeded.
	WorkQueue bool `json:"workQueue,omitempty"`
	// Tolerant: a Job may go on without pods that have failed.
	Tolerant bool `json:"tolerant,omitempty"`
	// Early: a Job may succeed before all its pods have.
	Early bool `json:"early,omitempty"`
	// Job is the name that Ended.Jobs counts the pod set's Jobs by, and Pods is how many pods each of them runs.
	Job  string `json:"job,omitempty"`
	Pods int    `json:"pods,omitempty"`
}

// Ends says how the pods of the pod sets of a template end, by path, for those that do not just succeed once each.
func (k Kind) Ends(template *unstructured.Unstructured) map[string]Ends {
	if k.ends == nil {
		return nil
	}
	return k.ends(template.Object)
}

func jobEnds(object map[string]any) map[string]Ends {
	ends := Ends{WorkQueue: isWorkQueue(object, "spec"), Completions: waves(object)}
	if ends == (Ends{}) {
		return nil
	}
	return map[string]Ends{jobPath: ends}
}

// isWorkQueue: the API server adds completions only if both numbers are absent.
func isWorkQueue(object map[string]any, spec ...string) bool {
	_, counted, err := integer(object, append(spec, "completions")...)
	_, parallel, _ := integer(object, append(spec, "parallelism")...)
	return err == nil && !counted && parallel
}

// waves is the number of completions of a Job if it has more than run at the same time.
func waves(object map[string]any) int {
	completions, found, err := integer(object, "spec", "completions")
	if err != nil || !found || completions <= jobWidth(object, "spec") {
		return 0
	}
	return int(completions)
}

func jobSetEnds(object map[string]any) map[string]Ends {
	all := map[string]Ends{}
	for i, job := range items(object, "spec", "replicatedJobs") {
		all[fmt.Sprintf(replicatedJobPath, i)] = Ends{
			Job: text(job, "name"), Pods: int(jobWidth(job, "template", "spec")),
			WorkQueue: isWorkQueue(job, "template", "spec") && text(job, "template", "spec", "completionMode") == "NonIndexed",
			Tolerant:  present(job, "template", "spec", "backoffLimitPerIndex"),
			Early:     present(job, "template", "spec", "successPolicy"),
		}
	}
	return all
}

// jobSetEnded counts the Jobs that have succeeded: none of their pods need run any more.
func jobSetEnded(object map[string]any) Ended {
	var ended Ended
	for _, job := range items(object, "status", "replicatedJobsStatus") {
		if succeeded, _, _ := integer(job, "succeeded"); succeeded > 0 {
			if ended.Jobs == nil {
				ended.Jobs = map[string]int{}
			}
			ended.Jobs[text(job, "name")] = int(succeeded)
		}
	}
	return ended
}
