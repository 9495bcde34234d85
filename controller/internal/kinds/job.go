// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete

const jobPath = "template.spec.template"

const jobCompletionIndex = "batch.kubernetes.io/job-completion-index"

// job is a batch/v1 Job. It ends with its Complete condition, not with the number of pods
// that have succeeded: a Job with more completions than parallelism runs in waves. It says with
// SuccessCriteriaMet or FailureTarget how it will end, and with Complete or Failed that all its pods have stopped as
// well.
var job = Kind{
	GVK:     schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"},
	podSets: jobPodSets,

	knownToKueue: always,
	verdict:      jobVerdict,
	finalReason:  finalReasons([]string{"Failed", "FailureTarget"}, deadlineExceeded, "PodFailurePolicy"),
	turns:        onePath(jobPath, OneByOne, func(object map[string]any) bool { return waves(object) > 0 }),
	ends:         jobEnds,
	ended:        jobEnded,
	pauses:       true,
	final:        true, // the Job controller leaves a Job that is Complete alone
	derived:      jobNames,
	suspended:    suspendedBy("spec.suspend", "spec.managedBy"),
	faults:       func(object map[string]any) []Fault { return waitsForPods(object, "spec", "spec") },
}

// jobNames: a Job whose author writes the selector has no labels of its own.
func jobNames(object map[string]any) []Derived {
	var names []Derived
	if manual, _, _ := unstructured.NestedBool(object, "spec", "manualSelector"); !manual {
		names = append(names, namedAfterItsPods)
	}
	if completions, found, _ := integer(object, "spec", "completions"); found && completions > 0 && text(object, "spec", "completionMode") == "Indexed" {
		names = append(names, Derived{Suffix: last(completions), Of: "the host name of its last pod", Rule: HostName})
	}
	return names
}

func jobVerdict(object map[string]any) Verdict {
	if condition(object, "SuccessCriteriaMet")["status"] == "True" {
		return Succeeded
	}
	return verdictFromConditions("Complete", "Failed", "FailureTarget")(object)
}

// jobEnded: a Job counts each pod that has succeeded once, and lists the indexes without which it goes on.
func jobEnded(object map[string]any) Ended {
	succeeded, _, _ := integer(object, "status", "succeeded")
	failed, _, _ := unstructured.NestedString(object, "status", "failedIndexes")
	return Ended{Succeeded: int(succeeded), GivenUp: indexes(failed)}
}

// indexes counts those in a list such as "1,3-5".
func indexes(list string) int {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		n++
		if to, err := strconv.Atoi(last); isRange && err == nil && to > from {
			n += to - from
		}
	}
	return n
}

func jobPodSets(object map[string]any) ([]v1beta2.AppWrapperPodSet, error) {
	pods := jobWidth(object, "spec")
	return []v1beta2.AppWrapperPodSet{{
		Path:        jobPath,
		Replicas:    &pods,
		Annotations: map[string]string{v1beta2.PodSetAnnotationTASPodIndexLabel: jobCompletionIndex},
	}}, nil
}

// waitsForPods: a Job of no pods waits until somebody raises the number, unless it has to make none. Its spec is in
// these fields.
func waitsForPods(object map[string]any, path string, spec ...string) []Fault {
	completions, some, _ := integer(object, append(spec, "completions")...)
	if width, found, err := integer(object, append(spec, "parallelism")...); err != nil || !found || width != 0 || some && completions == 0 {
		return nil
	}
	return []Fault{{Path: path + ".parallelism", Value: "0", Why: "leave it out, or write how many pods run at the same time: the Job would wait until " +
		"somebody raises it, and what is wrapped cannot be changed"}}
}

// jobWidth is how many pods of a Job run at once. A parallelism that is not a number counts
// as absent, as in Kueue's copy of this rule; the API server rejects such a Job later.
func jobWidth(object map[string]any, spec ...string) int32 {
	width, found, err := integer(object, append(spec, "parallelism")...)
	if err != nil || !found {
		width = 1
	}
	if completions, found, err := integer(object, append(spec, "completions")...); err == nil && found && completions < width {
		return completions
	}
	return width
}
