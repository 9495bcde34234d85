// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// rules say why an object cannot be wrapped, or nothing. The first reason counts. Admission has
// more rules, which are about the AppWrapper as a whole.
var rules = []func(*packer, *part) string{
	unwrappable,   // its kind cannot be a component
	made,          // the cluster makes it
	hook,          // Helm runs it, and removes it again
	owned,         // another object makes it
	elsewhere,     // it is in another namespace
	suspended,     // nobody would start it
	queuedAlone,   // it asks for a queue that the AppWrapper would not be in
	uncountedPods, // nobody would count its pods
}

// groups are those of which nothing can be wrapped.
var groups = map[string]string{
	"kueue.x-k8s.io":               "queues and quota are not part of the work: leave it out, and name the queue with --queue",
	v1alpha1.GroupVersion.Group:    "a Run has an AppWrapper of its own: use mlbatch run submit",
	v1beta2.GroupVersion.Group:     "an AppWrapper cannot wrap another one: apply it as it is, or use --from-mcad if it is MCAD's (v1beta1)",
	"extensions":                   "clusters do not serve this group any more: write apps/v1, or networking.k8s.io/v1 for an Ingress",
	"kustomize.config.k8s.io":      "it is an input of kustomize: pack what kustomize build prints",
	"admissionregistration.k8s.io": clusterScoped,
	"apiextensions.k8s.io":         clusterScoped,
	"apiregistration.k8s.io":       clusterScoped,
	"flowcontrol.apiserver.k8s.io": clusterScoped,
	"node.k8s.io":                  clusterScoped,
}

const clusterScoped = "it belongs to the whole cluster, and not to a namespace: an administrator applies it"

// grows is about kinds whose pods no number says.
const grows = "the number of its pods changes, and Kueue would not count them: "

// unwrappableKinds have a reason each.
var unwrappableKinds = map[schema.GroupKind]string{
	{Kind: "Namespace"}:        "it belongs to the whole cluster: an administrator adds teams. Choose one with --namespace",
	{Kind: "Node"}:             clusterScoped,
	{Kind: "PersistentVolume"}: clusterScoped,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:         clusterScoped,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:  clusterScoped,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:               "it belongs to the whole cluster: an administrator adds priorities. Choose one with --priority",
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: clusterScoped,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                   clusterScoped,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:                      clusterScoped,
	{Group: "storage.k8s.io", Kind: "CSINode"}:                        clusterScoped,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:               clusterScoped,
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}:          clusterScoped,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                clusterScoped,
	{Group: "resource.k8s.io", Kind: "DeviceClass"}:                   clusterScoped,
	{Group: "resource.k8s.io", Kind: "ResourceSlice"}:                 clusterScoped,
	{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshotClass"}:   clusterScoped,
	{Group: "gateway.networking.k8s.io", Kind: "GatewayClass"}:        clusterScoped,
	{Group: "cert-manager.io", Kind: "ClusterIssuer"}:                 clusterScoped,
	{Group: "batch", Kind: "CronJob"}:                                 grows + "pack the Job of one run",
	{Group: "apps", Kind: "DaemonSet"}:                                grows + "it has one on each node",
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           grows + "leave it out, and set replicas",
	{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}:      grows + "leave it out, and set requests",
	{Group: "keda.sh", Kind: "ScaledObject"}:                          grows + "leave it out, and set replicas",
	{Group: "keda.sh", Kind: "ScaledJob"}:                             grows + "leave it out, and set replicas",
	{Kind: "Event"}:                                                   writtenByCluster,
	{Group: "events.k8s.io", Kind: "Event"}:                           writtenByCluster,
	{Group: "apps", Kind: "ControllerRevision"}:                       writtenByCluster,
}

const writtenByCluster = "the cluster writes it by itself: leave it out"

func unwrappable(_ *packer, part *part) string {
	kind := part.Object.GroupVersionKind().GroupKind()
	if reason := unwrappableKinds[kind]; reason != "" {
		return reason
	}
	return groups[kind.Group]
}

// madeEverywhere are objects that each namespace has.
var madeEverywhere = []struct{ kind, name string }{
	{"ConfigMap", "kube-root-ca.crt"}, {"ConfigMap", "openshift-service-ca.crt"}, {"ServiceAccount", "default"},
}

func made(_ *packer, part *part) string {
	for _, m := range madeEverywhere {
		if part.Object.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: m.kind}) && part.Object.GetName() == m.name {
			return "each namespace has one already: leave it out"
		}
	}
	return ""
}

func hook(_ *packer, part *part) string {
	if when := part.Object.GetAnnotations()["helm.sh/hook"]; when != "" {
		return fmt.Sprintf("it is a Helm hook (%s), and not a part of the work: render without it, with helm template --no-hooks", when)
	}
	return ""
}

func owned(_ *packer, part *part) string {
	owners := part.Object.GetOwnerReferences()
	if owner := metav1.GetControllerOf(part.Object); owner != nil {
		owners = []metav1.OwnerReference{*owner}
	}
	if len(owners) == 0 {
		return ""
	}
	return fmt.Sprintf("it belongs to %s/%s: pack that instead, or remove ownerReferences", owners[0].Kind, owners[0].Name)
}

func elsewhere(p *packer, part *part) string {
	if own := part.Object.GetNamespace(); own != "" && own != p.Namespace {
		return fmt.Sprintf("it is in namespace %s, and the AppWrapper in %s: remove metadata.namespace, or pack it alone", own, p.Namespace)
	}
	return ""
}

func suspended(_ *packer, part *part) string {
	for _, path := range [][]string{{"spec", "suspend"}, {"spec", "runPolicy", "suspend"}, {"spec", "paused"}} {
		if suspend, _, _ := unstructured.NestedBool(part.Object.Object, path...); suspend {
			return strings.Join(path, ".") + " is true, and nobody would change that: remove it, because the AppWrapper waits for quota"
		}
	}
	return ""
}

func queuedAlone(p *packer, part *part) string {
	queue := part.Object.GetLabels()[v1beta2.QueueNameLabel]
	if queue == "" || queue == p.Queue {
		return ""
	}
	return fmt.Sprintf("its label %s is %s: use --queue %s, or remove the label", v1beta2.QueueNameLabel, queue, queue)
}

// uncountedPods is about templates in kinds that MLBatch does not know.
func uncountedPods(_ *packer, part *part) string {
	if admissionrules.Known(part.Object.GroupVersionKind().GroupKind()) {
		return ""
	}
	var missing []string
	for _, path := range templatesIn(part.Object.Object, "") {
		declared := slices.ContainsFunc(part.declared, func(s v1beta2.AppWrapperPodSet) bool { return s.Path == inComponent(path) })
		if !declared {
			missing = append(missing, fmt.Sprintf("--pod-set %s/%s:%s=REPLICAS", part.Object.GetKind(), nameOf(part.Object), path))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "MLBatch does not know how many pods this kind makes: say it with " + strings.Join(missing, " and ")
}

// notesOn are what the author should know of an object that can be wrapped.
func notesOn(part *part) []string {
	kind := part.Object.GroupVersionKind().GroupKind()
	name := fmt.Sprintf("%s: %s/%s: ", part.File, kind.Kind, nameOf(part.Object))
	switch {
	case kind == schema.GroupKind{Kind: "Secret"}:
		return []string{name + "whoever may read AppWrappers can read it in this one: a Secret that is there already is safer"}
	case admissionrules.Known(kind):
		return nil
	case len(part.declared) == 0:
		return []string{name + "MLBatch does not know this kind and counts no pods of it; an administrator must list it in extraKinds"}
	}
	return []string{name + "an administrator must list this kind in extraKinds"}
}
