// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"math/rand/v2"
	"slices"
	"strings"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// read are labels and annotations that an operator reads, with the values that mean something to it.
var read = map[string][]any{
	"kueue.x-k8s.io/queue-name":                     {"default-queue", "none-such", ""},
	"kueue.x-k8s.io/prebuilt-workload-name":         {Episode + "-a", "none-such"},
	"kueue.x-k8s.io/max-exec-time-seconds":          {"1", "0", "-1"},
	"kueue.x-k8s.io/elastic-job":                    {"true"},
	"kueue.x-k8s.io/priority-class":                 {"none-such"},
	"kueue.x-k8s.io/podset":                         {"none-such"},
	"kueue.x-k8s.io/managed":                        {"false"},
	"kueue.x-k8s.io/pod-group-name":                 {Episode + "-a"},
	"kueue.x-k8s.io/pod-group-total-count":          {"1"},
	workload.AppWrapperLabel:                        {Episode + "-a", Episode + "-b", "none-such"},
	"workload.codeflare.dev/user":                   {"somebody"},
	workload.AttemptAnnotation:                      {"none-such"},
	workload.RetryLimitAnnotation:                   {"0", "-1", "9"},
	workload.SuccessTTLAnnotation:                   {"0s", "1s", "-1s", "none"},
	workload.FailureGracePeriodDurationAnnotation:   {"0s", "24h"},
	workload.WarmupGracePeriodDurationAnnotation:    {"0s", "24h"},
	workload.AdmissionGracePeriodDurationAnnotation: {"0s", "24h"},
	workload.ForcefulDeletionGracePeriodAnnotation:  {"0s", "24h"},
	workload.DeletionOnFailureGracePeriodAnnotation: {"0s", "24h"},
	workload.RetryPausePeriodDurationAnnotation:     {"0s", "24h"},
	"ray.io/originated-from-crd":                    {"RayJob", "RayService", "RayCluster", "none-such"},
	"ray.io/cluster":                                {Episode + "-a"},
	"ray.io/overwrite-container-cmd":                {"true"},
	"ray.io/ft-enabled":                             {"true"},
	"training.kubeflow.org/job-name":                {Episode + "-a"},
	"batch.kubernetes.io/job-name":                  {Episode + "-a"},
	"jobset.sigs.k8s.io/jobset-name":                {Episode + "-a"},
	"leaderworkerset.sigs.k8s.io/name":              {Episode + "-a"},
	"scheduling.x-k8s.io/pod-group":                 {Episode + "-a"},
	"example.com/any":                               {"a"},
}

var finalizers = []any{"example.com/keep", workload.AppWrapperFinalizer, "kueue.x-k8s.io/resource-in-use", "foregroundDeletion", "orphan"}

// labelled changes a label or an annotation. An operator mostly reads those with its own name.
func labelled(group string, random *rand.Rand) change {
	all := keys(read)
	if own := slices.DeleteFunc(slices.Clone(all), func(key string) bool { return !ownOf(group, key) }); len(own) > 0 && random.IntN(2) == 0 {
		all = own
	}
	key := pick(random, all)
	c := change{path: []string{"metadata", pick(random, []string{"labels", "annotations"}), key}}
	if random.IntN(8) == 0 {
		c.absent = true
		return c
	}
	c.value = pick(random, read[key])
	return c
}

// ownOf reports whether the operator of a group has given a key its name.
func ownOf(group, key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	first, _, _ := strings.Cut(group, ".")
	return group != "" && (strings.HasSuffix(prefix, group) || strings.HasPrefix(prefix, first+"."))
}

// kept adds a finalizer, or removes all.
func kept(random *rand.Rand) change {
	c := change{path: []string{"metadata", "finalizers"}, value: []any{pick(random, finalizers)}}
	c.absent = random.IntN(8) == 0
	return c
}

// owned names another object of the episode as the owner.
func owned(random *rand.Rand, owner made) change {
	return change{path: []string{"metadata", "ownerReferences"}, value: []any{map[string]any{
		"apiVersion": owner.body["apiVersion"], "kind": owner.body["kind"], "name": owner.name,
		"uid": uidMark + owner.resource + "/" + owner.name, "controller": random.IntN(4) > 0, "blockOwnerDeletion": random.IntN(2) > 0,
	}}}
}
