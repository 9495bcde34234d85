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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/checkup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/reading"
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
	list(ctx, r, checkup.Deployments, func(page *appsv1.DeploymentList) { o.Deployments = append(o.Deployments, page.Items...) })
	r.definitions(ctx)
	list(ctx, r, checkup.Nodes, func(page *corev1.NodeList) { o.Nodes = append(o.Nodes, page.Items...) })
	list(ctx, r, checkup.Pods, func(page *corev1.PodList) { o.Pods = append(o.Pods, page.Items...) }, client.MatchingFieldsSelector{
		Selector: fields.AndSelectors(fields.OneTermNotEqualSelector("status.phase", "Succeeded"), fields.OneTermNotEqualSelector("status.phase", "Failed")),
	})
	list(ctx, r, checkup.Namespaces, func(page *corev1.NamespaceList) { o.Namespaces = append(o.Namespaces, page.Items...) })
	list(ctx, r, checkup.ClusterQueues, func(page *kueue.ClusterQueueList) { o.ClusterQueues = append(o.ClusterQueues, page.Items...) })
	list(ctx, r, checkup.Cohorts, func(page *kueue.CohortList) { o.Cohorts = append(o.Cohorts, page.Items...) })
	list(ctx, r, checkup.Flavors, func(page *kueue.ResourceFlavorList) { o.Flavors = append(o.Flavors, page.Items...) })
	list(ctx, r, checkup.LocalQueues, func(page *kueue.LocalQueueList) { o.LocalQueues = append(o.LocalQueues, page.Items...) })
	list(ctx, r, checkup.Workloads, func(page *kueue.WorkloadList) { o.Workloads = append(o.Workloads, page.Items...) })
	list(ctx, r, checkup.AppWrappers, func(page *v1beta2.AppWrapperList) { o.AppWrappers = append(o.AppWrappers, page.Items...) })
	r.settings(ctx)
	return *o, r.broken
}

type reader struct {
	client client.Reader
	found  checkup.Objects
	// broken is why the cluster cannot be asked at all.
	broken error
}

func list[L any, P interface {
	*L
	client.ObjectList
}](ctx context.Context, r *reader, kind checkup.Kind, add func(P), options ...client.ListOption) {
	if r.broken == nil {
		r.note(reading.Pages(ctx, r.client, add, options...), kind)
	}
}

// note remembers a kind that could not be read. The kinds of the platform that a cluster does
// not serve have no objects, which is no reason to know less.
func (r *reader) note(err error, kind checkup.Kind) {
	if err == nil || notServed(err) && kind != checkup.Nodes {
		return
	}
	why := reading.Failed(err, reading.Deed{Verb: "list", Resource: string(kind)})
	if unreachable(err) {
		r.broken = why
		return
	}
	r.found.Unread[kind] = why.Error()
}

func (r *reader) definitions(ctx context.Context) {
	err := error(nil)
	for next, more := "", r.broken == nil; more; more = next != "" && err == nil {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(definition.GroupVersion().WithKind(definition.Kind + "List"))
		if err = r.client.List(ctx, page, client.Limit(reading.Page), client.Continue(next)); err == nil {
			for _, item := range page.Items {
				r.found.Definitions = append(r.found.Definitions, defined(item))
			}
		}
		next = page.GetContinue()
	}
	r.note(err, checkup.Definitions)
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
