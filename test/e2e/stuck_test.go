// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// Pods that will never run hold quota for the grace period. Then they are recreated, and
// finally the job is Failed.
func TestAJobThatDoesNotStartIsGivenUp(t *testing.T) {
	testenv.Test(t, features.New("stuck").Assess("it is tried again, then Failed", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-failing", "frank", needs.Pods)
		all := map[string]*workload.AppWrapper{}
		for name, change := range map[string]func(*corev1.PodSpec){
			"no-image": func(spec *corev1.PodSpec) {
				spec.Containers[0].Image, spec.Containers[0].ImagePullPolicy = "images.local/mlbatch/nothing:1", corev1.PullNever
			},
			"no-node": func(spec *corev1.PodSpec) { spec.NodeSelector = map[string]string{"e2e.mlbatch.dev/nowhere": "true"} },
		} {
			stuck := job(name, "100m", "exit", "0")
			change(&stuck.Spec.Template.Spec)
			all[name] = wrapped(name, stuck, map[string]string{
				workload.WarmupGracePeriodDurationAnnotation: "2s",
				workload.RetryLimitAnnotation:                "1",
				workload.RetryPausePeriodDurationAnnotation:  "1s",
			})
			s.create(ctx, all[name])
		}
		for name, aw := range all {
			s.untilPhase(ctx, aw, workload.AppWrapperFailed)
			if aw.Status.Retries != 1 {
				t.Errorf("%s: resettingCount is %d, not the limit of 1", name, aw.Status.Retries)
			}
			if c := meta.FindStatusCondition(aw.Status.Conditions, string(workload.Unhealthy)); c == nil || c.Reason != workload.ReasonInsufficientPodsReady {
				t.Errorf("%s: Unhealthy must have the reason InsufficientPodsReady: %+v", name, c)
			}
		}
		s.untilReserved(ctx, corev1.ResourceCPU, "0")
		return ctx
	}).Feature())
}
