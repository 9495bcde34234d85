// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

func deletion(o Objects) []Cause {
	aw := o.AppWrapper
	if aw == nil || aw.DeletionTimestamp == nil {
		return nil
	}
	if stuck := o.stuck("DeletionStuck"); len(stuck) > 0 {
		since(*aw.DeletionTimestamp)(&stuck[0])
		return stuck
	}
	at := aw.DeletionTimestamp.UTC().Format(time.RFC3339)
	return []Cause{cause("BeingDeleted", Evidence{o.wrapper(), "metadata.deletionTimestamp", at}, since(*aw.DeletionTimestamp))}
}

// removal is about what is in the way of the next attempt, or of the quota for others.
func removal(o Objects) (all []Cause) {
	aw := o.AppWrapper
	if aw == nil {
		return nil
	}
	if aw.DeletionTimestamp == nil {
		all = o.stuck("RemovalStuck")
	}
	if !isTrue(aw.Status.Conditions, string(v1beta2.DeletingResources)) && aw.DeletionTimestamp == nil {
		return all
	}
	return append(all, o.ending()...)
}

// stuck is about what our controller says that it cannot remove.
func (o Objects) stuck(code Code) []Cause {
	c := condition(o.AppWrapper.Status.Conditions, string(v1beta2.DeletingResources))
	switch {
	case c == nil || c.Status != metav1.ConditionTrue:
	case hasAny(c.Message, "kept by its finalizers", "kept by their finalizers"):
		return []Cause{cause(code, told(o.wrapper(), *c), owners(c.Message), since(c.LastTransitionTime))}
	case hasAny(c.Message, "lacks the permission"):
		return []Cause{cause("ControllerMayNot", told(o.wrapper(), *c), since(c.LastTransitionTime))}
	}
	return nil
}

// finalizers are known by their prefix or name: whoever removes them.
var finalizers = []struct{ name, owner string }{
	{"foregroundDeletion", "the garbage collector of Kubernetes, when all that the object owns is gone"},
	{"orphan", "the garbage collector of Kubernetes"},
	{"kubernetes.io/pvc-protection", "Kubernetes, when no pod uses the volume any more"},
	{"batch.kubernetes.io/job-tracking", "the job controller of Kubernetes"},
	{"kueue.x-k8s.io/", "Kueue"},
	{"ray.io/", "the KubeRay operator"},
	{"jobset.x-k8s.io/", "the JobSet controller"},
	{"kubeflow.org/", "the training operator"},
}

// owners says who removes the finalizers that a message names.
func owners(message string) change {
	return func(c *Cause) {
		for _, word := range strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune(` ,;"`, r) }) {
			for _, f := range finalizers {
				said := word + " is removed by " + f.owner
				if (word == f.name || strings.HasSuffix(f.name, "/") && strings.HasPrefix(word, f.name)) && !slices.Contains(c.Who, said) {
					c.Who = append(c.Who, said)
				}
			}
		}
	}
}

// ending is about pods that are being deleted. Their deletionTimestamp is when they have to be gone.
func (o Objects) ending() []Cause {
	var last *corev1.Pod
	for i := range o.Pods {
		pod := &o.Pods[i]
		if at := pod.DeletionTimestamp; at != nil && (last == nil || last.DeletionTimestamp.Before(at)) {
			last = pod
		}
	}
	if last == nil {
		return nil
	}
	told := Evidence{"Pod " + last.Name, "metadata.deletionTimestamp", last.DeletionTimestamp.UTC().Format(time.RFC3339)}
	if o.Now.Sub(last.DeletionTimestamp.Time) < silence {
		return []Cause{cause("PodsEnding", told, next("the node ends them by force", last.DeletionTimestamp))}
	}
	c := cause("PodStuck", told, since(*last.DeletionTimestamp), owners(strings.Join(last.Finalizers, ",")))
	if last.Spec.NodeName != "" {
		also(Evidence{"Pod " + last.Name, "spec.nodeName", last.Spec.NodeName})(&c)
	}
	for _, f := range last.Finalizers {
		if f != "" {
			also(Evidence{"Pod " + last.Name, "metadata.finalizers", f})(&c)
		}
	}
	return []Cause{c}
}
