// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// farewell is how long a pod works on after it was told to end: long enough to
// see what others do meanwhile.
const farewell = "3s"

// untilPodsEnd waits until no pod of an AppWrapper runs any more. While one
// does, its quota is taken and nobody else has pods.
func (s *story) untilPodsEnd(ctx context.Context, appWrapper, cpu string) {
	s.t.Helper()
	looks := 0
	s.until(ctx, "the pods of "+appWrapper+" end", func(ctx context.Context) (string, error) {
		// Before the pods: what runs after the look at the quota ran at it.
		held, err := s.reserved(ctx, corev1.ResourceCPU)
		if err != nil {
			return "", err
		}
		pods := &corev1.PodList{}
		if err := s.admin.List(ctx, pods); err != nil {
			return "", err
		}
		running, ending, others := countPods(pods.Items, appWrapper)
		if running == 0 {
			return "", nil
		}
		if held != cpu || others > 0 {
			return "", broken(fmt.Sprintf("%d of its pods run, but %s of its %s CPU are taken, and others have %d pods", running, held, cpu, others))
		}
		looks += ending
		return fmt.Sprintf("%d run, and %d of them were told to end", running, ending), nil
	})
	if looks == 0 {
		s.t.Errorf("no pod of %s was seen between being told to end and its end", appWrapper)
	}
}

// countPods counts the pods of an AppWrapper that run, those of them that were told
// to end, and the pods of others.
func countPods(pods []corev1.Pod, appWrapper string) (running, ending, others int) {
	for _, p := range pods {
		switch {
		case p.Labels[workload.AppWrapperLabel] != appWrapper:
			others++
		case p.Status.Phase == corev1.PodRunning:
			running++
			if p.DeletionTimestamp != nil {
				ending++
			}
		}
	}
	return running, ending, others
}
