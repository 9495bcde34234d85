// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// gpuHealth is the node label in which Autopilot reports the health of the GPUs.
const gpuHealth = "autopilot.ibm.com/gpuhealth"

// A GPU fails under a job without retries. As soon as the node is labelled, the job is
// recreated on another node and keeps its quota.
func TestAJobLeavesANodeWithABrokenGPU(t *testing.T) {
	testenv.Test(t, features.New("migration").Assess("it comes back on another node", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-migrating", "mia", needs.SimulatedNodes)
		aw := sample(t, "gpu-job.yaml") // docs/install.md describes this procedure
		aw.Annotations = map[string]string{
			workload.RetryLimitAnnotation:               "0",
			workload.RetryPausePeriodDurationAnnotation: "1s",
		}
		s.create(ctx, aw)
		s.untilPhase(ctx, aw, workload.AppWrapperRunning)
		before := s.onlyPod(ctx, aw.Name)

		t.Cleanup(func() { s.mark(context.Background(), before.Spec.NodeName, "") })
		s.mark(ctx, before.Spec.NodeName, "EVICT")
		s.until(ctx, "the job runs on another node", func(ctx context.Context) (string, error) {
			return s.runsElsewhere(ctx, aw, before)
		})
		if aw.Status.Migrations != 1 || aw.Status.Retries != 0 {
			t.Errorf("there were %d migrations and %d retries, want 1 and 0", aw.Status.Migrations, aw.Status.Retries)
		}
		s.untilReserved(ctx, gpu, "8")
		s.change(ctx, s.onlyPod(ctx, aw.Name), succeeds)
		s.untilPhase(ctx, aw, workload.AppWrapperSucceeded)
		return ctx
	}).Feature())
}

// A node that everybody calls healthy rejects a pod, as a kubelet does whose device plugin gives no
// device. That costs no retry, and the next attempt goes to another node.
func TestAJobAvoidsANodeThatRejectedItsPod(t *testing.T) {
	testenv.Test(t, features.New("rejection").Assess("it comes back on another node", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-rejected", "ron", needs.SimulatedNodes)
		aw := sample(t, "gpu-job.yaml")
		aw.Annotations = map[string]string{
			workload.RetryLimitAnnotation:               "0",
			workload.RetryPausePeriodDurationAnnotation: "1s",
		}
		s.create(ctx, aw)
		s.untilPhase(ctx, aw, workload.AppWrapperRunning)
		before := s.onlyPod(ctx, aw.Name)

		rejection := client.RawPatch(types.StrategicMergePatchType, []byte(`{"status": {"phase": "Failed", "reason": "UnexpectedAdmissionError"}}`))
		if err := s.admin.GetControllerRuntimeClient().Status().Patch(ctx, before.DeepCopy(), rejection); err != nil {
			t.Fatal(err)
		}
		s.until(ctx, "the job runs on another node", func(ctx context.Context) (string, error) {
			return s.runsElsewhere(ctx, aw, before)
		})
		if aw.Status.Migrations != 1 || aw.Status.Retries != 0 {
			t.Errorf("there were %d migrations and %d retries, want 1 and 0", aw.Status.Migrations, aw.Status.Retries)
		}
		avoided := aw.Status.AvoidedNodes
		if len(avoided) != 1 || avoided[0].Name != before.Spec.NodeName || avoided[0].Cause != "PodRejected UnexpectedAdmissionError" {
			t.Errorf("it avoids %v, want %s", avoided, before.Spec.NodeName)
		}
		s.untilReserved(ctx, gpu, "8")
		s.change(ctx, s.onlyPod(ctx, aw.Name), succeeds)
		s.untilPhase(ctx, aw, workload.AppWrapperSucceeded)
		return ctx
	}).Feature())
}

// A node dies: its kubelet is silent, and the pod on it never stops. A minute after the node
// controller's verdict, and a forced deletion, the job runs elsewhere.
func TestAJobLeavesADeadNode(t *testing.T) {
	testenv.Test(t, features.New("death").Assess("it comes back on another node", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-dead", "dora", needs.SimulatedNodes)
		aw := sample(t, "gpu-job.yaml")
		aw.Annotations = map[string]string{
			workload.RetryLimitAnnotation:                  "0",
			workload.RetryPausePeriodDurationAnnotation:    "1s",
			workload.ForcefulDeletionGracePeriodAnnotation: "1s",
		}
		s.create(ctx, aw)
		s.untilPhase(ctx, aw, workload.AppWrapperRunning)
		before := s.onlyPod(ctx, aw.Name)

		t.Cleanup(func() { s.revive(context.Background(), before.Spec.NodeName) })
		s.kill(ctx, before.Spec.NodeName)
		s.until(ctx, "the job runs on another node", func(ctx context.Context) (string, error) {
			return s.runsElsewhere(ctx, aw, before)
		})
		if aw.Status.Migrations != 1 || aw.Status.Retries != 0 {
			t.Errorf("there were %d migrations and %d retries, want 1 and 0", aw.Status.Migrations, aw.Status.Retries)
		}
		s.untilReserved(ctx, gpu, "8")
		s.change(ctx, s.onlyPod(ctx, aw.Name), succeeds)
		s.untilPhase(ctx, aw, workload.AppWrapperSucceeded)
		return ctx
	}).Feature())
}

// simulation is the annotation of the nodes that KWOK simulates.
const simulation = "kwok.x-k8s.io/node"

// kill ends the simulation of a node. Its kubelet reported last that the node is not ready, which
// is noticed sooner than silence.
func (s *story) kill(ctx context.Context, name string) {
	s.t.Helper()
	s.changeNode(ctx, name, func(node *corev1.Node) { delete(node.Annotations, simulation) })
	s.reportReady(ctx, name, corev1.ConditionFalse)
}

// revive waits until the node controller has noticed.
func (s *story) revive(ctx context.Context, name string) {
	s.t.Helper()
	s.changeNode(ctx, name, func(node *corev1.Node) { node.Annotations[simulation] = "fake" })
	s.reportReady(ctx, name, corev1.ConditionTrue)
	s.until(ctx, "node "+name+" is back", func(ctx context.Context) (string, error) {
		node := &corev1.Node{}
		if err := s.admin.Get(ctx, name, "", node); err != nil {
			return "", err
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
				return "it has the taint " + taint.ToString(), nil
			}
		}
		return "", nil
	})
}

func (s *story) reportReady(ctx context.Context, name string, status corev1.ConditionStatus) {
	s.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": %q, "reason": "Story"}]}}`, status)
	if err := s.admin.GetControllerRuntimeClient().Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		s.t.Fatal(err)
	}
}

// mark labels a node as Autopilot does; an empty value removes the label.
func (s *story) mark(ctx context.Context, name, health string) {
	s.t.Helper()
	s.changeNode(ctx, name, func(node *corev1.Node) {
		delete(node.Labels, gpuHealth)
		if health != "" {
			node.Labels[gpuHealth] = health
		}
	})
}

// changeNode updates a node and retries conflicts with the kubelet.
func (s *story) changeNode(ctx context.Context, name string, change func(*corev1.Node)) {
	s.t.Helper()
	s.until(ctx, "node "+name+" is changed", func(ctx context.Context) (string, error) {
		node := &corev1.Node{}
		if err := s.admin.Get(ctx, name, "", node); err != nil {
			return "", err
		}
		change(node)
		return "", s.admin.Update(ctx, node)
	})
}

// runsElsewhere returns "" once a pod of an AppWrapper runs on another node.
func (s *story) runsElsewhere(ctx context.Context, aw *workload.AppWrapper, than *corev1.Pod) (string, error) {
	if err := s.admin.Get(ctx, aw.Name, s.namespace, aw); err != nil {
		return "", err
	}
	if aw.Status.Phase == workload.AppWrapperFailed {
		return "", broken("it has failed")
	}
	pods, err := s.running(ctx, aw.Name)
	if err != nil || aw.Status.Phase != workload.AppWrapperRunning || len(pods) != 1 || pods[0].UID == than.UID {
		return fmt.Sprintf("it is %s, and %d pods run", aw.Status.Phase, len(pods)), err
	}
	if pods[0].Spec.NodeName == than.Spec.NodeName {
		return "", broken("it is on the node that it was to leave")
	}
	return "", nil
}
