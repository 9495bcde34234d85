// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// reservedFor is the label and the taint of the nodes in setup/teams/reserved.yaml.
const reservedFor = "example.com/reserved-for"

// A team in an existing namespace runs only on its own nodes, which no other team uses.
func TestAReservedTeamKeepsToItself(t *testing.T) {
	testenv.Test(t, features.New("reserved").Assess("it neither lends nor borrows", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		file, reserved := example(t, cfg, "reserved.yaml")
		others := tell(t, cfg, "e2e-gang", "gina", needs.SimulatedNodes)
		others.makeNamespace(ctx, "medical-research")
		file.apply(ctx, reserved)
		nodes := here.Simulated[:2]
		for _, node := range nodes {
			others.changeNode(ctx, node, reserve)
			t.Cleanup(func() { others.changeNode(context.Background(), node, unreserve) })
		}
		s := tell(t, cfg, "medical-research", "mary", needs.SimulatedNodes)
		s.clusterQueue = "medical-cluster-queue"
		s.user = as(t, cfg, "mary", "medical-edit-group")
		s.untilMember(ctx, true, "mary", "medical-edit-group")

		all := wrapped("all", gpuJobs("all", 2, "8"), nil)
		s.runs(ctx, all)
		s.untilRunning(ctx, "all", 2)
		pods, err := s.pods(ctx, "all")
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods {
			if !slices.Contains(nodes, pod.Spec.NodeName) {
				t.Errorf("pod %s is on %s, which does not belong to the team", pod.Name, pod.Spec.NodeName)
			}
		}
		s.waitsBecause(ctx, wrapped("more", gpuJobs("more", 1, "1"), nil), "insufficient unused quota")

		intruder := gpuJobs("intruder", 1, "1")
		intruder.Spec.Template.Spec.NodeSelector = map[string]string{reservedFor: "medical"}
		others.create(ctx, wrapped("intruder", intruder, nil))
		others.until(ctx, "no node takes the pod of another team", func(ctx context.Context) (string, error) {
			return others.unschedulable(ctx, "intruder")
		})
		return ctx
	}).Feature())
}

func reserve(node *corev1.Node) {
	node.Labels[reservedFor] = "medical"
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: reservedFor, Value: "medical", Effect: corev1.TaintEffectNoSchedule})
}

func unreserve(node *corev1.Node) {
	delete(node.Labels, reservedFor)
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == reservedFor })
}

// makeNamespace creates a namespace as docs/quota.md requires, and removes it when the story
// ends.
func (s *story) makeNamespace(ctx context.Context, name string) {
	s.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"mlbatch-team-namespace": "true"}}}
	if err := s.admin.Create(ctx, namespace); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := s.admin.Delete(context.Background(), namespace); err != nil {
			s.t.Error(err)
		}
	})
}

// unschedulable returns "" once the scheduler has found no node for the pod of an AppWrapper.
func (s *story) unschedulable(ctx context.Context, appWrapper string) (string, error) {
	pods, err := s.pods(ctx, appWrapper)
	if err != nil || len(pods) == 0 {
		return "there is no pod", err
	}
	if pods[0].Spec.NodeName != "" {
		return "", broken("it is on node " + pods[0].Spec.NodeName)
	}
	for _, c := range pods[0].Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return "", nil
		}
	}
	return "the scheduler says nothing", nil
}
