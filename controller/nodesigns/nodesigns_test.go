// SPDX-License-Identifier: Apache-2.0

package nodesigns_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/nodesigns"
)

func TestSignsAreThoseOfTheConfiguration(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "GpuUnhealthy", Status: corev1.ConditionTrue}}}}
	told, err := nodesigns.Parse([]byte("appwrapper: {nodeHealth: {conditions: [{type: GpuUnhealthy, status: \"True\", resources: [nvidia.com/gpu], effect: NoExecute}]}}"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"NodeCondition GpuUnhealthy=True"}, told.Unhealthy(node)); diff != "" {
		t.Error(diff)
	}
	if signs := nodesigns.Default().Unhealthy(node); len(signs) > 0 {
		t.Errorf("without configuration it has %q", signs)
	}
	if _, err := nodesigns.Parse([]byte("appwraper: {}")); err == nil {
		t.Error("an unknown key is read")
	}
}

func TestSuspectsAreBlamedBySeveral(t *testing.T) {
	now := time.Unix(1000, 0)
	blame := func(name string) v1beta2.AppWrapper {
		aw := v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: name}}
		aw.Status.AvoidedNodes = []v1beta2.AvoidedNode{{Name: "n1", Cause: "PodRejected UnexpectedAdmissionError", Until: metav1.Unix(2000, 0)}}
		return aw
	}
	want := []nodesigns.Suspect{{Node: "n1", By: 3, Teams: 1, Cause: "PodRejected UnexpectedAdmissionError"}}
	all := []v1beta2.AppWrapper{blame("a"), blame("b"), blame("c")}
	if diff := cmp.Diff(want, nodesigns.Default().Suspects(all, now)); diff != "" {
		t.Error(diff)
	}
	if got := nodesigns.Default().Suspects(all, time.Unix(3000, 0)); len(got) > 0 {
		t.Errorf("later there are %v", got)
	}
}
