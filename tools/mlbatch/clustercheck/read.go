// SPDX-License-Identifier: Apache-2.0

// Package clustercheck reads what package checkup judges, one list a kind, and prints its report.
package clustercheck

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

var definition = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Mapper knows the kinds that are read. It costs no request.
func Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		definition: meta.RESTScopeRoot,
		corev1.SchemeGroupVersion.WithKind("Node"):          meta.RESTScopeRoot,
		corev1.SchemeGroupVersion.WithKind("Namespace"):     meta.RESTScopeRoot,
		corev1.SchemeGroupVersion.WithKind("Pod"):           meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("ConfigMap"):     meta.RESTScopeNamespace,
		appsv1.SchemeGroupVersion.WithKind("Deployment"):    meta.RESTScopeNamespace,
		kueue.SchemeGroupVersion.WithKind("ClusterQueue"):   meta.RESTScopeRoot,
		kueue.SchemeGroupVersion.WithKind("Cohort"):         meta.RESTScopeRoot,
		kueue.SchemeGroupVersion.WithKind("ResourceFlavor"): meta.RESTScopeRoot,
		kueue.SchemeGroupVersion.WithKind("LocalQueue"):     meta.RESTScopeNamespace,
		kueue.SchemeGroupVersion.WithKind("Workload"):       meta.RESTScopeNamespace,
		v1beta2.GroupVersion.WithKind("AppWrapper"):         meta.RESTScopeNamespace,
	} {
		mapper.Add(kind, scope)
	}
	return mapper
}

// Read lists everything in the cluster that is judged. What the user may not list is named in
// Unread. Only a cluster that does not answer is an error.
func Read(ctx context.Context, c client.Reader, now time.Time) (checkup.Objects, error) {
	versions, err := setup.Load()
	if err != nil {
		return checkup.Objects{}, err
	}
	r := &reader{client: c}
	o := &r.found
	o.Now, o.Release, o.Signs, o.Unread = now, versions, nodesigns.Default(), map[checkup.Kind]string{}
	o.Deployments = list[appsv1.Deployment](ctx, r, checkup.Deployments, &appsv1.DeploymentList{})
	for _, d := range list[unstructured.Unstructured](ctx, r, checkup.Definitions, definitions()) {
		o.Definitions = append(o.Definitions, defined(d))
	}
	o.Nodes = list[corev1.Node](ctx, r, checkup.Nodes, &corev1.NodeList{})
	o.Pods = list[corev1.Pod](ctx, r, checkup.Pods, &corev1.PodList{}, clusterstate.NotEnded())
	o.Namespaces = list[corev1.Namespace](ctx, r, checkup.Namespaces, &corev1.NamespaceList{})
	o.ClusterQueues = list[kueue.ClusterQueue](ctx, r, checkup.ClusterQueues, &kueue.ClusterQueueList{})
	o.Cohorts = list[kueue.Cohort](ctx, r, checkup.Cohorts, &kueue.CohortList{})
	o.Flavors = list[kueue.ResourceFlavor](ctx, r, checkup.Flavors, &kueue.ResourceFlavorList{})
	o.LocalQueues = list[kueue.LocalQueue](ctx, r, checkup.LocalQueues, &kueue.LocalQueueList{})
	o.Workloads = list[kueue.Workload](ctx, r, checkup.Workloads, &kueue.WorkloadList{})
	o.AppWrappers = list[v1beta2.AppWrapper](ctx, r, checkup.AppWrappers, &v1beta2.AppWrapperList{})
	r.settings(ctx)
	return *o, r.broken
}

type reader struct {
	client client.Reader
	found  checkup.Objects
	// broken is why the cluster cannot be asked at all.
	broken error
}

func list[T any](ctx context.Context, r *reader, kind checkup.Kind, as client.ObjectList, options ...client.ListOption) []T {
	if r.broken != nil {
		return nil
	}
	all, err := clusterstate.List[T](ctx, r.client, as, options...)
	r.note(err, kind)
	return all
}

// note remembers a kind that could not be read. The kinds of the platform that a cluster does
// not serve have no objects, which is no reason to know less.
func (r *reader) note(err error, kind checkup.Kind) {
	if err == nil || notServed(err) && kind != checkup.Nodes {
		return
	}
	why := clusterstate.Failed(err, clusterstate.Request{Verb: "list", Resource: string(kind)})
	if unreachable(err) {
		r.broken = why
		return
	}
	r.found.Unread[kind] = why.Error()
}

func definitions() client.ObjectList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(definition.GroupVersion().WithKind(definition.Kind + "List"))
	return list
}

func defined(o unstructured.Unstructured) checkup.Definition {
	d := checkup.Definition{Name: o.GetName()}
	versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["served"] == true {
			d.Served = append(d.Served, fmt.Sprint(version["name"]))
		}
	}
	return d
}
