// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

func (r *gathering) readRun(ctx context.Context) error {
	run := &v1alpha1.Run{}
	if err := r.client.Get(ctx, r.key(r.target.Name), run); err != nil {
		return err
	}
	r.Run = run
	made := run.Status.AppWrapper
	if made == nil {
		return nil
	}
	aw := &v1beta2.AppWrapper{}
	err := r.client.Get(ctx, r.key(made.Name), aw)
	switch {
	case err == nil && aw.UID == made.UID:
		r.AppWrapper = aw
	case err != nil && !apierrors.IsNotFound(err):
		r.unread(err, "AppWrapper "+made.Name)
	}
	return nil
}

func (r *gathering) readAppWrapper(ctx context.Context) error {
	aw := &v1beta2.AppWrapper{}
	err := r.client.Get(ctx, r.key(r.target.Name), aw)
	if err == nil {
		r.AppWrapper = aw
	}
	return err
}

// readQueues reads the queues of work that waits.
func (r *gathering) readQueues(ctx context.Context) {
	name := r.queueName()
	if name == "" || !r.pending() {
		return
	}
	queue := &kueue.LocalQueue{}
	switch err := r.client.Get(ctx, r.key(name), queue); {
	case gone(err):
		r.Absent["LocalQueue"] = name
		return
	case err != nil:
		r.unread(err, "LocalQueue "+name)
		return
	}
	r.LocalQueue = queue
	r.readQuota(ctx)
	if r.Workload != nil {
		r.readPosition(ctx)
	}
}

// gone reports whether an object does not exist, though its kind does.
func gone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// labels are those of the work.
func (r *gathering) labels() map[string]string {
	switch {
	case r.AppWrapper != nil:
		return r.AppWrapper.Labels
	case r.Job != nil:
		return r.Job.GetLabels()
	}
	return nil
}

func (r *gathering) queueName() string {
	labels := r.labels()
	if r.Workload != nil {
		return cmp.Or(string(r.Workload.Spec.QueueName), labels[v1beta2.QueueNameLabel])
	}
	return labels[v1beta2.QueueNameLabel]
}

func (r *gathering) pending() bool {
	return r.Workload == nil || !meta.IsStatusConditionTrue(r.Workload.Status.Conditions, kueue.WorkloadQuotaReserved)
}

// readQuota reads all ClusterQueues, because those of the cohort lend and borrow.
func (r *gathering) readQuota(ctx context.Context) {
	queues, err := clusterstate.List[kueue.ClusterQueue](ctx, r.client, &kueue.ClusterQueueList{})
	if err != nil {
		r.unread(err, "the ClusterQueues, which say whose quota is in use: an administrator can bind the role mlbatch-view-queues")
		return
	}
	r.judgeQueue(queues)
	cohorts, err := clusterstate.List[kueue.Cohort](ctx, r.client, &kueue.CohortList{})
	if err != nil {
		r.unread(err, "the Cohorts, which say what can be borrowed")
		return
	}
	// One without the other would give too small sums.
	r.ClusterQueues, r.Cohorts = queues, cohorts
}

func (r *gathering) judgeQueue(queues []kueue.ClusterQueue) {
	wanted := string(r.LocalQueue.Spec.ClusterQueue)
	for _, q := range queues {
		if q.Name == wanted {
			return
		}
	}
	r.Absent["ClusterQueue"] = wanted
}

// readPosition reads Kueue's own order. If it is not served, as by default, Workloads and queues say almost the same.
func (r *gathering) readPosition(ctx context.Context) {
	queue, answer := &unstructured.Unstructured{}, &unstructured.Unstructured{} // the scheme lacks its LocalQueue
	queue.SetGroupVersionKind(visibility.SchemeGroupVersion.WithKind("LocalQueue"))
	queue.SetNamespace(r.target.Namespace)
	queue.SetName(r.LocalQueue.Name)
	if err := r.client.SubResource("pendingworkloads").Get(ctx, queue, answer); err != nil {
		if !apierrors.IsNotFound(err) {
			r.unread(err, "its position in the queue")
		} else if r.counted {
			r.Position = explain.PositionAmong(r.workloads, r.Workload, r.LocalQueue, r.ClusterQueues)
		}
		return
	}
	var summary visibility.PendingWorkloadsSummary
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, &summary); err != nil {
		return
	}
	for _, w := range summary.Items {
		if w.Name == r.Workload.Name {
			r.Position = &explain.Position{LocalQueue: w.PositionInLocalQueue, ClusterQueue: w.PositionInClusterQueue}
		}
	}
}

// readPods reads the pods, and the warnings of the namespace, which has them of the pods and their owners.
func (r *gathering) readPods(ctx context.Context) {
	label, name := podLabel(r.Objects)
	if label == "" && r.Job != nil {
		r.Unread = append(r.Unread, fmt.Sprintf("the pods of a %s cannot be found by a label: look at what it has made", r.Job.GetKind()))
	}
	if label == "" {
		return
	}
	pods, err := clusterstate.List[corev1.Pod](ctx, r.client, &corev1.PodList{}, client.InNamespace(r.target.Namespace), client.MatchingLabels{label: name})
	r.Pods = pods
	r.readSubmitters(ctx)
	if err != nil {
		r.unread(err, "the pods")
	} else if len(r.Pods) == 0 {
		r.Absent["Pod"] = "of " + r.name()
	}
	r.readWarnings(ctx)
	r.readChildren(ctx)
}

// readSubmitters reads the pods of RayJobs that the label does not find.
func (r *gathering) readSubmitters(ctx context.Context) {
	for _, name := range r.Submitters() {
		pods, err := clusterstate.List[corev1.Pod](ctx, r.client, &corev1.PodList{}, client.InNamespace(r.target.Namespace), client.MatchingLabels{batchv1.JobNameLabel: name})
		if err != nil {
			r.unread(err, "the pods of Job "+name)
		}
		r.AddPods(pods)
	}
}

func (r *gathering) readWarnings(ctx context.Context) {
	warnings := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("type", corev1.EventTypeWarning)}
	events, all, err := clusterstate.Some[corev1.Event](ctx, r.client, &corev1.EventList{}, 1, client.InNamespace(r.target.Namespace), warnings)
	r.Events = events
	switch {
	case err != nil:
		r.unread(err, "the events")
	case !all:
		r.Unread = append(r.Unread, fmt.Sprintf("there are more than %d warnings in the namespace: the others were not read", clusterstate.Page))
	}
}

// name is the kind and the name of what has pods.
func (r *gathering) name() string {
	if r.AppWrapper != nil {
		return "AppWrapper " + r.AppWrapper.Name
	}
	return r.Job.GetKind() + " " + r.Job.GetName()
}

// podLabel is the label by which the pods are found, and its value.
func podLabel(o explain.Objects) (label, name string) {
	switch {
	case o.AppWrapper != nil:
		return v1beta2.AppWrapperLabel, o.AppWrapper.Name
	case o.Job != nil:
		return PodLabel(o.Job.GetKind()), o.Job.GetName()
	}
	return "", ""
}

// notFound has the names of what could have been meant.
func (r *gathering) notFound(ctx context.Context) error {
	e := NotFoundError{Target: r.target, Names: Names(ctx, r.client, r.target.Namespace)}
	for _, w := range r.workloads {
		for _, o := range w.OwnerReferences {
			e.Names = append(e.Names, o.Name)
		}
	}
	return e
}
