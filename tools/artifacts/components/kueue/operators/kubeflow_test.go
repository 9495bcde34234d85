// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/control"
	"github.com/kubeflow/training-operator/pkg/controller.v1/jax"
	"github.com/kubeflow/training-operator/pkg/controller.v1/mpi"
	paddle "github.com/kubeflow/training-operator/pkg/controller.v1/paddlepaddle"
	"github.com/kubeflow/training-operator/pkg/controller.v1/pytorch"
	"github.com/kubeflow/training-operator/pkg/controller.v1/tensorflow"
	"github.com/kubeflow/training-operator/pkg/controller.v1/xgboost"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type roles map[kubeflow.ReplicaType]*kubeflow.ReplicaSpec

// trainer makes the pods of one role, of those that there are.
type trainer interface {
	ReconcilePods(job any, status *kubeflow.JobStatus, pods []*corev1.Pod, role kubeflow.ReplicaType, spec *kubeflow.ReplicaSpec, all map[kubeflow.ReplicaType]*kubeflow.ReplicaSpec) error
}

func kubeflowJob(w *world, object client.Object) {
	scheme.Default(object)
	pods := &control.FakePodControl{CreateLimit: mostPods + 1}
	clients := kubefake.NewClientset()
	operator, all := trainerOf(w, object, pods, clients)
	defer func() {
		for _, template := range pods.Templates {
			_ = w.add(template.Annotations, 1)
		}
		launched, err := clients.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
		w.must(err)
		for i := range launched.Items {
			_ = w.add(launched.Items[i].Annotations, 1)
		}
	}()
	for role, spec := range all {
		_ = operator.ReconcilePods(object, &kubeflow.JobStatus{}, nil, role, spec, all)
	}
}

func trainerOf(w *world, object client.Object, pods control.PodControlInterface, clients *kubefake.Clientset) (trainer, roles) {
	gang := common.GenNonGangSchedulerSetupFunc()
	switch job := object.(type) {
	case *kubeflow.PyTorchJob:
		r := pytorch.NewReconciler(w, gang)
		r.PodControl = pods
		return r, job.Spec.PyTorchReplicaSpecs
	case *kubeflow.TFJob:
		r := tensorflow.NewReconciler(w, gang)
		r.PodControl = pods
		return r, job.Spec.TFReplicaSpecs
	case *kubeflow.XGBoostJob:
		r := xgboost.NewReconciler(w, gang)
		r.PodControl = pods
		return r, job.Spec.XGBReplicaSpecs
	case *kubeflow.PaddleJob:
		r := paddle.NewReconciler(w, gang)
		r.PodControl = pods
		return r, job.Spec.PaddleReplicaSpecs
	case *kubeflow.JAXJob:
		r := jax.NewReconciler(w, gang)
		r.PodControl = pods
		return r, job.Spec.JAXReplicaSpecs
	}
	r := mpi.NewReconciler(w, gang)
	r.KubeClientSet = clients
	return r, object.(*kubeflow.MPIJob).Spec.MPIReplicaSpecs
}
