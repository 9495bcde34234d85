// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// A job includes a Service, a ConfigMap, a Secret and a PersistentVolumeClaim. They are created
// and deleted with it.
func TestAJobBringsWhatItNeeds(t *testing.T) {
	testenv.Test(t, features.New("companions").Assess("all of it comes and goes", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-kinds", "kate", needs.Pods, needs.Machine)
		s.provide(ctx, "bundle")
		var components []map[string]any
		s.read("bundle.yaml", map[string]string{"NAME": "bundle", "IMAGE": here.Workload.Name}, &components)
		aw := wrapped("bundle", components[0], nil)
		for _, component := range components[1:] {
			aw.Spec.Components = append(aw.Spec.Components, wrapped("", component, nil).Spec.Components...)
		}
		s.create(ctx, aw)
		s.untilPhase(ctx, aw, workload.AppWrapperSucceeded)
		if diff := cmp.Diff([]int32{1}, s.podsWithQuota(ctx, aw)); diff != "" {
			t.Errorf("pods that have quota (-want +got):\n%s", diff)
		}

		s.remove(ctx, aw)
		for _, companion := range []client.Object{&corev1.Service{}, &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.PersistentVolumeClaim{}} {
			s.until(ctx, "nothing of it is left", func(ctx context.Context) (string, error) {
				err := s.admin.Get(ctx, "bundle", s.namespace, companion)
				if apierrors.IsNotFound(err) {
					return "", nil
				}
				return "it is there", err
			})
		}
		return ctx
	}).Feature())
}

// provide creates a volume for the claim with that name.
func (s *story) provide(ctx context.Context, name string) {
	s.t.Helper()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: s.namespace, Name: name},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log/pods"}},
		},
	}
	if err := s.admin.Create(ctx, volume); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := s.admin.Delete(context.Background(), volume); err != nil {
			s.t.Error(err)
		}
	})
}
