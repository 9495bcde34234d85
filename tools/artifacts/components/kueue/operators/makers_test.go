// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	ray "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	raycontrollers "github.com/ray-project/kuberay/ray-operator/controllers/ray"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils/dashboardclient"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	jobsetcontrollers "sigs.k8s.io/jobset/pkg/controllers"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	lwscontrollers "sigs.k8s.io/lws/pkg/controllers"
)

// maker makes the pods of an object.
type maker func(w *world, object client.Object)

// makers are the operators. Of Kubernetes' own controllers, what an API server stores says how many pods they make.
var makers = map[string]maker{
	"Job": func(w *world, object client.Object) {
		job := object.(*batchv1.Job)
		_ = w.add(job.Spec.Template.Annotations, jobPods(job))
	},
	"Deployment": func(w *world, object client.Object) {
		spec := object.(*appsv1.Deployment).Spec
		_ = w.add(spec.Template.Annotations, *spec.Replicas)
	},
	"StatefulSet": func(w *world, object client.Object) { _ = w.addStatefulSet(object.(*appsv1.StatefulSet)) },
	"ReplicaSet": func(w *world, object client.Object) {
		spec := object.(*appsv1.ReplicaSet).Spec
		_ = w.add(spec.Template.Annotations, *spec.Replicas)
	},
	"JobSet":          jobSet,
	"LeaderWorkerSet": leaderWorkerSet,
	"RayCluster":      func(w *world, object client.Object) { w.rayClusters() },
	"RayJob":          rayJob,
	"RayService":      rayService,
	"PyTorchJob":      kubeflowJob,
	"TFJob":           kubeflowJob,
	"XGBoostJob":      kubeflowJob,
	"PaddleJob":       kubeflowJob,
	"JAXJob":          kubeflowJob,
	"MPIJob":          kubeflowJob,
}

// podsOf has the operator make the pods of an object, and counts them by template. The operator refuses the object if
// it says so in the status, with which the AppWrapper fails.
func (a apiServer) podsOf(t *testing.T, stored *unstructured.Unstructured) (made map[string]int32, refused bool) {
	t.Helper()
	typed, err := scheme.New(stored.GroupVersionKind())
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, typed)
	}
	if err != nil {
		t.Fatalf("an operator cannot decode what an API server has stored: %v\n%v", err, stored.Object)
	}
	w := newWorld(typed.(client.Object), a.definitions)
	func() {
		defer func() { _ = recover() }() // as the manager of an operator does
		makers[stored.GetKind()](w, typed.(client.Object))
	}()
	return w.pods, w.refused
}

// repeat reconciles until nothing can be left to do. An operator reports an error again and again.
func repeat(r reconcile.Reconciler, object client.Object) {
	for range 3 {
		_, _ = r.Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}
}

// jobSet has all pods ready, since Jobs may wait for others.
func jobSet(w *world, object client.Object) {
	operator := jobsetcontrollers.NewJobSetReconciler(w.client, scheme, w.GetEventRecorder(""))
	for range 3 {
		repeat(operator, object)
		jobs := &batchv1.JobList{}
		w.must(w.client.List(context.Background(), jobs))
		for i := range jobs.Items {
			job := &jobs.Items[i]
			job.Status.Active, job.Status.Ready = *job.Spec.Parallelism, job.Spec.Parallelism
			w.must(w.client.Status().Update(context.Background(), job))
		}
	}
}

// leaderWorkerSet makes the pods of the leaders, as a StatefulSet would.
func leaderWorkerSet(w *world, object client.Object) {
	ctx := context.Background()
	repeat(lwscontrollers.NewLeaderWorkerSetReconciler(w.client, scheme, w.GetEventRecorder("")), object)
	leaders := &appsv1.StatefulSet{}
	w.must(w.client.Get(ctx, client.ObjectKeyFromObject(object), leaders))
	for i := range *leaders.Spec.Replicas {
		pod := &corev1.Pod{ObjectMeta: *leaders.Spec.Template.ObjectMeta.DeepCopy(), Spec: leaders.Spec.Template.Spec}
		pod.Namespace, pod.Name = object.GetNamespace(), fmt.Sprintf("%s-%d", object.GetName(), i)
		pod.Labels[lws.GroupIndexLabelKey] = strconv.Itoa(int(i))
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		w.must(w.client.Create(ctx, pod))
		repeat(lwscontrollers.NewPodReconciler(w.client, scheme, w.GetEventRecorder(""), nil), pod)
		workers := &appsv1.StatefulSet{}
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(pod), workers); err == nil {
			w.must(w.addStatefulSet(workers))
		}
	}
}

// rayClusters makes the pods of the clusters that there are.
func (w *world) rayClusters() {
	clusters := &ray.RayClusterList{}
	w.must(w.client.List(context.Background(), clusters))
	for i := range clusters.Items {
		repeat(raycontrollers.NewReconciler(context.Background(), w, raycontrollers.RayClusterReconcilerOptions{}), &clusters.Items[i])
	}
}

// rayJob lets the job be submitted once it has its cluster.
func rayJob(w *world, object client.Object) {
	operator := raycontrollers.NewRayJobReconciler(context.Background(), w, raycontrollers.RayJobReconcilerOptions{}, noRay{})
	repeat(operator, object)
	w.rayClusters()
	job := &ray.RayJob{}
	w.must(w.client.Get(context.Background(), client.ObjectKeyFromObject(object), job))
	job.Status.DashboardURL = "none.invalid"
	w.must(w.client.Status().Update(context.Background(), job))
	repeat(operator, object)
	w.must(w.client.Get(context.Background(), client.ObjectKeyFromObject(object), job))
	ended := []ray.JobDeploymentStatus{ray.JobDeploymentStatusValidationFailed, ray.JobDeploymentStatusFailed} // after a deadline of a second
	w.refused = slices.Contains(ended, job.Status.JobDeploymentStatus)
	delete(w.pods, "") // KubeRay's own submitter is not counted (docs/counted.md)
}

func rayService(w *world, object client.Object) {
	repeat(raycontrollers.NewRayServiceReconciler(context.Background(), w, noRay{}), object)
	w.rayClusters()
}

// noRay: no Ray answers.
type noRay struct{}

func (noRay) GetDashboardClient(context.Context, ctrl.Manager) func(*ray.RayCluster, string) (dashboardclient.RayDashboardClientInterface, error) {
	return func(*ray.RayCluster, string) (dashboardclient.RayDashboardClientInterface, error) {
		return nil, errors.New("there is no Ray")
	}
}

func (noRay) GetHttpProxyClient(ctrl.Manager) func(string, string, string, int) utils.RayHttpProxyClientInterface {
	return func(string, string, string, int) utils.RayHttpProxyClientInterface { return nil }
}
