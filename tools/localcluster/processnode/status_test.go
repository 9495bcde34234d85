// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStatus(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CannotStart"}}
	for name, c := range map[string]struct {
		state      state
		phase      corev1.PodPhase
		conditions string // the true ones
	}{
		"it has not been started yet":             {state{now: waiting}, corev1.PodPending, "PodScheduled Initialized "},
		"it runs":                                 {state{now: running}, corev1.PodRunning, "PodScheduled PodReadyToStartContainers Initialized "},
		"its probe has passed":                    {state{now: running, ready: true}, corev1.PodRunning, "PodScheduled PodReadyToStartContainers Initialized ContainersReady Ready "},
		"it waits to be started again":            {state{now: waiting, restarts: 1}, corev1.PodRunning, "PodScheduled Initialized "},
		"it was ready before its container ended": {state{now: waiting, ready: true, restarts: 1}, corev1.PodRunning, "PodScheduled Initialized "},
	} {
		t.Run(name, func(t *testing.T) {
			last := corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}
			c.state.ip = "10.200.0.10"
			got := status(one(func(*corev1.Pod, *corev1.Container) {}), last, c.state, metav1.Now())
			var holding string
			for _, condition := range got.Conditions {
				if condition.Status == corev1.ConditionTrue {
					holding += string(condition.Type) + " "
				}
			}
			if got.Phase != c.phase || holding != c.conditions {
				t.Errorf("it is %s with %s", got.Phase, holding)
			}
			if own := got.ContainerStatuses[0]; got.PodIP != "10.200.0.10" || got.PodIPs[0].IP != got.PodIP ||
				own.Name != "manager" || own.RestartCount != c.state.restarts || *own.Started != (c.state.now.Running != nil) {
				t.Errorf("it is said to be %+v", got)
			}
		})
	}
}

func TestAConditionKeepsItsTransitionTime(t *testing.T) {
	pod := one(func(*corev1.Pod, *corev1.Container) {})
	at := func(seconds int64) metav1.Time { return metav1.NewTime(time.Unix(seconds, 0)) }
	s := state{now: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	first := status(pod, corev1.PodStatus{}, s, at(1))
	s.ready = true
	second := status(pod, first, s, at(2))
	third := status(pod, second, s, at(3))
	got := map[corev1.PodConditionType]int64{}
	for _, c := range third.Conditions {
		got[c.Type] = c.LastTransitionTime.Unix()
	}
	want := map[corev1.PodConditionType]int64{
		corev1.PodReadyToStartContainers: 1, corev1.PodInitialized: 1, corev1.ContainersReady: 2, corev1.PodReady: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnAddressBelongsToOnePod(t *testing.T) {
	a, err := newAddresses("10.200.0.1/24", "10.200.0.0/28")
	if err != nil {
		t.Fatal(err)
	}
	// The pod had this address under an earlier processnode.
	for before, want := range map[string]string{"10.200.0.12": "10.200.0.12"} {
		if got, err := a.take(before); err != nil || got.String() != want {
			t.Errorf("got %s, %v", got, err)
		}
	}
	if other, err := newAddresses("10.200.0.1/24", "10.200.0.64/26"); err != nil {
		t.Error(err)
	} else if ip, err := other.take("10.200.0.12"); err != nil || ip.String() != "10.200.0.74" {
		t.Errorf("another node gives a pod %s, %v", ip, err)
	}
	var got []string
	for range 4 {
		ip, err := a.take("")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ip.String())
	}
	if diff := cmp.Diff([]string{"10.200.0.10", "10.200.0.11", "10.200.0.13", "10.200.0.14"}, got); diff != "" {
		t.Error(diff)
	}
	if ip, err := a.take(""); err == nil {
		t.Errorf("%s is for broadcasts", ip)
	}
	eleven, _ := a.take("10.200.0.11")
	if eleven.IsValid() && eleven.String() == "10.200.0.11" {
		t.Error("one that is taken is given again")
	}
}
