// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// queued is a kind that may be queued without an AppWrapper, and the label that its pods have.
type queued struct {
	kind     schema.GroupVersionKind
	podLabel string
}

// bare are these kinds, by the name in KIND/NAME.
var bare = bareKinds()

func bareKinds() map[string]queued {
	all := map[string]queued{"job": {batchv1.SchemeGroupVersion.WithKind("Job"), batchv1.JobNameLabel}}
	for _, k := range parts.Kinds() {
		if k.Bare {
			all[strings.ToLower(k.Name)] = queued{schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Name}, k.PodLabel}
		}
	}
	return all
}

// PodLabel is the label that pods of a bare job have. Its value is the name of the job.
func PodLabel(kind string) string {
	for _, b := range bare {
		if b.kind.Kind == kind {
			return b.podLabel
		}
	}
	return ""
}

// Mapper knows the kinds that are read. Other than one that asks the cluster, it costs no request.
func Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Workload", "LocalQueue"} {
		mapper.Add(kueue.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"ClusterQueue", "Cohort", "ResourceFlavor", "WorkloadPriorityClass"} {
		mapper.Add(kueue.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), meta.RESTScopeRoot)
	mapper.Add(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), meta.RESTScopeRoot)
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Event"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
		appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"), corev1.SchemeGroupVersion.WithKind("Service"),
		v1beta2.GroupVersion.WithKind("AppWrapper"), v1alpha1.GroupVersion.WithKind("Run"), visibility.SchemeGroupVersion.WithKind("LocalQueue"),
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	for _, b := range bare {
		mapper.Add(b.kind, meta.RESTScopeNamespace)
	}
	return mapper
}

// Target is what the question is about. Without a kind any with the name will do.
type Target struct{ Kind, Namespace, Name string }

// shortNames are those of kubectl.
var shortNames = map[string]string{"aw": "appwrapper", "lws": "leaderworkerset"}

// Parse reads NAME or KIND/NAME.
func Parse(namespace, text string) (Target, error) {
	kind, name, both := strings.Cut(text, "/")
	if !both {
		kind, name = "", text
	}
	kind, _, _ = strings.Cut(strings.ToLower(kind), ".")
	kind = strings.TrimSuffix(kind, "s")
	for _, as := range []string{kind, kind + "s"} { // lws ends with s
		if long, short := shortNames[as]; short {
			kind = long
		}
	}
	_, known := bare[kind]
	if name == "" || strings.Contains(name, "/") || both && !known && kind != "appwrapper" && kind != "run" {
		kinds := strings.Join(slices.Sorted(maps.Keys(bare)), ", ")
		return Target{}, fmt.Errorf("cannot read %q: write NAME or KIND/NAME; kinds are appwrapper, run, %s", text, kinds)
	}
	return Target{kind, namespace, name}, nil
}
