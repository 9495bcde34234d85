// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// A training job needs all ten nodes while one is taken. Its quota is there,
// so it is the scheduler that must not place nine pods and leave them waiting.
func TestAGangIsNotHalfScheduled(t *testing.T) {
	const size = localcluster.DefaultSimulatedNodes
	testenv.Test(t, features.New("gang").Assess("all pods or none", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "gang", "gina")
		occupant := wrapped("occupant", trainingJob("occupant", 1), nil)
		gang := wrapped("gang", trainingJob("gang", size), nil)

		s.create(ctx, occupant)
		s.untilRunning(ctx, "occupant", 1)
		s.create(ctx, gang)
		s.until(ctx, "the scheduler has refused every pod of the gang", func(ctx context.Context) (string, error) {
			return s.refused(ctx, "gang", size)
		})
		group := &podgroup.PodGroup{}
		if err := s.admin.Get(ctx, "gang", s.namespace, group); err != nil || group.Spec.MinMember != size {
			t.Errorf("the gang's PodGroup asks for %d pods, not %d (%v)", group.Spec.MinMember, size, err)
		}

		s.remove(ctx, occupant)
		s.untilRunning(ctx, "gang", size)
		s.untilPhase(ctx, gang, workload.AppWrapperRunning)
		return ctx
	}).Feature())
}

// refused answers "" once each pod of a gang has been found unschedulable. A
// pod on a node is a failure at any time.
func (s *story) refused(ctx context.Context, appWrapper string, size int) (string, error) {
	pods, err := s.pods(ctx, appWrapper)
	if err != nil {
		return "", err
	}
	refused := 0
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			return "", fmt.Errorf("pod %s is on node %s although the gang does not fit", p.Name, p.Spec.NodeName)
		}
		for _, c := range p.Status.Conditions {
			// While the gang is being created its first pods are refused for lack
			// of the others; what counts is the refusal of the whole.
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable && !strings.Contains(c.Message, "sibling") {
				refused++
			}
		}
	}
	if refused < size {
		return fmt.Sprintf("%d of %d pods were refused", refused, size), nil
	}
	return "", nil
}

// trainingJob is a PyTorchJob of simulated pods that take a node each.
func trainingJob(name string, pods int32) *kubeflow.PyTorchJob {
	replicas := func(count int32) *kubeflow.ReplicaSpec {
		return &kubeflow.ReplicaSpec{
			Replicas: &count, RestartPolicy: kubeflow.RestartPolicyNever,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{container("pytorch", requests("1", "1Gi", "8"), "sleep", "1h")},
			}},
		}
	}
	specs := map[kubeflow.ReplicaType]*kubeflow.ReplicaSpec{kubeflow.PyTorchJobReplicaTypeMaster: replicas(1)}
	if pods > 1 {
		specs[kubeflow.PyTorchJobReplicaTypeWorker] = replicas(pods - 1)
	}
	return &kubeflow.PyTorchJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       kubeflow.PyTorchJobSpec{PyTorchReplicaSpecs: specs},
	}
}
