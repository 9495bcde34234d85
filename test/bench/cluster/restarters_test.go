// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

// Who runs jobs again after a fault.
const ours, theirs, kueues = "AppWrapper", "JobSet", "Job with Kueue"

// restarter runs jobs again after a fault. They are in a namespace of their own.
type restarter struct {
	by, namespace string
	labels        map[string]string
	// prepare creates what jobs need, and tells of jobs with which the restarter finds something wrong.
	prepare func(f *fleet, found func(job string))
	// job of a number, which tries again as often as it needs to.
	job func(i int) client.Object
}

// populations have all nodes, one after the other. Kueue has them for itself: it would assign room to
// which others are faster.
var populations = []struct {
	name       string
	restarters []restarter
}{
	{"AppWrappersAndJobSets", []restarter{
		{by: ours, namespace: "react-appwrappers", prepare: followAppWrappers, job: appWrapper},
		{by: theirs, namespace: "react-jobsets", prepare: followJobSets, job: jobSet},
	}},
	{"Kueue", []restarter{
		{by: kueues, namespace: "react-kueue", labels: sandbox.Team, prepare: followWorkloads, job: queuedJob},
	}},
}

// job has pods that leave a sixth of the nodes free, if there are ten of them for each.
func job(i int) *batchv1.Job {
	name := fmt.Sprintf("job-%04d", i)
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](gang), Completions: ptr.To[int32](gang), BackoffLimit: new(int32),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{ofJob: name}},
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
					Name: "main", Image: "registry.example/work:1",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}},
				}}},
			},
		},
	}
}

func appWrapper(i int) client.Object {
	j := job(i)
	raw, err := json.Marshal(j)
	if err != nil {
		panic(err) // a Job is JSON
	}
	return &workload.AppWrapper{
		ObjectMeta: metav1.ObjectMeta{Name: j.Name, Annotations: map[string]string{
			workload.RetryPausePeriodDurationAnnotation: "0s", workload.ForcefulDeletionGracePeriodAnnotation: "30s", workload.RetryLimitAnnotation: "100",
		}},
		Spec: workload.AppWrapperSpec{Components: []workload.AppWrapperComponent{{Template: runtime.RawExtension{Raw: raw}}}},
	}
}

func followAppWrappers(f *fleet, found func(string)) {
	sandbox.Follow(f.T, f.admin, &workload.AppWrapperList{}, func(aw *workload.AppWrapper, _ bool) {
		if aw.Status.Phase == workload.AppWrapperResetting {
			found(aw.Name)
		}
	})
}

func jobSet(i int) client.Object {
	j := job(i)
	return &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: j.Name},
		Spec: jobset.JobSetSpec{
			FailurePolicy:  &jobset.FailurePolicy{MaxRestarts: 100},
			ReplicatedJobs: []jobset.ReplicatedJob{{Name: "main", Replicas: 1, Template: batchv1.JobTemplateSpec{Spec: j.Spec}}},
		},
	}
}

func followJobSets(f *fleet, found func(string)) {
	restarts := map[string]int32{} // only the watch uses it
	sandbox.Follow(f.T, f.admin, &jobset.JobSetList{}, func(js *jobset.JobSet, _ bool) {
		if js.Status.Restarts > restarts[js.Name] {
			restarts[js.Name] = js.Status.Restarts
			found(js.Name)
		}
	})
}

// queuedJob replaces its pods one by one. Kueue assigns nodes to it, and others when one fails. A Job counts
// failures by pod only with an index; without, each that fails at the same moment doubles the pause.
func queuedJob(i int) client.Object {
	j := job(i)
	j.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{seats()[i%fit]: resource.MustParse("1")}
	j.Labels = map[string]string{workload.QueueNameLabel: queue}
	j.Spec.CompletionMode, j.Spec.BackoffLimit, j.Spec.BackoffLimitPerIndex = ptr.To(batchv1.IndexedCompletion), nil, ptr.To[int32](100)
	j.Spec.Template.Annotations = map[string]string{kueue.PodSetUnconstrainedTopologyAnnotation: "true"}
	return j
}

// seats are resources of which each node has one, and all pods of a job need the same. So no two of them are on one
// node. The scheduler spreads jobs by itself, but Kueue would fill up one node with a whole job.
func seats() (names []corev1.ResourceName) {
	for i := range fit {
		names = append(names, corev1.ResourceName(fmt.Sprintf("bench.example.com/seat-%d", i)))
	}
	return names
}

func addSeats(ctx context.Context, f *fleet, node string) error {
	there := corev1.ResourceList{}
	for _, seat := range seats() {
		there[seat] = resource.MustParse("1")
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": there, "allocatable": there}})
	if err == nil {
		err = f.admin.Status().Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.StrategicMergePatchType, patch))
	}
	if err != nil {
		return fmt.Errorf("cannot add seats to node %s: %w", node, err)
	}
	return nil
}

// followWorkloads creates a queue whose flavor has the topology of nodes alone, without which Kueue assigns none.
func followWorkloads(f *fleet, found func(string)) {
	var nodes []string
	for i := range *fleetNodes {
		nodes = append(nodes, fmt.Sprintf("gpu-%d", i))
	}
	f.inEach(nodes, addSeats)
	sandbox.Create(f.T, f.admin, &kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: queue}, Spec: kueue.TopologySpec{
		Levels: []kueue.TopologyLevel{{NodeLabel: corev1.LabelHostname}},
	}})
	createQueue(f.T, f.admin, kueue.ResourceFlavorSpec{
		NodeLabels: map[string]string{sandbox.Simulated: "true"}, TopologyName: ptr.To[kueue.TopologyReference](queue),
	}, seats()...)
	createLocalQueue(f.T, f.admin, "react-kueue")
	sandbox.Follow(f.T, f.admin, &kueue.WorkloadList{}, func(w *kueue.Workload, _ bool) {
		named := len(w.Status.UnhealthyNodes) > 0
		if owner := metav1.GetControllerOf(w); owner != nil && (named || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadEvicted)) {
			found(owner.Name)
		}
	}, client.InNamespace("react-kueue"))
}
