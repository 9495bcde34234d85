// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// The API server of the local cluster refuses critical pods in namespaces without a quota for them, as
// GKE's does. The platform runs there, because it brings its own.
func TestCriticalPodsNeedAQuota(t *testing.T) {
	testenv.Test(t, features.New("critical").Assess("only the platform has one", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-critical", "crit", needs.Machine)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "critical", Namespace: metav1.NamespaceDefault},
			Spec:       corev1.PodSpec{PriorityClassName: "system-node-critical", Containers: []corev1.Container{{Name: "main", Image: "x"}}},
		}
		err := s.admin.Create(ctx, pod)
		if err == nil {
			err = s.admin.Delete(ctx, pod)
			t.Errorf("the API server accepts a critical pod (%v)", err)
		} else if !strings.Contains(err.Error(), "insufficient quota") {
			t.Error(err)
		}
		quota := &corev1.ResourceQuota{}
		if err := s.admin.Get(ctx, "mlbatch-critical-pods", "mlbatch-system", quota); err != nil {
			t.Fatal(err)
		}
		if used := quota.Status.Used[corev1.ResourcePods]; used.Value() < 5 {
			t.Errorf("%s pods of the platform are critical", used.String())
		}
		return ctx
	}).Feature())
}
