// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"cmp"
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
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// priorityClassLabel names the WorkloadPriorityClass of a job, by which Kueue orders a queue.
const priorityClassLabel = "kueue.x-k8s.io/priority-class"

// ErrNeverAdmitted is returned for a job that its queue can never admit as it is configured now.
var ErrNeverAdmitted = errors.New("the job can never be admitted")

// Check returns an error if an AppWrapper can never run. Checks that need permissions that the
// user lacks are skipped, with a note for each. The advice says, by kind, what its author can do
// if the cluster does not serve a kind.
func Check(ctx context.Context, c client.Client, aw *v1beta2.AppWrapper, advice map[string]string) (notes []string, err error) {
	podSets, err := podSetsOf(aw)
	if err != nil {
		return nil, err
	}
	if err := checkKinds(c.RESTMapper(), aw, advice); err != nil {
		return nil, err
	}
	for _, checkCluster := range []func() error{
		func() error { return checkPriorities(ctx, c, aw, podSets) },
		func() error {
			found, err := checkQueue(ctx, c, aw, podSets)
			notes = append(notes, found...)
			return err
		},
	} {
		err := checkCluster()
		if apierrors.IsForbidden(err) {
			notes = append(notes, fmt.Sprintf("skipped a check: %v (an administrator can bind the role mlbatch-view-queues)", err))
		} else if err != nil {
			return notes, err
		}
	}
	return notes, nil
}

// missingKindAdvice is for jobs of the generator.
var missingKindAdvice = map[string]string{
	"JobSet":     "ask an administrator to enable jobset, or set backend to pytorchjob",
	"PyTorchJob": "ask an administrator to enable training-operator, or set backend to jobset",
	"PodGroup":   "ask an administrator to enable coscheduler, or set podGroup to false",
}

// checkKinds returns an error unless the cluster serves the kinds of all wrapped resources.
func checkKinds(mapper meta.RESTMapper, aw *v1beta2.AppWrapper, advice map[string]string) error {
	for _, component := range aw.Spec.Components {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(component.Template.Raw, &object); err != nil {
			return fmt.Errorf("cannot read the rendered job: %w", err)
		}
		gvk := object.GroupVersionKind()
		_, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("the cluster does not serve %s: %s", gvk.Kind, advice[gvk.Kind])
		}
		if err != nil {
			return fmt.Errorf("cannot ask the cluster whether it serves %s: %w", gvk.Kind, err)
		}
	}
	return nil
}

func checkQueue(ctx context.Context, c client.Reader, aw *v1beta2.AppWrapper, podSets []quota.PodSet) (notes []string, err error) {
	name := aw.Labels[v1beta2.QueueNameLabel]
	if name == "" {
		return nil, nil // the controller may set its default queue, which is not known here
	}
	local, err := localQueue(ctx, c, aw.Namespace, name)
	if err != nil {
		return nil, err
	}
	return checkQuota(ctx, c, podSets, local)
}

func checkPriorities(ctx context.Context, c client.Reader, aw *v1beta2.AppWrapper, podSets []quota.PodSet) error {
	if err := getNamed(ctx, c, "PriorityClass", podSets[0].PriorityClass, &schedulingv1.PriorityClass{}); err != nil {
		return fmt.Errorf("%w: change priority, or ask an administrator", err)
	}
	class := aw.Labels[priorityClassLabel]
	if class == "" {
		return nil
	}
	if err := getNamed(ctx, c, "WorkloadPriorityClass", class, &kueue.WorkloadPriorityClass{}); err != nil {
		return fmt.Errorf("%w: change workloadPriorityClass, or ask an administrator", err)
	}
	return nil
}

// getNamed reads a cluster-scoped object.
func getNamed(ctx context.Context, c client.Reader, kind, name string, into client.Object) error {
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
	all, err := clusterstate.List[kueue.LocalQueue](ctx, c, &kueue.LocalQueueList{}, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("cannot list the queues of namespace %s: %w", namespace, err)
	}
	var names []string
	for _, q := range all {
		names = append(names, q.Name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, fmt.Errorf("namespace %s has no queue: choose the namespace of a team with --namespace", namespace)
	}
	return nil, fmt.Errorf("namespace %s has no queue %s: set queueName to one of: %s", namespace, name, strings.Join(names, ", "))
}

func checkQuota(ctx context.Context, c client.Reader, podSets []quota.PodSet, local *kueue.LocalQueue) (notes []string, err error) {
	queue := &kueue.ClusterQueue{}
	if err := getNamed(ctx, c, "ClusterQueue", string(local.Spec.ClusterQueue), queue); err != nil {
		return nil, fmt.Errorf("queue %s: %w", local.Name, err)
	}
	// Users who may not read namespaces may still be able to read queues.
	namespaceErr := checkNamespace(ctx, c, local.Namespace, queue)
	if namespaceErr != nil && !apierrors.IsForbidden(namespaceErr) {
		return nil, namespaceErr
	}
	queues, err := clusterstate.List[kueue.ClusterQueue](ctx, c, &kueue.ClusterQueueList{})
	cohorts, err2 := clusterstate.List[kueue.Cohort](ctx, c, &kueue.CohortList{})
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("cannot list the queues and cohorts that lend quota to ClusterQueue %s: %w", queue.Name, err)
	}
	reasons := quota.Reasons(podSets, *queue, quota.Tree{Queues: queues, Cohorts: cohorts})
	if len(reasons) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrNeverAdmitted, strings.Join(reasons, "; "))
	}
	notes, err = checkNodes(ctx, c, podSets, *queue)
	return notes, cmp.Or(namespaceErr, err)
}

// checkNodes returns notes about pods that fit no node. They are no errors, because nodes come and go.
func checkNodes(ctx context.Context, c client.Reader, podSets []quota.PodSet, queue kueue.ClusterQueue) (notes []string, err error) {
	flavors, err := clusterstate.List[kueue.ResourceFlavor](ctx, c, &kueue.ResourceFlavorList{})
	if err != nil {
		return nil, fmt.Errorf("cannot list the flavors, which say what nodes have: %w", err)
	}
	for _, sentence := range quota.FitsNoNode(podSets, queue, flavors) {
		notes = append(notes, "note: "+sentence+": it waits with its quota until a larger node is added")
	}
	return notes, nil
}

// checkNamespace returns an error unless the queue's namespaceSelector selects the namespace.
func checkNamespace(ctx context.Context, c client.Reader, name string, queue *kueue.ClusterQueue) error {
	namespace := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return fmt.Errorf("cannot look up namespace %s: %w", name, err)
	}
	selector, err := metav1.LabelSelectorAsSelector(queue.Spec.NamespaceSelector)
	if err != nil {
		return fmt.Errorf("ClusterQueue %s has an invalid namespaceSelector: %w", queue.Name, err)
	}
	if !selector.Matches(labels.Set(namespace.Labels)) {
		return fmt.Errorf("%w: ClusterQueue %s admits no work from namespace %s", ErrNeverAdmitted, queue.Name, name)
	}
	return nil
}
