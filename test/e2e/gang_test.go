// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// Nine of ten pods fit on a node. The quota and the total number of GPUs are enough for ten, so
// only the scheduler can tell that the job does not fit. The nine pods must not keep their
// nodes.
func TestAGangIsNotHalfScheduled(t *testing.T) {
	const size = localcluster.DefaultSimulatedNodes
	testenv.Test(t, features.New("gang").Assess("all pods or none", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-gang", "gina", needs.SimulatedNodes, needs.PyTorchJobs, needs.Gangs)
		occupant := wrapped("occupant", trainingJob("occupant", 1, "2"), nil)
		gang := wrapped("gang", trainingJob("gang", size, "7"), map[string]string{workload.WarmupGracePeriodDurationAnnotation: "1h"})

		s.create(ctx, occupant)
		s.untilRunning(ctx, "occupant", 1)
		s.create(ctx, gang)
		s.until(ctx, "pods of the gang give their nodes back", func(ctx context.Context) (string, error) {
			return s.refused(ctx, "gang", size)
		})
		group := &podgroup.PodGroup{}
		if err := s.admin.Get(ctx, "gang", s.namespace, group); err != nil || group.Spec.MinMember != size {
			t.Errorf("the gang's PodGroup requires %d pods, not %d (%v)", group.Spec.MinMember, size, err)
		}

		s.remove(ctx, occupant)
		s.untilRunning(ctx, "gang", size)
		s.untilPhase(ctx, gang, workload.AppWrapperRunning)
		return ctx
	}).Feature())
}

// late are the scheduler's messages to pods that give up their node because the rest of the
// gang found none in time: the first pod gets one, the others the other.
var late = []string{"rejected due to timeout", "rejection in Unreserve"}

// refused returns "" once a pod of the gang has given up a node. A pod that is bound breaks the
// promise.
func (s *story) refused(ctx context.Context, appWrapper string, size int) (string, error) {
	pods, err := s.pods(ctx, appWrapper)
	if err != nil {
		return "", err
	}
	heldInVain := false
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			return "", broken(fmt.Sprintf("pod %s is on node %s although the gang does not fit", p.Name, p.Spec.NodeName))
		}
		for _, c := range p.Status.Conditions {
			said := func(what string) bool { return strings.Contains(c.Message, what) }
			heldInVain = heldInVain || c.Type == corev1.PodScheduled && slices.ContainsFunc(late, said)
		}
	}
	if len(pods) < size || !heldInVain {
		return fmt.Sprintf("%d of %d pods are there, and none was seen to have held a node", len(pods), size), nil
	}
	return "", nil
}

// trainingJob is a PyTorchJob of simulated pods with that many GPUs each.
func trainingJob(name string, pods int32, gpus string) *kubeflow.PyTorchJob {
	replicas := func(count int32) *kubeflow.ReplicaSpec {
		return &kubeflow.ReplicaSpec{
			Replicas: &count, RestartPolicy: kubeflow.RestartPolicyNever,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{container("pytorch", requests("1", "1Gi", gpus), "sleep", "1h")},
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
