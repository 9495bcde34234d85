// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package siege_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/siege/referee"
)

// canaryLimit is how long work of a second may take on a machine that has nothing else to do.
const canaryLimit = 45 * time.Second

// canary submits work of another team, again and again. It has to start and end soon.
func (s *siege) canary(ctx context.Context) {
	carla, err := client.New(s.as("carla"), client.Options{})
	for i := 0; err == nil && ctx.Err() == nil; i++ {
		aw := &unstructured.Unstructured{Object: s.objectsNamed(filepath.Join("testdata", "canary.yaml"), fmt.Sprintf("canary-%d", i))[0]}
		aw.SetNamespace("canary")
		err = s.sing(ctx, carla, aw)
		pause(ctx, 5*time.Second)
	}
	if err != nil && ctx.Err() == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.findings = append(s.findings, referee.Finding{Rule: "stalled", Object: "the work of another team", Evidence: err.Error()})
	}
}

func (s *siege) sing(ctx context.Context, carla client.Client, aw *unstructured.Unstructured) error {
	began := time.Now()
	if err := carla.Create(ctx, aw); err != nil {
		return err
	}
	err := patience.PollFor(ctx, time.Second/2, canaryLimit, func(ctx context.Context) (bool, error) {
		err := carla.Get(ctx, client.ObjectKeyFromObject(aw), aw)
		phase, _, _ := unstructured.NestedString(aw.Object, "status", "phase")
		if phase == "Failed" {
			err = errors.New("it failed")
		}
		return phase == "Succeeded", err
	})
	if err != nil {
		return fmt.Errorf("%s: %w: %v", aw.GetName(), err, aw.Object["status"])
	}
	s.mu.Lock()
	s.canaries = append(s.canaries, time.Since(began))
	s.mu.Unlock()
	return carla.Delete(ctx, aw)
}
