// SPDX-License-Identifier: Apache-2.0

// Package kinds answers one question: what is this wrapped resource? For each kind it
// knows where the pod templates are, how many pods they make, and how the resource
// reports its end. The file of a kind has all of this, including the controller's
// permissions.
//
// It works on decoded JSON and may not talk to anything.
package kinds

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Verdict is what a resource reports about its progress.
type Verdict string

// The verdicts.
const (
	// Unknown: the resource reports nothing, or nothing yet.
	Unknown Verdict = ""
	// Running: the resource reports its end and has not ended.
	Running Verdict = "Running"
	// Succeeded: the resource reports success, whatever the state of its pods.
	Succeeded Verdict = "Succeeded"
	// Failed: the resource reports that it has failed for good.
	Failed Verdict = "Failed"
)

// Kind is what is known about one kind of resource.
type Kind struct {
	// GVK names the kind.
	GVK schema.GroupVersionKind

	// podSets finds the pod sets of a resource; nil for a kind that is not known.
	podSets func(object map[string]any) ([]v1beta2.AppWrapperPodSet, error)

	// formerly finds the pod sets as AppWrapper 1.2 counted them, or had its users declare
	// them; nil if it counted the same pods, or none.
	formerly func(object map[string]any) ([]v1beta2.AppWrapperPodSet, error)

	// knownToKueue tells whether Kueue, which has its own copy of these rules, finds the same
	// pod sets in the resource; nil for a kind in which it finds none.
	knownToKueue func(object map[string]any) bool

	// uncounted says which field of a resource would add pods that nobody counts; nil for a
	// kind that has none.
	uncounted func(object map[string]any) error

	// turns says when the pods of a resource's pod sets come, by path, for those that do not come with it; nil for a
	// kind all of whose pods do.
	turns func(object map[string]any) map[string]Turn

	// pauses: its operator replaces pods that have failed, or says that the resource has failed, and pauses before.
	pauses bool

	// verdict reads the status of a resource; nil for a kind that does not report its end, so
	// that only its pods count.
	verdict func(object map[string]any) Verdict

	// inQueue sets what a resource in a queue must have: what Kueue demands and the AppWrapper sees to anyway, and that
	// no pod is made beyond its quota. It is nil for a kind that needs nothing.
	inQueue func(object map[string]any)

	// derived are the names that its controller makes of the resource's; nil if they cannot be wrong.
	derived func(object map[string]any) []Derived

	// suspended are the fields that suspend a resource; nil for a kind that has none.
	suspended func(object map[string]any) []string

	// faults are fields with which a resource gets no pods; nil for a kind without such fields.
	faults func(object map[string]any) []Fault

	// volumes are those that its pods have beside those of their templates; nil for a kind that has none.
	volumes func(object map[string]any) []string

	// container is the name that a container of each pod template must have; empty if any will do.
	container string

	// restartPolicies are those that its pod templates may have; nil if its controller writes another one over it.
	restartPolicies []corev1.RestartPolicy

	// finalReason is why a resource that has failed would fail again; nil for a kind that never says so.
	finalReason func(object map[string]any) string

	// failedBy is the name of the Job that has failed a resource; nil for a kind that says all itself.
	failedBy func(object map[string]any) string

	// ended reads how many pods of a resource need not run any more; nil for a kind whose status does not say more than
	// its pods do.
	ended func(object map[string]any) Ended

	// ends is how pods of its pod sets end; nil for a kind whose pods succeed once each.
	ends func(object map[string]any) map[string]Ends

	// neverSucceeds tells whether a resource runs until it is deleted, or fails; nil for a kind that can succeed.
	neverSucceeds func(object map[string]any) bool

	// final: once a resource of this kind has succeeded, its controller makes no pods.
	final bool
}

// known lists the kinds. To add one, add a file, a line here and a pair of test data.
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

// For returns what is known about a kind. Unknown kinds may be wrapped, too: they have the
// pod sets that their components declare, and no verdict.
func For(gvk schema.GroupVersionKind) Kind {
	for _, k := range known {
		if k.GVK == gvk {
			return k
		}
	}
	return Kind{GVK: gvk}
}

// Knows tells whether a kind is known, in any version.
func Knows(kind schema.GroupKind) bool {
	return len(Versions(kind)) > 0
}

// Versions are those in which a kind is known, such as "ray.io/v1"; none for an unknown kind.
// In another version, which the API server may serve, nobody would count its pods.
func Versions(kind schema.GroupKind) []string {
	var versions []string
	for _, k := range known {
		if k.GVK.GroupKind() == kind {
			versions = append(versions, k.GVK.GroupVersion().String())
		}
	}
	return versions
}

// Known tells whether the kind is known. If so, the controller's own role has the
// permissions for it.
func (k Kind) Known() bool {
	return k.podSets != nil
}

// PrepareForQueue sets what a resource must have that is created for an AppWrapper in a queue.
func (k Kind) PrepareForQueue(object map[string]any) {
	if k.inQueue != nil {
		k.inQueue(object)
	}
}

// HasVerdict tells whether resources of this kind report success or failure. If not, their
// pods count.
func (k Kind) HasVerdict() bool {
	return k.verdict != nil
}

// SuccessIsFinal tells that nothing makes pods for a resource of this kind that has succeeded, or ever.
func (k Kind) SuccessIsFinal() bool {
	return k.final || k.MakesNoPods()
}

// NeverSucceeds tells that a resource has pods and is known to run until it is deleted, or fails.
func (k Kind) NeverSucceeds(template *unstructured.Unstructured) bool {
	return k.neverSucceeds != nil && k.neverSucceeds(template.Object) && k.makesPods(template)
}

// ReplacesWhatEnds tells that the controller of this kind makes a new pod for each that ends, also for one that
// succeeds.
func (k Kind) ReplacesWhatEnds() bool {
	return k.neverSucceeds != nil && k.GVK != pod.GVK
}

// CanSucceed tells that a resource has pods and is known to end when their work is done.
func (k Kind) CanSucceed(template *unstructured.Unstructured) bool {
	return k.makesPods(template) && !k.NeverSucceeds(template)
}

func (k Kind) makesPods(template *unstructured.Unstructured) bool {
	podSets, err := k.InferPodSets(template)
	return err == nil && slices.ContainsFunc(podSets, func(p v1beta2.AppWrapperPodSet) bool {
		return p.Replicas == nil || *p.Replicas > 0
	})
}

// Verdict is what the resource reports about its progress.
func (k Kind) Verdict(object *unstructured.Unstructured) Verdict {
	if k.verdict == nil {
		return Unknown
	}
	return k.verdict(object.Object)
}

// Ended are pods that need not run any more, by the status of a resource.
type Ended struct {
	// Succeeded have done their work, whether or not their objects still exist, in a resource with one pod set.
	Succeeded int `json:"succeeded,omitempty"`
	// GivenUp have failed, and the resource with one pod set goes on without them.
	GivenUp int `json:"givenUp,omitempty"`
	// Jobs are how many of its Jobs have succeeded, by Ends.Job.
	Jobs map[string]int `json:"jobs,omitempty"`
}

// Ended is what the resource reports about pods that need not run any more.
func (k Kind) Ended(object *unstructured.Unstructured) Ended {
	if k.ended == nil {
		return Ended{}
	}
	return k.ended(object.Object)
}

// InferPodSets finds the pod sets of a component's template. It does not look into
// the pod templates that the paths lead to.
func (k Kind) InferPodSets(template *unstructured.Unstructured) ([]v1beta2.AppWrapperPodSet, error) {
	if k.podSets == nil {
		return nil, nil
	}
	return k.podSets(template.Object)
}

// Uncounted is the error of a new resource that would get more pods than InferPodSets finds.
// Resources that were admitted before there was this rule go on.
func (k Kind) Uncounted(template *unstructured.Unstructured) error {
	if k.uncounted == nil {
		return nil
	}
	return k.uncounted(template.Object)
}

// Recount corrects pod sets that a component declares as AppWrapper 1.2 wanted them, which are
// too few or have too few replicas. It returns other declarations unchanged.
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
	for _, p := range inferred {
		i := slices.IndexFunc(recounted, func(d v1beta2.AppWrapperPodSet) bool { return d.Path == p.Path })
		if i < 0 {
			recounted = append(recounted, p)
			continue
		}
		recounted[i].Replicas = p.Replicas
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

// faultyIf adds faults of this kind.
func (k Kind) faultyIf(faulty func(map[string]any) []Fault) Kind {
	others := k.faults
	k.faults = func(object map[string]any) []Fault { return append(others(object), faulty(object)...) }
	return k
}

// uncountedIf adds a reason.
func (k Kind) uncountedIf(uncounted func(map[string]any) error) Kind {
	others := k.uncounted
	k.uncounted = func(object map[string]any) error {
		if others != nil {
			if err := others(object); err != nil {
				return err
			}
		}
		return uncounted(object)
	}
	return k
}

func (k Kind) knownToKueueIf(same func(map[string]any) bool) Kind {
	k.knownToKueue = same
	return k
}

// PodSets are the pod sets of a component: those that it declares, or else those that its
// kind implies.
func PodSets(declared []v1beta2.AppWrapperPodSet, template *unstructured.Unstructured) ([]v1beta2.AppWrapperPodSet, error) {
	if len(declared) > 0 {
		return declared, nil
	}
	return For(template.GroupVersionKind()).InferPodSets(template)
}
