// SPDX-License-Identifier: Apache-2.0

package nodewatch

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/internal/slackquota"
)

func TestWhichChangesOfANodeMatter(t *testing.T) {
	rules := nodehealth.Rules{Listed: nodehealth.Listed{Conditions: []nodehealth.ConditionRule{{Type: "GpuUnhealthy"}}}}
	at := func(condition corev1.NodeConditionType, status corev1.ConditionStatus, second int64) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: time.Unix(second, 0).String()}, Spec: corev1.NodeSpec{Unschedulable: true}}
		n.Annotations = map[string]string{"at": n.ResourceVersion}
		n.Status.Images = make([]corev1.ContainerImage, second)
		n.Spec.Taints = []corev1.Taint{{Key: "k", TimeAdded: &metav1.Time{Time: time.Unix(second, 0)}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: condition, Status: status, LastHeartbeatTime: metav1.Unix(second, 0), LastTransitionTime: metav1.Unix(second, 0)}}
		return slackquota.SlimNode(rules, n)
	}
	for what, row := range map[string]struct {
		before, after *corev1.Node
		want          bool
	}{
		"a heartbeat":                   {at("Ready", "True", 1), at("Ready", "True", 2), false},
		"a condition without a rule":    {at("Ready", "True", 1), at("Ready", "False", 2), false},
		"a condition with a rule":       {at("GpuUnhealthy", "False", 1), at("GpuUnhealthy", "True", 2), true},
		"a heartbeat of that condition": {at("GpuUnhealthy", "True", 1), at("GpuUnhealthy", "True", 2), false},
		"the same version":              {at("Ready", "True", 1), at("GpuUnhealthy", "True", 1), false},
	} {
		if got := Changed(row.before, row.after); got != row.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
