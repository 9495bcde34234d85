// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package helm_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/patience"
)

// applyInstallYAML applies install.yaml twice, as kubectl apply --server-side does, and removes everything again.
func (s site) applyInstallYAML(t *testing.T) {
	objects := installObjects(t)
	for range 2 {
		for _, o := range objects {
			apply := ctrl.ApplyConfigurationFromUnstructured(o.DeepCopy())
			if err := s.objects.Apply(t.Context(), apply, ctrl.FieldOwner("kubectl")); err != nil {
				t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
			}
		}
	}
	for _, o := range slices.Backward(objects) {
		if err := s.objects.Delete(t.Context(), o); ctrl.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	for _, o := range objects {
		s.eventually(t, o.GetKind()+" "+o.GetName()+" is still there", func() bool { return !s.isThere(t, o.DeepCopy()) })
	}
}

// installObjects returns the objects of install.yaml, in its order.
func installObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(bundle.InstallYAML), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := documents.Decode(&o.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
}

// eventually waits until something is true.
func (s site) eventually(t *testing.T, otherwise string, is func() bool) {
	t.Helper()
	err := patience.Poll(t.Context(), 200*time.Millisecond, func(context.Context) (bool, error) {
		return is(), nil
	})
	if err != nil {
		t.Fatal(otherwise)
	}
}
