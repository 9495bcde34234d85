// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups=jobset.x-k8s.io,resources=jobsets,verbs=get;list;watch;create;delete

// jobSet is a JobSet: each replicated job is a pod set. It ends with its conditions, not with
// its pods: its success policy may need only some jobs, and these may run in waves.
var jobSet = Kind{
	GVK:     schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"},
	podSets: jobSetPodSets,
	turns:   jobSetTurns,
	ends:    jobSetEnds,
	ended:   jobSetEnded,
	pauses:  true, // its Jobs do

	knownToKueue:    always,
	verdict:         verdictFromConditions("Completed", "Failed"),
	finalReason:     finalReasons([]string{"Failed"}, "FailJobSetFailurePolicyAction"),
	failedBy:        firstFailedJob,
	derived:         jobSetNames,
	suspended:       jobSetSuspended,
	faults:          jobSetFaults,
	restartPolicies: restartsOfJobs,
	volumes:         jobSetVolumes,
}

var firstFailed = regexp.MustCompile(`\(first failed job: ([^)]+)\)`)

// firstFailedJob is named in the message, and nowhere else.
func firstFailedJob(object map[string]any) string {
	found := firstFailed.FindStringSubmatch(text(condition(object, "Failed"), "message"))
	if found == nil {
		return ""
	}
	return found[1]
}

// jobSetNames are those that JobSet's webhook checks. It makes Jobs Indexed if they do not say what they are.
func jobSetNames(object map[string]any) []Derived {
	var names []Derived
	for _, job := range items(object, "spec", "replicatedJobs") {
		name := text(job, "name")
		suffix := "-" + name + last(number(job, "replicas"))
		names = append(names, Derived{Suffix: suffix, Of: "its last Job of " + name, Rule: ServiceName})
		mode := text(job, "template", "spec", "completionMode")
		if completions, found, _ := integer(job, "template", "spec", "completions"); found && (mode == "" || mode == "Indexed") {
			names = append(names, Derived{Suffix: suffix + last(completions) + "-abcde", Of: "its last pod of " + name, Rule: ServiceName})
		}
	}
	return names
}

// jobSetSuspended: it starts its Jobs itself, whatever they say of suspend.
func jobSetSuspended(object map[string]any) []string {
	found := suspendedBy("spec.suspend", "spec.managedBy")(object)
	for i, job := range items(object, "spec", "replicatedJobs") {
		for _, path := range suspendedBy("template.spec.managedBy")(job) {
			found = append(found, fmt.Sprintf("spec.replicatedJobs[%d].%s", i, path))
		}
	}
	return found
}

// jobSetFaults are what JobSet's webhook refuses of how its Jobs name each other and their Service.
func jobSetFaults(object map[string]any) []Fault {
	faults := badName(object, ServiceName, "spec", "network", "subdomain")
	var before []string
	for i, job := range items(object, "spec", "replicatedJobs") {
		for j, dependency := range items(job, "dependsOn") {
			if name := text(dependency, "name"); !slices.Contains(before, name) {
				faults = append(faults, Fault{Path: fmt.Sprintf("spec.replicatedJobs[%d].dependsOn[%d].name", i, j), Value: name,
					Why: "must be the name of one of the replicatedJobs before this one"})
			}
		}
		faults = append(faults, waitsForPods(job, fmt.Sprintf("spec.replicatedJobs[%d].template.spec", i), "template", "spec")...)
		before = append(before, text(job, "name"))
	}
	if jobs := items(object, "spec", "replicatedJobs"); len(jobs) > 0 && !slices.ContainsFunc(jobs, hasReplicas) {
		faults = append(faults, Fault{Path: "spec.replicatedJobs", Value: "0", Why: "must have replicas: a JobSet without Jobs never ends, and what is wrapped cannot be scaled"})
	}
	targets, _, _ := unstructured.NestedStringSlice(object, "spec", "successPolicy", "targetReplicatedJobs")
	for i, name := range targets {
		if !slices.Contains(before, name) {
			faults = append(faults, Fault{Path: fmt.Sprintf("spec.successPolicy.targetReplicatedJobs[%d]", i), Value: name,
				Why: "must be the name of one of the replicatedJobs"})
		}
	}
	return faults
}

func hasReplicas(job map[string]any) bool { return number(job, "replicas") != 0 }

// jobSetVolumes are those of the claims that a JobSet makes.
func jobSetVolumes(object map[string]any) []string {
	var names []string
	for _, policy := range items(object, "spec", "volumeClaimPolicies") {
		names = append(names, namesOf(items(policy, "templates"), "metadata", "name")...)
	}
	return names
}

func jobSetPodSets(object map[string]any) ([]v1beta2.AppWrapperPodSet, error) {
	var podSets []v1beta2.AppWrapperPodSet
	for i, job := range items(object, "spec", "replicatedJobs") {
		if !present(job, "template") {
			continue
		}
		podSet, err := replicatedJobPodSet(job, i)
		if err != nil {
			return nil, fmt.Errorf("spec.replicatedJobs[%d]: %w", i, err)
		}
		podSets = append(podSets, podSet)
	}
	return podSets, nil
}

// jobSetTurns: a Job may wait until others are ready, or complete, and all may start in order.
func jobSetTurns(object map[string]any) map[string]Turn {
	turns := map[string]Turn{}
	inOrder := text(object, "spec", "startupPolicy", "startupPolicyOrder") == "InOrder"
	for i, job := range items(object, "spec", "replicatedJobs") {
		path := fmt.Sprintf(replicatedJobPath, i)
		if inOrder && i > 0 {
			turns[path] = OneByOne
		}
		for _, dependency := range items(job, "dependsOn") {
			if turns[path] != AfterTheOthers {
				turns[path] = OneByOne
			}
			if dependency["status"] == "Complete" {
				turns[path] = AfterTheOthers
			}
		}
	}
	return turns
}

const replicatedJobPath = "template.spec.replicatedJobs[%d].template.spec.template"

func replicatedJobPodSet(job map[string]any, index int) (v1beta2.AppWrapperPodSet, error) {
	jobs, err := replicas(job, "replicas")
	if err != nil {
		return v1beta2.AppWrapperPodSet{}, err
	}
	for _, field := range []string{"parallelism", "completions"} { // Kueue would take a part of a larger number
		if _, _, err := integer(job, "template", "spec", field); err != nil {
			return v1beta2.AppWrapperPodSet{}, err
		}
	}
	pods, err := times(*jobs, jobWidth(job, "template", "spec"))
	if err != nil {
		return v1beta2.AppWrapperPodSet{}, err
	}
	return v1beta2.AppWrapperPodSet{
		Path:     fmt.Sprintf(replicatedJobPath, index),
		Replicas: &pods,
		Annotations: map[string]string{
			v1beta2.PodSetAnnotationTASPodIndexLabel:      jobCompletionIndex,
			v1beta2.PodSetAnnotationTASSubGroupIndexLabel: "jobset.sigs.k8s.io/job-index",
			v1beta2.PodSetAnnotationTASSubGroupCount:      strconv.Itoa(int(*jobs)),
		},
	}, nil
}
