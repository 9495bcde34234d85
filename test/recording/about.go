// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// about leaves out what is on the cluster for other scenes.
func about(o *explain.Objects) {
	o.ClusterQueues = slices.DeleteFunc(slices.Clone(o.ClusterQueues), func(q kueue.ClusterQueue) bool { return !concerns(*o, q) })
	o.Cohorts = slices.DeleteFunc(slices.Clone(o.Cohorts), func(c kueue.Cohort) bool {
		return !slices.ContainsFunc(o.ClusterQueues, func(q kueue.ClusterQueue) bool { return string(q.Spec.CohortName) == c.Name })
	})
	o.Events = slices.DeleteFunc(slices.Clone(o.Events), func(e corev1.Event) bool { return !tells(*o, e.InvolvedObject) })
	o.Nodes = slices.DeleteFunc(slices.Clone(o.Nodes), func(n corev1.Node) bool { return !selected(*o, n) })
	o.Placed = slices.DeleteFunc(slices.Clone(o.Placed), func(p corev1.Pod) bool {
		return !slices.ContainsFunc(o.Nodes, func(n corev1.Node) bool { return n.Name == p.Spec.NodeName })
	})
	for i := range o.Placed {
		o.Placed[i] = placed(o.Placed[i])
	}
}

// concerns: it is the queue of the work, one of the same cohort, or it has quota of the flavor that the work got.
func concerns(o explain.Objects, q kueue.ClusterQueue) bool {
	if o.LocalQueue != nil {
		own := string(o.LocalQueue.Spec.ClusterQueue)
		i := slices.IndexFunc(o.ClusterQueues, func(q kueue.ClusterQueue) bool { return q.Name == own })
		return q.Name == own || i >= 0 && q.Spec.CohortName != "" && q.Spec.CohortName == o.ClusterQueues[i].Spec.CohortName
	}
	return o.Flavor != nil && slices.ContainsFunc(q.Spec.ResourceGroups, func(g kueue.ResourceGroup) bool {
		return slices.ContainsFunc(g.Flavors, func(f kueue.FlavorQuotas) bool { return string(f.Name) == o.Flavor.Name })
	})
}

// selected reports whether a pod of the work may be on a node, as far as its selector says.
func selected(o explain.Objects, n corev1.Node) bool {
	return slices.ContainsFunc(o.Pods, func(p corev1.Pod) bool {
		return labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(n.Labels))
	})
}

// tells reports whether an event about an object is one about the work.
func tells(o explain.Objects, object corev1.ObjectReference) bool {
	is := func(kind, name string) bool { return object.Kind == kind && object.Name == name }
	switch {
	case o.Run != nil && is("Run", o.Run.Name):
		return true
	case slices.ContainsFunc(o.Pods, func(p corev1.Pod) bool { return is("Pod", p.Name) }):
		return true
	case slices.ContainsFunc(o.Owners(), func(by explain.Child) bool { return is(by.Kind, by.Name) }):
		return true
	}
	return o.AppWrapper != nil && is("AppWrapper", o.AppWrapper.Name)
}

// placed is of a pod on a node what counts there.
func placed(p corev1.Pod) corev1.Pod {
	kept := corev1.Pod{}
	kept.Name, kept.GenerateName, kept.Namespace = p.Name, p.GenerateName, p.Namespace
	kept.Spec.NodeName, kept.Spec.Overhead = p.Spec.NodeName, p.Spec.Overhead
	for _, c := range p.Spec.Containers {
		kept.Spec.Containers = append(kept.Spec.Containers, corev1.Container{Name: c.Name, Resources: c.Resources})
	}
	for _, c := range p.Spec.InitContainers {
		kept.Spec.InitContainers = append(kept.Spec.InitContainers, corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	return kept
}
