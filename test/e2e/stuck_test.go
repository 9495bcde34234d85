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
// stuck are pods that never run, or that run and tell that they hang.
var stuck = map[string]func(*corev1.PodSpec){
	"no-image": func(spec *corev1.PodSpec) {
		spec.Containers[0].Image, spec.Containers[0].ImagePullPolicy = "images.local/mlbatch/nothing:1", corev1.PullNever
	},
	"no-node": func(spec *corev1.PodSpec) { spec.NodeSelector = map[string]string{"e2e.mlbatch.dev/nowhere": "true"} },
	"no-progress": func(spec *corev1.PodSpec) {
		spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/workload", "exit", "1"}}}}
	},
}

func TestAJobThatDoesNotStartIsGivenUp(t *testing.T) {
	testenv.Test(t, features.New("stuck").Assess("it is tried again, then Failed", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-failing", "frank", needs.Pods)
		all := map[string]*workload.AppWrapper{}
		for name, change := range stuck {
			never := job(name, "100m", "linger", "0s")
			change(&never.Spec.Template.Spec)
			grace := workload.WarmupGracePeriodDurationAnnotation
			if name == "no-progress" {
				grace = workload.NoProgressGracePeriodDurationAnnotation
			}
			all[name] = wrapped(name, never, map[string]string{
				grace:                         "2s",
				workload.RetryLimitAnnotation: "1",
				workload.RetryPausePeriodDurationAnnotation: "1s",
			})
			s.create(ctx, all[name])
		}
		for name, aw := range all {
			s.untilPhase(ctx, aw, workload.AppWrapperFailed)
			if aw.Status.Retries != 1 {
				t.Errorf("%s: resettingCount is %d, not the limit of 1", name, aw.Status.Retries)
			}
			want := workload.ReasonInsufficientPodsReady
			if name == "no-progress" {
				want = workload.ReasonNoProgress
			}
			if c := meta.FindStatusCondition(aw.Status.Conditions, string(workload.Unhealthy)); c == nil || c.Reason != want {
				t.Errorf("%s: Unhealthy must have the reason %s: %+v", name, want, c)
			}
		}
		s.untilReserved(ctx, corev1.ResourceCPU, "0")
		return ctx
	}).Feature())
}
