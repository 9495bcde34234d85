// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/config"
)

func TestTheManagerKnowsTheKinds(t *testing.T) {
	options, err := managerOptions(config.DefaultRuns())
	if err != nil {
		t.Fatal(err)
	}
	if options.Metrics.FilterProvider == nil || !options.Metrics.SecureServing {
		t.Error("everybody may read the metrics")
	}
	for _, object := range []client.Object{
		&v1alpha1.Run{}, &v1alpha1.Application{}, &v1alpha1.DataSet{}, &v1alpha1.RunSizeConfiguration{}, &v1beta2.AppWrapper{},
	} {
		if _, _, err := options.Scheme.ObjectKinds(object); err != nil {
			t.Error(err)
		}
	}
	for object, how := range options.Cache.ByObject {
		if _, is := object.(*v1beta2.AppWrapper); is && (how.Label == nil || how.Label.String() != v1alpha1.RunLabel) {
			t.Errorf("AppWrappers are cached if %v", how.Label)
		}
	}
}
