// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// standing describes a team's objects and work, by name. Two results are equal if nothing
// happened in between: no pod was recreated, no quota moved, and nothing that the administrator
// created was written.
func (s *story) standing(ctx context.Context) map[string]string {
	s.t.Helper()
	lines := map[string]string{}
	for _, object := range []client.Object{&corev1.Namespace{}, &kueue.ClusterQueue{}} {
		name := s.namespace
		if _, queue := object.(*kueue.ClusterQueue); queue {
			name = s.queue()
		}
		if err := s.admin.Get(ctx, name, "", object); err != nil {
			s.t.Fatal(err)
		}
		lines[fmt.Sprintf("%T %s", object, name)] = state(object)
	}
	for _, list := range []k8s.ObjectList{
		&kueue.LocalQueueList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &networkingv1.NetworkPolicyList{},
		&workload.AppWrapperList{}, &kueue.WorkloadList{}, &corev1.PodList{},
	} {
		if err := s.admin.List(ctx, list); err != nil {
			s.t.Fatal(err)
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			lines[fmt.Sprintf("%T %s", object, object.GetName())] = state(object)
			return nil
		})
	}
	return lines
}

// state changes when the spec of an object changes, or when its work stops or starts. Objects
// without a generation are compared as a whole.
func state(object client.Object) string {
	line := fmt.Sprintf("%s, generation %d", object.GetUID(), object.GetGeneration())
	switch o := object.(type) {
	case *corev1.Pod:
		for _, c := range o.Status.ContainerStatuses {
			line += fmt.Sprintf(", %d restarts", c.RestartCount)
		}
		return fmt.Sprintf("%s, %s on %s", line, o.Status.Phase, o.Spec.NodeName)
	case *workload.AppWrapper:
		return fmt.Sprintf("%s, %s, %d retries", line, o.Status.Phase, o.Status.Retries)
	case *kueue.Workload:
		for _, kind := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted, kueue.WorkloadEvicted} {
			if c := meta.FindStatusCondition(o.Status.Conditions, kind); c != nil {
				line += fmt.Sprintf(", %s=%s since %s", kind, c.Status, c.LastTransitionTime)
			}
		}
		return line
	case *corev1.Namespace:
		return fmt.Sprintf("%s, labels %v", line, o.Labels)
	}
	if object.GetGeneration() == 0 {
		return fmt.Sprintf("%s, version %s", object.GetUID(), object.GetResourceVersion())
	}
	return line
}

// mustStandAs fails if the standing of a team has changed.
func (s *story) mustStandAs(ctx context.Context, before map[string]string, what string) {
	s.t.Helper()
	if diff := cmp.Diff(before, s.standing(ctx)); diff != "" {
		s.t.Errorf("%s changed what %s has (-before +after)\n%s", what, s.namespace, diff)
	}
}

func TestWhatATeamHasIsComparedByWhatMatters(t *testing.T) {
	pod := func(change func(*corev1.Pod)) client.Object {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{}}}}
		p.UID, p.ResourceVersion = "1", "1"
		change(p)
		return p
	}
	binding := func(version string) client.Object {
		b := &rbacv1.RoleBinding{}
		b.ResourceVersion = version
		return b
	}
	calm := pod(func(*corev1.Pod) {})
	for name, c := range map[string]struct {
		before, after client.Object
		same          bool
	}{
		"a pod that reports something is the same": {calm, pod(func(p *corev1.Pod) { p.ResourceVersion = "2" }), true},
		"a pod that was made anew is not":          {calm, pod(func(p *corev1.Pod) { p.UID = "2" }), false},
		"a container that was restarted is seen":   {calm, pod(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 1 }), false},
		"a binding that was written is seen":       {binding("1"), binding("2"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if same := state(c.before) == state(c.after); same != c.same {
				t.Errorf("%s and %s: %t, want %t", state(c.before), state(c.after), same, c.same)
			}
		})
	}
}
