// SPDX-License-Identifier: Apache-2.0

// Package kinds answers one question: what is this wrapped thing? For each kind
// it knows where the pod templates are, how many pods they make, and how the
// resource itself says that it has finished. All that is known about one kind,
// the rights of the controller included, is in the file of that kind.
//
// It works on decoded JSON and may not talk to anything.
package kinds

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Verdict is what a resource says about its own progress.
type Verdict string

// The verdicts.
const (
	// Unknown: the resource says nothing, or not yet.
	Unknown Verdict = ""
	// Running: the resource knows how to end and has not ended.
	Running Verdict = "Running"
	// Succeeded: the resource says that it is done, whatever became of its pods.
	Succeeded Verdict = "Succeeded"
	// Failed: the resource says that it has failed for good.
	Failed Verdict = "Failed"
)

// Kind is what is known about one kind of resource.
type Kind struct {
	// GVK names the kind.
	GVK schema.GroupVersionKind

	// podSets finds the pod sets in a resource; nil for a kind that has none that
	// could be found.
	podSets func(object map[string]any) ([]v1beta2.AppWrapperPodSet, error)

	// formerly finds the pod sets that AppWrapper 1.2 found, or that its users had to
	// declare, where it counted other pods; nil where it counted the same, or none.
	formerly func(object map[string]any) ([]v1beta2.AppWrapperPodSet, error)

	// knownToKueue tells whether Kueue, which was built with rules of its own, finds the
	// same pod sets in the resource; nil for a kind in which it finds none.
	knownToKueue func(object map[string]any) bool

	// verdict reads the status of a resource; nil for a kind whose pods alone tell
	// how it fares.
	verdict func(object map[string]any) Verdict
}

// known lists the kinds. Adding one is a file, a line here and a pair of test data.
var known = append([]Kind{
	pod,
	deployment,
	statefulSet,
	replicaSet,
	job,
	jobSet,
	leaderWorkerSet,
	pyTorchJob,
	tfJob,
	xgBoostJob,
	paddleJob,
	jaxJob,
	mpiJob,
	mpiJobV2,
	rayCluster,
	rayJob,
	rayService,
}, companions...)

// For returns what is known about a kind. A kind that is not known may be wrapped
// all the same: it has the pod sets that its component declares, and no verdict.
func For(gvk schema.GroupVersionKind) Kind {
	for _, k := range known {
		if k.GVK == gvk {
			return k
		}
	}
	return Kind{GVK: gvk}
}

// Knows tells whether a kind is known, in whatever version.
func Knows(kind schema.GroupKind) bool {
	return slices.ContainsFunc(known, func(k Kind) bool { return k.GVK.GroupKind() == kind })
}

// Known tells whether more is known of this kind than its name: the controller's own
// role has the rights to it then.
func (k Kind) Known() bool {
	return k.podSets != nil
}

// HasVerdict tells whether resources of this kind say themselves that they have
// succeeded or failed. Where they do not, their pods count.
func (k Kind) HasVerdict() bool {
	return k.verdict != nil
}

// Verdict is what the resource says about its own progress.
func (k Kind) Verdict(object *unstructured.Unstructured) Verdict {
	if k.verdict == nil {
		return Unknown
	}
	return k.verdict(object.Object)
}

// InferPodSets finds the pod sets of a component's template. It does not look into
// the pod templates that the paths lead to.
func (k Kind) InferPodSets(template *unstructured.Unstructured) ([]v1beta2.AppWrapperPodSet, error) {
	if k.podSets == nil {
		return nil, nil
	}
	return k.podSets(template.Object)
}

// Recount replaces what a component declares as AppWrapper 1.2 wanted it, and which has too
// few pods, by what there will be. Other declarations are returned as they are.
func (k Kind) Recount(declared []v1beta2.AppWrapperPodSet, template *unstructured.Unstructured) []v1beta2.AppWrapperPodSet {
	if k.formerly == nil || len(declared) == 0 {
		return declared
	}
	former, err := k.formerly(template.Object)
	inferred, also := k.InferPodSets(template)
	if err != nil || also != nil || CheckDeclared(declared, former) != nil {
		return declared
	}
	recounted := slices.Clone(declared)
	for i := range recounted {
		for _, p := range inferred {
			if p.Path == recounted[i].Path {
				recounted[i].Replicas = p.Replicas
			}
		}
	}
	return recounted
}

// MustDeclare tells whether a component has to declare its pod sets for Kueue to count
// them before it sees the status.
func (k Kind) MustDeclare(template *unstructured.Unstructured) bool {
	return k.Known() && (k.knownToKueue == nil || !k.knownToKueue(template.Object))
}

// always: Kueue has the same rule.
func always(map[string]any) bool { return true }

func (k Kind) knownToKueueIf(same func(map[string]any) bool) Kind {
	k.knownToKueue = same
	return k
}

// PodSets is the authoritative list for a component: what it declares, else what
// its kind lets us infer.
func PodSets(declared []v1beta2.AppWrapperPodSet, template *unstructured.Unstructured) ([]v1beta2.AppWrapperPodSet, error) {
	if len(declared) > 0 {
		return declared, nil
	}
	return For(template.GroupVersionKind()).InferPodSets(template)
}
