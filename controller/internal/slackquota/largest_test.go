// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

func sized(model string, allocatable map[corev1.ResourceName]string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"model": model}}}
	n.Status.Allocatable = amounts(allocatable)
	return n
}

func amounts(texts map[corev1.ResourceName]string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, text := range texts {
		list[name] = resource.MustParse(text)
	}
	return list
}

func TestAFlavorSaysWhatItsLargestNodesHave(t *testing.T) {
	big := sized("a", map[corev1.ResourceName]string{"nvidia.com/gpu": "8", "cpu": "32", "pods": "110"})
	wide := sized("a", map[corev1.ResourceName]string{"nvidia.com/gpu": "4", "cpu": "64500m", "memory": "1Ti"})
	other := sized("b", map[corev1.ResourceName]string{"nvidia.com/gpu": "16"})
	with := func(n corev1.Node, change func(*corev1.Node)) corev1.Node { change(&n); return n }
	for name, row := range map[string]struct {
		labels map[string]string
		nodes  []corev1.Node
		want   string
	}{
		"of several nodes the most of each resource": {map[string]string{"model": "a"}, []corev1.Node{big, wide, other}, `{"cpu":"64500m","memory":"1Ti","nvidia.com/gpu":"8"}`},
		"one flavor for all nodes":                   {nil, []corev1.Node{big, other}, `{"cpu":"32","nvidia.com/gpu":"16"}`},
		"no node of the flavor":                      {map[string]string{"model": "c"}, []corev1.Node{big}, ""},
		"no nodes":                                   {nil, nil, ""},
		"a node that is repaired comes back": {nil, []corev1.Node{with(big, func(n *corev1.Node) { n.Spec.Unschedulable = true })},
			`{"cpu":"32","nvidia.com/gpu":"8"}`},
		"a node that goes does not":         {nil, []corev1.Node{with(big, func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)} })}, ""},
		"what a node has lost says nothing": {nil, []corev1.Node{sized("a", map[corev1.ResourceName]string{"nvidia.com/gpu": "0"})}, ""},
		"nodes of the control plane run no work": {nil, []corev1.Node{with(other, func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
		}), big}, `{"cpu":"32","nvidia.com/gpu":"8"}`},
	} {
		t.Run(name, func(t *testing.T) {
			flavor := &kueue.ResourceFlavor{Spec: kueue.ResourceFlavorSpec{NodeLabels: row.labels}}
			if got := Publish(flavor, row.nodes); got != row.want {
				t.Errorf("it says %s, not %s", got, row.want)
			}
		})
	}
}

func TestAPodFitsNoNodeOnlyByWhatIsKnown(t *testing.T) {
	for name, row := range map[string]struct {
		says     string
		requests map[corev1.ResourceName]string
		want     []corev1.ResourceName
	}{
		"more than the largest node has": {`{"cpu":"64","nvidia.com/gpu":"8"}`, map[corev1.ResourceName]string{"nvidia.com/gpu": "9", "cpu": "64001m"}, []corev1.ResourceName{"cpu", "nvidia.com/gpu"}},
		"as much as it has":              {`{"cpu":"64","nvidia.com/gpu":"8"}`, map[corev1.ResourceName]string{"nvidia.com/gpu": "8", "cpu": "64"}, nil},
		"what no node has may come":      {`{"cpu":"64"}`, map[corev1.ResourceName]string{"nvidia.com/gpu": "9"}, nil},
		"nothing was written":            {``, map[corev1.ResourceName]string{"nvidia.com/gpu": "9"}, nil},
		"someone else wrote":             {`8 GPUs`, map[corev1.ResourceName]string{"nvidia.com/gpu": "9"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta2.LargestNodeAnnotation: row.says}}}
			if got := Beyond(amounts(row.requests), Published(flavor)); !slices.Equal(got, row.want) {
				t.Errorf("it has too much %q, not %q", got, row.want)
			}
		})
	}
}
