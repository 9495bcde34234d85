// SPDX-License-Identifier: Apache-2.0

// Package audit answers: does anything on this cluster run past the quota? It judges what was
// stored at one moment. It never calls an API, and it knows the time only from the moment.
package audit

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// Moment is what the API server stored at one revision. Excesses needs pods and Workloads only;
// Findings needs everything.
type Moment struct {
	Revision string
	Time     time.Time
	// Namespaces are those that are audited. Pods, AppWrappers, Services and Ingresses of others
	// are left out. Workloads are those of all namespaces, because they use the same quota.
	Namespaces []string
	// HostPaths are the folders of the node that a namespace's pods may mount.
	HostPaths map[string][]string
	// Tolerations are the taints that a namespace's pods may tolerate, of namespaces that list them.
	Tolerations map[string][]string
	Pods        []corev1.Pod
	Workloads   []kueue.Workload
	AppWrappers []workload.AppWrapper
	Services    []corev1.Service
	Ingresses   []networkingv1.Ingress
	Queues      []kueue.ClusterQueue
	Cohorts     []kueue.Cohort
	Flavors     []kueue.ResourceFlavor
	Nodes       []corev1.Node
	// Owners are the other objects that pods and Workloads belong to, directly or not.
	Owners []metav1.PartialObjectMetadata
	// Unread are kinds of owners that the user may not list, with the reason.
	Unread map[string]string
}

// Holder is what Kueue gives quota to: the owner of a Workload, or a Workload without one.
type Holder struct {
	Kind string
	types.NamespacedName
}

func (h Holder) String() string { return h.Kind + " " + h.NamespacedName.String() }

// WorkloadHolder returns the holder of a Workload.
func WorkloadHolder(w kueue.Workload) Holder {
	if o, owned := quota.Owner(&w); owned {
		return Holder{kindOf(o), types.NamespacedName{Namespace: w.Namespace, Name: o.Name}}
	}
	return Holder{"Workload", types.NamespacedName{Namespace: w.Namespace, Name: w.Name}} // of a group of pods
}

// kindOf distinguishes an AppWrapper from a kind of the same name in another group or version.
func kindOf(o metav1.OwnerReference) string {
	if o.Kind == workload.AppWrapperKind && o.APIVersion != workload.GroupVersion.String() {
		return o.APIVersion + "/" + o.Kind
	}
	return o.Kind
}

// lineage knows the controllers of pods, and which objects hold quota.
type lineage struct {
	objects map[types.UID]object
	holders map[types.UID]Holder
}

// object is a link between a pod and the holder of its quota.
type object struct {
	uid        types.UID
	holder     Holder // its kind and name, whether it holds quota or not
	controller *metav1.OwnerReference
}

func (m Moment) lineage() lineage {
	l := lineage{objects: map[types.UID]object{}, holders: map[types.UID]Holder{}}
	for i := range m.Pods {
		l.know("Pod", &m.Pods[i])
	}
	for i := range m.AppWrappers {
		l.know(workload.AppWrapperKind, &m.AppWrappers[i])
	}
	for i := range m.Owners {
		l.know(m.Owners[i].Kind, &m.Owners[i])
	}
	for _, w := range m.Workloads {
		for _, o := range w.OwnerReferences {
			l.holders[o.UID] = WorkloadHolder(w)
		}
	}
	delete(l.objects, "") // tests have such objects
	delete(l.holders, "")
	return l
}

func (l lineage) know(kind string, o metav1.Object) { l.objects[o.GetUID()] = describe(kind, o) }

func describe(kind string, o metav1.Object) object {
	return object{
		uid:        o.GetUID(),
		holder:     Holder{kind, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}},
		controller: metav1.GetControllerOf(o),
	}
}

// longest bounds a chain of controllers, which may be a circle.
const longest = 20

// ancestry returns a pod and the controllers above it that exist. The last one has no
// controller, or one that does not exist.
func (l lineage) ancestry(p corev1.Pod) []object {
	chain := []object{describe("Pod", &p)}
	for len(chain) < longest {
		above := chain[len(chain)-1].controller
		if above == nil {
			break
		}
		next, exists := l.objects[above.UID]
		if !exists {
			break
		}
		chain = append(chain, next)
	}
	return chain
}

// holder returns whose quota a pod uses: that of the nearest controller with a Workload, or else
// of the AppWrapper in its label.
func (l lineage) holder(p corev1.Pod) Holder {
	chain := l.ancestry(p)
	for _, o := range chain {
		if h, holds := l.holders[o.uid]; holds {
			return h
		}
	}
	if above := chain[len(chain)-1].controller; above != nil { // it is gone, or was not read
		if h, holds := l.holders[above.UID]; holds {
			return h
		}
	}
	return Holder{workload.AppWrapperKind, types.NamespacedName{Namespace: p.Namespace, Name: p.Labels[workload.AppWrapperLabel]}}
}

// HolderOf returns whose quota a pod uses.
func (m Moment) HolderOf(p corev1.Pod) Holder { return m.lineage().holder(p) }
