// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/patience"
)

// farewell is how long a pod continues after SIGTERM: long enough to observe what happens meanwhile, the longer the
// busier the machine is.
func farewell() string { return patience.For(5 * time.Second).String() }

// untilListening waits until the programs in the pods of an AppWrapper, which linger, handle SIGTERM. A program that is
// stopped before ends at once.
func (s *story) untilListening(ctx context.Context, appWrapper string, pods int) {
	s.t.Helper()
	s.until(ctx, "the programs of "+appWrapper+" listen", func(ctx context.Context) (string, error) { return s.listening(ctx, appWrapper, pods) })
}

// listening returns "" once so many pods have written the line that follows the handler.
func (s *story) listening(ctx context.Context, appWrapper string, want int) (string, error) {
	pods, err := s.running(ctx, appWrapper)
	if err != nil {
		return "", err
	}
	listen := 0
	for _, p := range pods {
		log, err := s.api.CoreV1().Pods(s.namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil {
			return "", err
		}
		if strings.Contains(string(log), "lingering") {
			listen++
		}
	}
	if listen < want {
		return fmt.Sprintf("%d of %d do", listen, want), nil
	}
	return "", nil
}

// untilPodsEnd waits until no pod of an AppWrapper runs. While one runs, its quota must be
// reserved and no other pod may exist.
func (s *story) untilPodsEnd(ctx context.Context, appWrapper, cpu string) {
	s.t.Helper()
	looks := 0
	s.until(ctx, "the pods of "+appWrapper+" end", func(ctx context.Context) (string, error) {
		// Read the quota before the pods: a pod that runs after this ran when the quota was
		// read.
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
		s.t.Errorf("no pod of %s was seen while it was terminating", appWrapper)
	}
}

// countPods counts the running pods of an AppWrapper, those of them that are terminating, and
// other pods.
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
