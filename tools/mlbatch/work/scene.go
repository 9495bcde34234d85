// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
)

// scene is what List reads.
type scene struct {
	client    client.Client
	namespace string
	now       time.Time

	wrappers  []v1beta2.AppWrapper
	runs      map[types.UID]*v1alpha1.Run
	workloads []kueue.Workload
	byOwner   map[types.UID]*kueue.Workload
	// counted is set if all Workloads were read, and queued if all LocalQueues were.
	counted, queued bool
	queues          map[types.NamespacedName]*kueue.LocalQueue
	clusterQueues   []kueue.ClusterQueue
	cohorts         []kueue.Cohort
	// pods are those that wait or crash.
	pods    map[podsOf][]corev1.Pod
	unknown []string
}

// podsOf is a label by which pods are found.
type podsOf struct{ namespace, label, value string }

// read reads everything in eight lists, and the pods that run if some crash; some may have several pages. Without
// AppWrappers there is nothing to show; whatever else is missing makes reasons less exact.
func (s *scene) read(ctx context.Context) error {
	wrappers, err := clusterstate.List[v1beta2.AppWrapper](ctx, s.client, &v1beta2.AppWrapperList{}, client.InNamespace(s.namespace))
	if err != nil {
		return s.failed(err, "appwrappers")
	}
	s.wrappers = wrappers
	s.readRuns(ctx)
	s.readWorkloads(ctx)
	s.readQueues(ctx)
	s.readPods(ctx)
	return nil
}

func (s *scene) failed(err error, resource string) error {
	if s.namespace == "" {
		resource += " in all namespaces"
	}
	return clusterstate.Failed(err, clusterstate.Request{Verb: "list", Resource: resource, Namespace: s.namespace})
}

func (s *scene) readWorkloads(ctx context.Context) {
	workloads, err := clusterstate.List[kueue.Workload](ctx, s.client, &kueue.WorkloadList{}, client.InNamespace(s.namespace))
	s.workloads = workloads
	if err != nil {
		s.unknown = append(s.unknown, s.failed(err, "workloads").Error()+"; bare jobs and the reasons for waiting are missing")
	}
	s.counted = err == nil
	s.byOwner = map[types.UID]*kueue.Workload{}
	for i, w := range s.workloads {
		for _, o := range w.OwnerReferences {
			if other := s.byOwner[o.UID]; other == nil || why.Replaces(&s.workloads[i], other) {
				s.byOwner[o.UID] = &s.workloads[i]
			}
		}
	}
}

func (s *scene) readQueues(ctx context.Context) {
	s.queues = map[types.NamespacedName]*kueue.LocalQueue{}
	s.queued = clusterstate.Each(ctx, s.client, &kueue.LocalQueueList{}, func(q *kueue.LocalQueue) {
		s.queues[client.ObjectKeyFromObject(q)] = q
	}, client.InNamespace(s.namespace)) == nil
	queues, err := clusterstate.List[kueue.ClusterQueue](ctx, s.client, &kueue.ClusterQueueList{})
	if err != nil {
		return // members see a reason with less detail
	}
	if s.cohorts, err = clusterstate.List[kueue.Cohort](ctx, s.client, &kueue.CohortList{}); err == nil {
		s.clusterQueues = queues // without cohorts the sums would be too small
	}
}

// readPods reads those that wait or crash, which are few, and tell why work does not start.
func (s *scene) readPods(ctx context.Context) {
	s.pods = map[podsOf][]corev1.Pod{}
	if s.addPods(ctx, corev1.PodPending, func(corev1.Pod) bool { return true }) {
		s.readCrashing(ctx)
	}
}

// readCrashing reads the pods that run, if a node waits before it starts the program of one again. Such a pod is in
// phase Running.
func (s *scene) readCrashing(ctx context.Context) {
	crashing := map[types.NamespacedName]bool{}
	backOff := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("reason", "BackOff")}
	err := clusterstate.Each(ctx, s.client, &corev1.EventList{}, func(e *corev1.Event) {
		if strings.Contains(e.Message, "restarting failed container") {
			crashing[types.NamespacedName{Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name}] = true
		}
	}, client.InNamespace(s.namespace), backOff)
	if err != nil {
		s.unknown = append(s.unknown, s.failed(err, "events").Error()+"; which pods crash is missing")
	}
	if len(crashing) > 0 {
		s.addPods(ctx, corev1.PodRunning, func(p corev1.Pod) bool { return crashing[client.ObjectKeyFromObject(&p)] })
	}
}

// addPods reads the pods of a phase, and keeps some.
func (s *scene) addPods(ctx context.Context, phase corev1.PodPhase, keep func(corev1.Pod) bool) bool {
	of := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("status.phase", string(phase))}
	err := clusterstate.Each(ctx, s.client, &corev1.PodList{}, func(pod *corev1.Pod) {
		if !keep(*pod) {
			return
		}
		for label, value := range pod.Labels {
			key := podsOf{pod.Namespace, label, value}
			s.pods[key] = append(s.pods[key], *pod)
		}
	}, client.InNamespace(s.namespace), of)
	if err != nil {
		s.unknown = append(s.unknown, s.failed(err, "pods").Error()+"; why pods do not start is missing")
	}
	return err == nil
}

// addPodsTo adds the pods that this label finds, and those that submit RayJobs.
func (s *scene) addPodsTo(o *explain.Objects, of podsOf) {
	o.Pods = s.pods[of]
	for _, name := range o.Submitters() {
		o.AddPods(s.pods[podsOf{of.namespace, batchv1.JobNameLabel, name}])
	}
}

// objects are those that work in a queue shares.
func (s *scene) objects(namespace, queue string) explain.Objects {
	o := explain.Objects{ClusterQueues: s.clusterQueues, Cohorts: s.cohorts, Absent: map[string]string{}, Now: s.now}
	o.LocalQueue = s.queues[types.NamespacedName{Namespace: namespace, Name: queue}]
	if o.LocalQueue == nil && s.queued && queue != "" {
		o.Absent["LocalQueue"] = queue
	}
	if o.LocalQueue != nil && s.clusterQueues != nil {
		o.Absent["ClusterQueue"] = string(o.LocalQueue.Spec.ClusterQueue)
		for _, q := range s.clusterQueues {
			if q.Name == string(o.LocalQueue.Spec.ClusterQueue) {
				delete(o.Absent, "ClusterQueue")
			}
		}
	}
	return o
}

// bareOwner is the job of a Workload, unless that is an AppWrapper.
func bareOwner(w *kueue.Workload) *metav1.OwnerReference {
	if o, owned := quota.Owner(w); owned && o.Kind != v1beta2.AppWrapperKind {
		return &o
	}
	return nil
}
