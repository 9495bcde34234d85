// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// The API server takes the manifests of 2023 with strict validation, as kubectl asks for it. Only their
// namespace and image are changed. The Run of a program and that of a sequence come to their end; the
// others wait for what this cluster lacks.
func TestManifestsOf2023Run(t *testing.T) {
	testenv.Test(t, features.New("manifests of 2023").Assess("they are accepted and run", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-runs", "ruth", needs.TrainingPods, needs.Runs)
		runs := 0
		for _, object := range s.manifestsOf2023() {
			s.createStrictly(ctx, object)
			if object.GetKind() == v1alpha1.RunKind {
				runs++
			}
		}
		if runs < 4 {
			t.Fatalf("there are %d Runs", runs)
		}
		for _, name := range []string{"hello-1", "twice-1"} {
			s.untilRun(ctx, &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: name}}, v1alpha1.RunSucceeded)
		}
		for _, name := range []string{"digits-1", "tune-1", "glue-1"} {
			run := &v1alpha1.Run{}
			if err := s.admin.Get(ctx, name, s.namespace, run); err != nil || run.Status.AppWrapper == nil {
				t.Errorf("Run %s is %s: %s (%v)", name, run.Status.Phase, run.Status.Message, err)
			}
		}
		return ctx
	}).Feature())
}

// manifestsOf2023 are those that runplan plans, too.
func (s *story) manifestsOf2023() []*unstructured.Unstructured {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "controller", "runplan", "testdata", "manifests-of-2023.in.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	here := strings.NewReplacer("namespace: blue", "namespace: "+s.namespace, "busybox:1.37", here.Training.Name).Replace(string(text))
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(here)), 4096)
	var all []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, object)
	}
}

// createStrictly creates an object of the user or, if it has no namespace, of the administrator.
func (s *story) createStrictly(ctx context.Context, object *unstructured.Unstructured) {
	s.t.Helper()
	if object.GetNamespace() != "" {
		if err := s.user.Create(ctx, object, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			s.t.Fatalf("cannot create %s: %v", object.GetName(), err)
		}
		s.created = append(s.created, object)
		return
	}
	if err := s.admin.Create(ctx, object); err != nil {
		s.t.Fatalf("cannot create %s: %v", object.GetName(), err)
	}
	s.t.Cleanup(func() {
		if err := s.admin.Delete(context.WithoutCancel(ctx), object); err != nil {
			s.t.Error(err)
		}
	})
}
