// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/queuefit"
)

// priorityClassLabel names the WorkloadPriorityClass that Kueue orders its queue by.
const priorityClassLabel = "kueue.x-k8s.io/priority-class"

// ErrNeverAdmitted is the error of a job that its queue, as it is, would never admit.
var ErrNeverAdmitted = errors.New("the job can never be admitted")

// check says in a sentence why a job can never run. What the user may not look at is
// not checked, and said in a note.
func check(ctx context.Context, c client.Client, aw *v1beta2.AppWrapper) (notes []string, err error) {
	podSets, err := podSetsOf(aw)
	if err != nil {
		return nil, err
	}
	if err := checkKinds(c.RESTMapper(), aw); err != nil {
		return nil, err
	}
	for _, look := range []func() error{
		func() error { return checkPriorities(ctx, c, aw, podSets) },
		func() error { return checkQueue(ctx, c, aw, podSets) },
	} {
		err := look()
		if apierrors.IsForbidden(err) {
			notes = append(notes, fmt.Sprintf("not all is checked: %v (an administrator can bind the role mlbatch-view-queues)", err))
		} else if err != nil {
			return notes, err
		}
	}
	return notes, nil
}

// instead is what to do on a cluster that lacks a kind.
var instead = map[string]string{
	"JobSet":     "ask an administrator for the platform's part jobset, or set backend to pytorchjob",
	"PyTorchJob": "ask an administrator for the platform's part training-operator, or set backend to jobset",
	"PodGroup":   "ask an administrator for the platform's part coscheduler, or set podGroup to false",
}

// checkKinds asks whether the cluster knows what is wrapped.
func checkKinds(mapper meta.RESTMapper, aw *v1beta2.AppWrapper) error {
	for _, component := range aw.Spec.Components {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(component.Template.Raw, &object); err != nil {
			return fmt.Errorf("cannot read the rendered job: %w", err)
		}
		gvk := object.GroupVersionKind()
		_, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("the cluster does not serve %s: %s", gvk.Kind, instead[gvk.Kind])
		}
		if err != nil {
			return fmt.Errorf("cannot ask the cluster whether it knows %s: %w", gvk.Kind, err)
		}
	}
	return nil
}

func checkQueue(ctx context.Context, c client.Reader, aw *v1beta2.AppWrapper, podSets []queuefit.PodSet) error {
	name := aw.Labels[v1beta2.QueueNameLabel]
	if name == "" {
		return nil // the cluster chooses the queue
	}
	local, err := localQueue(ctx, c, aw.Namespace, name)
	if err != nil {
		return err
	}
	return checkQuota(ctx, c, podSets, local)
}

func checkPriorities(ctx context.Context, c client.Reader, aw *v1beta2.AppWrapper, podSets []queuefit.PodSet) error {
	if err := exists(ctx, c, "PriorityClass", podSets[0].PriorityClass, &schedulingv1.PriorityClass{}); err != nil {
		return fmt.Errorf("%w: change priority, or ask an administrator", err)
	}
	class := aw.Labels[priorityClassLabel]
	if class == "" {
		return nil
	}
	if err := exists(ctx, c, "WorkloadPriorityClass", class, &kueue.WorkloadPriorityClass{}); err != nil {
		return fmt.Errorf("%w: change workloadPriorityClass, or ask an administrator", err)
	}
	return nil
}

// exists looks an object of the cluster up.
func exists(ctx context.Context, c client.Reader, kind, name string, into client.Object) error {
	err := c.Get(ctx, client.ObjectKey{Name: name}, into)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no %s %s", kind, name)
	}
	if err != nil {
		return fmt.Errorf("cannot look up %s %s: %w", kind, name, err)
	}
	return nil
}

func localQueue(ctx context.Context, c client.Reader, namespace, name string) (*kueue.LocalQueue, error) {
	queue := &kueue.LocalQueue{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, queue)
	if err == nil {
		return queue, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cannot look up LocalQueue %s: %w", name, err)
	}
	var all kueue.LocalQueueList
	if err := c.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the queues of namespace %s: %w", namespace, err)
	}
	var names []string
	for _, q := range all.Items {
		names = append(names, q.Name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, fmt.Errorf("namespace %s has no queue: choose a team's with --namespace", namespace)
	}
	return nil, fmt.Errorf("namespace %s has no queue %s: set queueName to one of its own: %s", namespace, name, strings.Join(names, ", "))
}

func checkQuota(ctx context.Context, c client.Reader, podSets []queuefit.PodSet, local *kueue.LocalQueue) error {
	queue := &kueue.ClusterQueue{}
	if err := exists(ctx, c, "ClusterQueue", string(local.Spec.ClusterQueue), queue); err != nil {
		return fmt.Errorf("queue %s leads nowhere: %w", local.Name, err)
	}
	// Who may not look at namespaces may well look at queues.
	retryPause := checkNamespace(ctx, c, local.Namespace, queue)
	if retryPause != nil && !apierrors.IsForbidden(retryPause) {
		return retryPause
	}
	var queues kueue.ClusterQueueList
	var cohorts kueue.CohortList
	if err := errors.Join(c.List(ctx, &queues), c.List(ctx, &cohorts)); err != nil {
		return fmt.Errorf("cannot read who lends quota to ClusterQueue %s: %w", queue.Name, err)
	}
	reasons := queuefit.Reasons(podSets, *queue, queuefit.Quota{Queues: queues.Items, Cohorts: cohorts.Items})
	if len(reasons) > 0 {
		return fmt.Errorf("%w: %s", ErrNeverAdmitted, strings.Join(reasons, "; "))
	}
	return retryPause
}

// checkNamespace asks whether a queue admits work of the namespace at all.
func checkNamespace(ctx context.Context, c client.Reader, name string, queue *kueue.ClusterQueue) error {
	namespace := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return fmt.Errorf("cannot look up namespace %s: %w", name, err)
	}
	selector, err := metav1.LabelSelectorAsSelector(queue.Spec.NamespaceSelector)
	if err != nil {
		return fmt.Errorf("ClusterQueue %s has a wrong namespaceSelector: %w", queue.Name, err)
	}
	if !selector.Matches(labels.Set(namespace.Labels)) {
		return fmt.Errorf("%w: ClusterQueue %s admits no work of namespace %s", ErrNeverAdmitted, queue.Name, name)
	}
	return nil
}
