// SPDX-License-Identifier: Apache-2.0

// Package snapshot reads what package audit judges, as it was at one revision. It lists objects,
// and sends no other request.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// ErrForbidden is returned if the user may not list a kind that the audit needs.
var ErrForbidden = errors.New("bind the ClusterRole mlbatch-audit to yourself")

// Resources are what is read on every cluster. Owners of other kinds are read if a pod has one.
var Resources = []schema.GroupResource{
	{Resource: "namespaces"}, {Resource: "pods"}, {Resource: "services"}, {Resource: "nodes"},
	{Group: networkingv1.GroupName, Resource: "ingresses"},
	{Group: workload.GroupVersion.Group, Resource: "appwrappers"},
	{Group: kueue.SchemeGroupVersion.Group, Resource: "workloads"}, {Group: kueue.SchemeGroupVersion.Group, Resource: "clusterqueues"},
	{Group: kueue.SchemeGroupVersion.Group, Resource: "cohorts"}, {Group: kueue.SchemeGroupVersion.Group, Resource: "resourceflavors"},
}

// Read reads one moment: all namespaces of teams, or only these.
func Read(ctx context.Context, api client.Client, now time.Time, only []string) (audit.Moment, error) {
	r := &reader{api: &clusterstate.Moment{Client: api}, moment: audit.Moment{Time: now, Unread: map[string]string{}, HostPaths: map[string][]string{}, Tolerations: map[string][]string{}}}
	m := &r.moment
	if err := r.readNamespaces(ctx, only); err != nil {
		return audit.Moment{}, r.explain(err)
	}
	for _, read := range []func(context.Context) error{r.readPods, r.readWork, r.readQuota, r.readDoors, r.readNodes, r.readOwners} {
		if err := read(ctx); err != nil {
			return audit.Moment{}, r.explain(err)
		}
	}
	m.Revision = r.api.Revision
	return *m, r.explain(nil)
}

func (r *reader) readPods(ctx context.Context) error {
	return list(ctx, r, &corev1.PodList{}, func(p *corev1.Pod) {
		if r.audited(p) {
			r.moment.Pods = append(r.moment.Pods, *p)
		}
	})
}

func (r *reader) readWork(ctx context.Context) error {
	m := &r.moment
	err := list(ctx, r, &kueue.WorkloadList{}, func(w *kueue.Workload) { m.Workloads = append(m.Workloads, *w) })
	if err != nil {
		return err
	}
	return list(ctx, r, &workload.AppWrapperList{}, func(aw *workload.AppWrapper) {
		if r.audited(aw) {
			aw.Spec.Components = nil // templates are large, and not judged
			m.AppWrappers = append(m.AppWrappers, *aw)
		}
	})
}

func (r *reader) readQuota(ctx context.Context) error {
	m := &r.moment
	if err := list(ctx, r, &kueue.ClusterQueueList{}, func(q *kueue.ClusterQueue) { m.Queues = append(m.Queues, *q) }); err != nil {
		return err
	}
	if err := list(ctx, r, &kueue.CohortList{}, func(c *kueue.Cohort) { m.Cohorts = append(m.Cohorts, *c) }); err != nil {
		return err
	}
	return list(ctx, r, &kueue.ResourceFlavorList{}, func(f *kueue.ResourceFlavor) { m.Flavors = append(m.Flavors, *f) })
}

func (r *reader) readDoors(ctx context.Context) error {
	err := list(ctx, r, &corev1.ServiceList{}, func(s *corev1.Service) {
		if r.audited(s) {
			r.moment.Services = append(r.moment.Services, *s)
		}
	})
	if err != nil {
		return err
	}
	return list(ctx, r, &networkingv1.IngressList{}, func(i *networkingv1.Ingress) {
		if r.audited(i) {
			r.moment.Ingresses = append(r.moment.Ingresses, *i)
		}
	})
}

func (r *reader) readNodes(ctx context.Context) error {
	return list(ctx, r, &corev1.NodeList{}, func(n *corev1.Node) {
		n.Status = corev1.NodeStatus{} // images are many, and not judged
		r.moment.Nodes = append(r.moment.Nodes, *n)
	})
}

func (r *reader) audited(o metav1.Object) bool {
	return slices.Contains(r.moment.Namespaces, o.GetNamespace())
}

// reader reads a moment. The revision is that of the first list.
type reader struct {
	api       *clusterstate.Moment
	moment    audit.Moment
	forbidden []string
}

// hostPathsAnnotation has the folders of the node that charts/teams gives to a team.
const hostPathsAnnotation = "mlbatch-allowed-host-paths"

// list passes each object of a kind to keep. A kind that the user may not list is remembered, so
// that one error names all of them.
func list[T any](ctx context.Context, r *reader, kind client.ObjectList, keep func(*T)) error {
	err := clusterstate.Each(ctx, r.api, kind, keep)
	if apierrors.IsForbidden(err) {
		r.forbidden = append(r.forbidden, resourceOf(err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the cluster: %w", err)
	}
	return nil
}

func (r *reader) readNamespaces(ctx context.Context, only []string) error {
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	missing := slices.Clone(only)
	err := list(ctx, r, namespaces, func(n *metav1.PartialObjectMetadata) {
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == n.Name })
		if slices.Contains(only, n.Name) || len(only) == 0 && n.Labels[quota.TeamLabel] == "true" {
			r.moment.Namespaces = append(r.moment.Namespaces, n.Name)
			if listed, is := n.Annotations[admissionrules.TolerationsAnnotation]; is {
				r.moment.Tolerations[n.Name] = strings.Split(listed, ",")
			}
			r.moment.HostPaths[n.Name] = strings.Split(n.Annotations[hostPathsAnnotation], ",")
		}
	})
	switch {
	case err != nil || len(r.forbidden) > 0:
		return err
	case len(missing) > 0:
		return fmt.Errorf("there is no namespace %s: check --namespace", strings.Join(missing, ", "))
	case len(r.moment.Namespaces) == 0:
		return fmt.Errorf("no namespace has the label %s=true: name those to audit with --namespace", quota.TeamLabel)
	}
	return nil
}

// explain returns one sentence for all that is missing.
func (r *reader) explain(err error) error {
	switch {
	case len(r.forbidden) > 0:
		return fmt.Errorf("you may not list %s: %w", strings.Join(r.forbidden, ", "), ErrForbidden)
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the platform is not installed on this cluster: check --context: %w", err)
	}
	return err
}

// resourceOf is what an API server refused to list.
func resourceOf(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return err.Error()
	}
	details := status.Status().Details
	return strings.TrimSuffix(details.Kind+"."+details.Group, ".") // its Kind is a resource
}
