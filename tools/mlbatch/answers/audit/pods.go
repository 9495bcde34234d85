// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// mislabelled: a pod counts as that of the AppWrapper whose quota it uses. An AppWrapper is reset
// if others count as its own.
func (l look) mislabelled() []Finding {
	var found []Finding
	for _, p := range l.running {
		label := p.Labels[workload.AppWrapperLabel]
		if uses := l.holder(p); label != "" && (uses.Kind != workload.AppWrapperKind || uses.Name != label) {
			found = append(found, finding(p, fmt.Sprintf("its label names AppWrapper %s, and it uses the quota of %s", label, uses)))
		}
	}
	return found
}

// misplaced: pods run on the nodes of their flavor, and never where only the cluster's own pods
// belong. Nobody but the scheduler chooses a node, and nobody keeps other teams from one.
func (l look) misplaced() []Finding {
	var found []Finding
	for _, w := range l.Workloads {
		for _, podSet := range w.Spec.PodSets {
			if node := podSet.Template.Spec.NodeName; node != "" && l.audited(w.Namespace) && quota.Holds(&w) {
				found = append(found, Finding{
					Object:   WorkloadHolder(w).String(),
					Evidence: fmt.Sprintf("pod set %s names node %s, so no scheduler has checked whether its pods may run there", podSet.Name, node),
				})
			}
		}
	}
	for _, p := range l.running {
		i := slices.IndexFunc(l.Nodes, func(n corev1.Node) bool { return n.Name == p.Spec.NodeName })
		if i < 0 {
			continue
		}
		if why := l.wrongNode(p, l.Nodes[i]); why != "" {
			found = append(found, finding(p, fmt.Sprintf("it runs on node %s, %s", p.Spec.NodeName, why)))
		}
		if admissionrules.KeepsOthersAway(&p.Spec) {
			found = append(found, finding(p, "its podAntiAffinity keeps pods of other namespaces from where it runs"))
		}
	}
	return found
}

// wrongNode says why a pod does not belong on its node.
func (l look) wrongNode(p corev1.Pod, node corev1.Node) string {
	for _, t := range node.Spec.Taints {
		if strings.HasPrefix(t.Key, "node-role.kubernetes.io/") && t.Effect != corev1.TaintEffectPreferNoSchedule {
			return "which is reserved with the taint " + t.Key
		}
		if l.intrudes(p, t) {
			return "whose taint " + t.Key + " it tolerates and may not"
		}
	}
	for _, flavor := range l.flavorsOf(p) {
		for _, key := range slices.Sorted(maps.Keys(flavor.Spec.NodeLabels)) {
			if want := flavor.Spec.NodeLabels[key]; node.Labels[key] != want {
				return fmt.Sprintf("which is not of its flavor %s: its label %s is %q and not %q", flavor.Name, key, node.Labels[key], want)
			}
		}
	}
	return ""
}

// flavorsOf are those from which a pod has its quota.
func (l look) flavorsOf(p corev1.Pod) (all []kueue.ResourceFlavor) {
	for _, a := range l.claimed[l.holder(p)].flavors[p.Labels[quota.PodSetLabel]] {
		for _, flavor := range l.Flavors {
			if flavor.Name == string(a.Flavor) {
				all = append(all, flavor)
			}
		}
	}
	return all
}

// intrudes tells whether a pod is on a node because it tolerates a taint that its team may not.
func (l look) intrudes(p corev1.Pod, taint corev1.Taint) bool {
	list, listed := l.Tolerations[p.Namespace]
	if !listed || taint.Effect == corev1.TaintEffectPreferNoSchedule || admissionrules.MayTolerate(list, taint) {
		return false
	}
	covers := func(t corev1.Toleration) bool {
		return (t.Key == "" || t.Key == taint.Key) && (t.Effect == "" || t.Effect == taint.Effect)
	}
	given := slices.ContainsFunc(l.flavorsOf(p), func(f kueue.ResourceFlavor) bool { return slices.ContainsFunc(f.Spec.Tolerations, covers) })
	return !given && slices.ContainsFunc(p.Spec.Tolerations, covers)
}

// nodeAccess: no container has the rights of its node.
func (l look) nodeAccess() []Finding {
	var found []Finding
	for _, p := range l.running {
		if uses := append(nodeRights(p.Spec), l.nodeFolders(p)...); len(uses) > 0 {
			found = append(found, finding(p, "it has "+strings.Join(uses, ", ")))
		}
	}
	return found
}

func nodeRights(spec corev1.PodSpec) []string {
	var has []string
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if s := c.SecurityContext; s != nil && s.Privileged != nil && *s.Privileged {
			has = append(has, "the privileged container "+c.Name)
		}
	}
	for name, shared := range map[string]bool{"hostNetwork": spec.HostNetwork, "hostPID": spec.HostPID, "hostIPC": spec.HostIPC} {
		if shared {
			has = append(has, name)
		}
	}
	slices.Sort(has)
	return has
}

// nodeFolders are those that a pod mounts, and that its team is not given.
func (l look) nodeFolders(p corev1.Pod) []string {
	var has []string
	for _, v := range p.Spec.Volumes {
		if v.HostPath != nil && !slices.Contains(l.HostPaths[p.Namespace], v.HostPath.Path) {
			has = append(has, "the folder "+v.HostPath.Path+" of its node")
		}
	}
	return has
}

// ofSystem is how the names of the system's PriorityClasses begin. Nobody else may use it.
const ofSystem = "system-"

// systemPriority: a team's pods are not more important than the cluster's own, and its work is not
// more important than that of all others. A PyTorchJob may give only its Workload a class.
func (l look) systemPriority() []Finding {
	var found []Finding
	for _, w := range l.Workloads {
		class := w.Spec.PriorityClassRef
		if class == nil || class.Kind != kueue.PodPriorityClassKind || !strings.HasPrefix(class.Name, ofSystem) {
			continue
		}
		if l.audited(w.Namespace) && !quota.Finished(&w) {
			found = append(found, Finding{
				Object:   WorkloadHolder(w).String(),
				Evidence: "Workload " + w.Name + " has the PriorityClass " + class.Name + ", so it goes before all other work",
			})
		}
	}
	for _, p := range l.running {
		if strings.HasPrefix(p.Spec.PriorityClassName, ofSystem) {
			found = append(found, finding(p, "it has the PriorityClass "+p.Spec.PriorityClassName+", so it evicts other teams' pods and parts of the cluster"))
		}
	}
	return found
}

// openPorts: nothing in a team's namespace can be reached from outside the cluster. KubeRay makes an
// Ingress for who may not make one. Others are an administrator's.
func (l look) openPorts() []Finding {
	var found []Finding
	for _, s := range l.Services {
		var how string
		switch {
		case s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer:
			how = "it has the type " + string(s.Spec.Type)
		case len(s.Spec.ExternalIPs) > 0:
			how = "it has the external addresses " + few(s.Spec.ExternalIPs)
		default:
			continue
		}
		found = append(found, Finding{Object: "Service " + s.Namespace + "/" + s.Name, Evidence: how})
	}
	for _, i := range l.Ingresses {
		if owner := metav1.GetControllerOf(&i); owner != nil && owner.Kind == "RayCluster" {
			found = append(found, Finding{
				Object:   "Ingress " + i.Namespace + "/" + i.Name,
				Evidence: "it opens the dashboard of RayCluster " + owner.Name,
			})
		}
	}
	return found
}

func finding(p corev1.Pod, evidence string) Finding {
	return Finding{Object: "Pod " + p.Namespace + "/" + p.Name, Evidence: evidence}
}
