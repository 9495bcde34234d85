// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

var rules = Rules{
	"nvidia.com/gpu": {
		{Key: "gpuhealth", Value: "TESTING", Effect: corev1.TaintEffectNoSchedule},
		{Key: "gpuhealth", Value: "EVICT", Effect: corev1.TaintEffectNoExecute},
	},
	"nvidia.com/roce_gdr": {
		{Key: "gpuhealth", Value: "EVICT", Effect: corev1.TaintEffectNoExecute},
		{Key: "network", Value: "", Effect: corev1.TaintEffectNoExecute},
	},
	"example.com/disk": {{Key: "disk", Value: "SLOW", Effect: corev1.TaintEffectPreferNoSchedule}},
}

func labelledNode(labels map[string]string) *corev1.Node {
	node := &corev1.Node{}
	node.Name, node.Labels = "n", labels
	return node
}

func TestMigrationCauses(t *testing.T) {
	for sentence, tc := range map[string]struct {
		labels map[string]string
		want   []corev1.ResourceName
	}{
		"without a label no pod migrates":                  {nil, nil},
		"a label without a rule has no effect":             {map[string]string{"zone": "EVICT"}, nil},
		"a weaker effect is only for pods to be scheduled": {map[string]string{"gpuhealth": "TESTING", "disk": "SLOW"}, nil},
		"one label may concern several resources":          {map[string]string{"gpuhealth": "EVICT"}, []corev1.ResourceName{"nvidia.com/gpu", "nvidia.com/roce_gdr"}},
		"a label may have an empty value":                  {map[string]string{"network": ""}, []corev1.ResourceName{"nvidia.com/roce_gdr"}},
		"another value is another label":                   {map[string]string{"network": "EVICT", "gpuhealth": "OK"}, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			node := labelledNode(tc.labels)
			if diff := cmp.Diff(tc.want, rules.MigrationCauses(node)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, rules.MigrationCauses(rules.Slim(node))); diff != "" {
				t.Errorf("of a slim node (-want +got):\n%s", diff)
			}
		})
	}
}

// Kubernetes evicts the pods that do not tolerate the taint; the others are meant to stay.
func TestTaintsCauseNoMigration(t *testing.T) {
	node := labelledNode(nil)
	node.Spec.Taints = []corev1.Taint{{Key: "gpuhealth", Value: "EVICT", Effect: corev1.TaintEffectNoExecute}}
	if got := rules.MigrationCauses(node); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestPossibleMigrationCauses(t *testing.T) {
	if diff := cmp.Diff([]corev1.ResourceName{"nvidia.com/gpu", "nvidia.com/roce_gdr"}, rules.PossibleMigrationCauses()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSlimKeepsOnlyWhatTheRulesRead(t *testing.T) {
	node := labelledNode(map[string]string{"gpuhealth": "EVICT", "zone": "a"})
	node.Annotations = map[string]string{"long": "text"}
	node.Spec.Taints = []corev1.Taint{{Key: "k"}}
	node.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
	want := labelledNode(map[string]string{"gpuhealth": "EVICT"})
	if diff := cmp.Diff(want, rules.Slim(node)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, rules.Slim(rules.Slim(node))); diff != "" {
		t.Errorf("twice (-want +got):\n%s", diff)
	}
}
