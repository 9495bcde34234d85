// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// product is the label of the nodes of setup/teams/two-flavors.yaml.
const product = "nvidia.com/gpu.product"

// The team's LimitRange sets defaults for pods. Users are told which limit their pods exceed,
// and which priority their team must not use.
func TestATeamKeepsToItsLimitsAndPriorities(t *testing.T) {
	testenv.Test(t, features.New("limits").Assess("a sentence for each", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		file, flavors := example(t, cfg, "two-flavors.yaml")
		file.apply(ctx, flavors, file.file(`limits: [{type: Container, defaultRequest: {cpu: 1, memory: 4Gi}, default: {cpu: 8, memory: 64Gi}, max: {cpu: 16}}]`))
		s := tell(t, cfg, "vision", "alice", needs.SimulatedNodes)
		node := here.Simulated[0]
		s.changeNode(ctx, node, func(n *corev1.Node) { n.Labels[product] = "NVIDIA-A100-SXM4-80GB" })
		t.Cleanup(func() { s.changeNode(context.Background(), node, func(n *corev1.Node) { delete(n.Labels, product) }) })
		s.untilMember(ctx, true, "alice")

		terse := withPriority(gpuJob("terse", "1"), "low-priority")
		onlyGPUs := corev1.ResourceList{gpu: resource.MustParse("1")}
		terse.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: onlyGPUs, Limits: onlyGPUs}
		s.runs(ctx, wrapped("terse", terse, nil))
		pod := s.onlyPod(ctx, "terse")
		has := pod.Spec.Containers[0].Resources
		got := fmt.Sprintf("%s %s %s %s %s", has.Requests.Cpu(), has.Requests.Memory(), has.Limits.Cpu(), has.Limits.Memory(), pod.Spec.NodeName)
		if want := "1 4Gi 8 64Gi " + node; got != want {
			t.Errorf("the pod has %s, want %s", got, want)
		}
		s.untilReserved(ctx, corev1.ResourceCPU, "1")
		s.untilReserved(ctx, corev1.ResourceMemory, "4Gi")

		large := gpuJob("large", "1")
		large.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("17")
		s.waitsBecause(ctx, wrapped("large", large, nil), "requests must not be above the limitRange max")

		hasty := wrapped("hasty", withPriority(gpuJob("hasty", "1"), "high-priority"), nil)
		hasty.Namespace = s.namespace
		const says = "this team's pods may not have the priorityClassName high-priority"
		if err := s.user.Create(ctx, hasty); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the webhook says %v, want %s", err, says)
		}
		s.dashboardsSee(ctx)
		return ctx
	}).Feature())
}

// dashboardsSee checks the permissions of the dashboards' service account in the example.
func (s *story) dashboardsSee(ctx context.Context) {
	s.t.Helper()
	for _, row := range dashboardRights {
		for _, verb := range everyVerb {
			want := slices.Contains(strings.Fields(row.verbs), verb)
			if got := allowed(ctx, s.t, s.api, grafana(row.namespace), verb, row.group, row.resource); got != want {
				s.t.Errorf("a dashboard may %s %s of %q in %q: %t, want %t", verb, row.resource, row.group, row.namespace, got, want)
			}
		}
	}
}

// dashboardRights are the permissions of that service account. It must not have verbs that are
// not listed.
var dashboardRights = []struct{ namespace, group, resource, verbs string }{
	{"vision", "workload.codeflare.dev", "appwrappers", reads},
	{"speech", "workload.codeflare.dev", "appwrappers", reads},
	{"vision", "kueue.x-k8s.io", "workloads", reads},
	{"vision", "kueue.x-k8s.io", "localqueues", reads},
	{"vision", "kubeflow.org", "pytorchjobs", reads},
	{"vision", "", "pods", reads},
	{"vision", "", "pods/log", ""},
	{"vision", "", "pods/exec", ""},
	{"vision", "", "secrets", ""},
	{"", "kueue.x-k8s.io", "clusterqueues", reads},
	{"", "kueue.x-k8s.io", "cohorts", reads},
	{"", "", "nodes", reads},
	{"", "", "secrets", ""},
	{"", "workload.codeflare.dev", "appwrappers", ""},
	{"e2e-blue", "workload.codeflare.dev", "appwrappers", ""},
	{"mlbatch-system", "", "pods", ""},
}

// grafana is the service account of the example.
func grafana(namespace string) asked {
	return asked{
		"system:serviceaccount:monitoring:grafana", namespace,
		[]string{"system:serviceaccounts", "system:serviceaccounts:monitoring", "system:authenticated"},
	}
}
