// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// What attacks come to. Each question returns "" once the attack has succeeded.

// podsOf returns "" if at least so many pods with a label exist.
func (s *story) podsOf(ctx context.Context, label string, want int) (string, error) {
	list := &corev1.PodList{}
	err := s.admin.List(ctx, list, resources.WithLabelSelector(label))
	if len(list.Items) >= want {
		return "", err
	}
	return fmt.Sprintf("%d of %d pods exist", len(list.Items), want), err
}

// outlived: a Job and its pod run on without their AppWrapper.
func (s *story) outlived(ctx context.Context, name string) (string, error) {
	if missing, err := s.stillThere(ctx, &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: name}}); missing != "" || err != nil {
		return missing, err
	}
	left := &batchv1.Job{}
	if err := s.admin.Get(ctx, name, s.namespace, left); err != nil {
		return "", broken(err.Error())
	}
	if left.Status.Active != 1 {
		return fmt.Sprintf("%d pods are active", left.Status.Active), nil
	}
	return "", nil
}

// bareOutlived: the pods of the PyTorchJob bare run on without it.
func (s *story) bareOutlived(ctx context.Context) (string, error) {
	job := s.unwrapped("pytorchjob", "bare")
	if err := s.admin.GetControllerRuntimeClient().Get(ctx, client.ObjectKeyFromObject(job), job); !apierrors.IsNotFound(err) {
		return "the PyTorchJob exists", err
	}
	return s.podsOf(ctx, "training.kubeflow.org/job-name=bare", 2)
}

// runsWithoutQuota: so many pods with a label use a node, and nothing in the namespace has quota.
func (s *story) runsWithoutQuota(ctx context.Context, label string, want int) (string, error) {
	pods, workloads := &corev1.PodList{}, &kueue.WorkloadList{}
	if err := s.admin.List(ctx, pods, resources.WithLabelSelector(label)); err != nil {
		return "", err
	}
	using := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	if len(using) < want {
		return fmt.Sprintf("%d of %d pods run", len(using), want), nil
	}
	if err := s.admin.List(ctx, workloads); err != nil {
		return "", err
	}
	for i := range workloads.Items {
		if quota := podsWithQuota(&workloads.Items[i]); quota > 0 {
			return fmt.Sprintf("Kueue holds quota for %d pods", quota), nil
		}
	}
	return "", nil
}

// undeadRuns: the pods of the PyTorchJob undead run on after it was deleted.
func (s *story) undeadRuns(ctx context.Context) (string, error) {
	job := s.unwrapped("pytorchjob", "undead")
	if err := s.admin.GetControllerRuntimeClient().Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
		return "", broken(err.Error())
	}
	if since(job.GetDeletionTimestamp()) < 15*time.Second {
		return "it was deleted only just now", nil
	}
	return s.podsOf(ctx, "training.kubeflow.org/job-name=undead", 2)
}

// toleratesAll: a pod tolerates what it did not when it was created.
func (s *story) toleratesAll(ctx context.Context) (string, error) {
	pods, err := s.pods(ctx, "tolerating")
	for i := range pods {
		if slices.ContainsFunc(pods[i].Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "" && t.Operator == corev1.TolerationOpExists }) {
			return "", err
		}
	}
	return "no pod tolerates every taint", err
}

// countedIsReset: the AppWrapper is reset because of pods that are not its own, and its events say
// so.
func (s *story) countedIsReset(ctx context.Context) (string, error) {
	aw := &workload.AppWrapper{}
	if err := s.admin.Get(ctx, "counted", s.namespace, aw); err != nil {
		return "", err
	}
	unhealthy := meta.FindStatusCondition(aw.Status.Conditions, string(workload.Unhealthy))
	if aw.Status.Retries == 0 || unhealthy == nil || unhealthy.Reason != workload.ReasonSurplusPods {
		return fmt.Sprintf("it is %s, after %d retries, with %+v", aw.Status.Phase, aw.Status.Retries, aw.Status.Conditions), nil
	}
	events := &corev1.EventList{}
	err := s.admin.List(ctx, events, resources.WithFieldSelector("reason="+workload.ReasonSurplusPods))
	if err != nil || len(events.Items) == 0 {
		return "there is no event", err
	}
	return "", nil
}

// quotaIsKept: the AppWrapper keeping has quota, and no pod.
func (s *story) quotaIsKept(ctx context.Context) (string, error) {
	aw, pods := &workload.AppWrapper{}, &corev1.PodList{}
	if err := s.admin.Get(ctx, "keeping", s.namespace, aw); err != nil {
		return "", err
	}
	if err := s.admin.List(ctx, pods); err != nil {
		return "", err
	}
	w, err := s.workloadOf(ctx, aw)
	if err != nil || w == nil || podsWithQuota(w) != 1 || len(pods.Items) > 0 || aw.Status.Phase != workload.AppWrapperResetting {
		return fmt.Sprintf("it is %s, with %d pods", aw.Status.Phase, len(pods.Items)), err
	}
	return "", nil
}

// staysForever: nobody ends the deletion of an AppWrapper.
func (s *story) staysForever(ctx context.Context, name string) (string, error) {
	aw := &workload.AppWrapper{}
	if err := s.admin.Get(ctx, name, s.namespace, aw); err != nil {
		return "", broken(err.Error())
	}
	if since(aw.DeletionTimestamp) < 15*time.Second {
		return "it was deleted only just now", nil
	}
	return "", nil
}

// bystander is a pod of another user, which takes a node.
func (s *story) bystander(ctx context.Context) {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "e2e-bystander", Namespace: "default"}}
	pod.Spec.Containers = []corev1.Container{container("main", nil, "linger", "0s")}
	takeNode(&pod.Spec, here.Simulated[0])
	if err := s.admin.Create(ctx, pod); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := client.IgnoreNotFound(s.admin.Delete(context.Background(), pod)); err != nil {
			s.t.Error(err)
		}
	})
	s.until(ctx, "the bystander has its node", func(ctx context.Context) (string, error) {
		err := s.admin.Get(ctx, pod.Name, pod.Namespace, pod)
		if pod.Spec.NodeName == "" {
			return "it has none", err
		}
		return "", err
	})
}

func (s *story) bystanderIsEvicted(ctx context.Context) (string, error) {
	pod := &corev1.Pod{}
	err := s.admin.Get(ctx, "e2e-bystander", "default", pod)
	if apierrors.IsNotFound(err) || pod.DeletionTimestamp != nil {
		return s.runsOn(ctx, workload.AppWrapperLabel+"=critical", here.Simulated[0])
	}
	return "it runs", err
}

// reserve taints a node, until the test ends.
func (s *story) reserve(ctx context.Context, node, key string) {
	s.t.Helper()
	s.changeNode(ctx, node, func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	})
	s.t.Cleanup(func() {
		s.changeNode(context.Background(), node, func(n *corev1.Node) {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
		})
	})
}

// runsOn: a pod with a label has a node.
func (s *story) runsOn(ctx context.Context, label, node string) (string, error) {
	pods := &corev1.PodList{}
	if err := s.admin.List(ctx, pods, resources.WithLabelSelector(label)); err != nil {
		return "", err
	}
	if !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == node }) {
		return fmt.Sprintf("none of %d pods is on %s", len(pods.Items), node), nil
	}
	return "", nil
}
