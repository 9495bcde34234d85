// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/test/explain"
	"github.com/mlbatch/mlbatch/test/quotawatch"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// quota watches from before the first story until after the last. quotaLogs are printed if it
// found a violation.
var (
	quota     *quotawatch.Watch
	quotaLogs kubernetes.Interface
)

// watchQuota starts the watch.
func watchQuota(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
	api, err := client.NewWithWatch(cfg.Client().RESTConfig(), client.Options{Scheme: cfg.Client().Resources().GetScheme()})
	if err != nil {
		return ctx, err
	}
	if quotaLogs, err = kubernetes.NewForConfig(cfg.Client().RESTConfig()); err != nil {
		return ctx, err
	}
	quota, err = quotawatch.Start(ctx, api, os.Stderr)
	return ctx, err
}

// endQuotaWatch prints the platform's logs if there was a violation: no single story fails
// because of it, so no story prints them.
func endQuotaWatch(ctx context.Context) error {
	err := quota.End(ctx)
	if err != nil && quotaLogs != nil {
		explain.Cluster{Logs: quotaLogs, Print: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}.
			PodLogs(ctx, platform.Namespace)
	}
	return err
}

// The watch must detect a pod that claims to belong to an AppWrapper but has no quota.
func TestAPodWithoutQuotaIsSeen(t *testing.T) {
	testenv.Test(t, features.New("watch").Assess("the pod is reported", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		requires(t, needs.SimulatedNodes)
		admin, err := resources.New(cfg.Client().RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		found := quota.Expect(types.NamespacedName{Namespace: "default", Name: "nobody"})
		planted := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "planted", Namespace: "default", Labels: map[string]string{workload.AppWrapperLabel: "nobody"}},
			Spec: corev1.PodSpec{
				NodeName:   here.Simulated[0],
				Containers: []corev1.Container{container("main", requests("1", "1Gi", "1"), "sleep", "1h")},
			},
		}
		if err := admin.Create(ctx, planted); err != nil {
			t.Fatal(err)
		}
		err = await(ctx, func(context.Context) (string, error) {
			if len(found()) == 0 {
				return "nothing was reported", nil
			}
			return "", nil
		})
		if err != nil {
			t.Error(err)
		}
		if err := admin.Delete(ctx, planted); err != nil {
			t.Error(err)
		}
		return ctx
	}).Feature())
}
