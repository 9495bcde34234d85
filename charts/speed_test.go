// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/setup"
)

// Kueue reconciles each kind that is not listed with one worker.
func TestKueueHasSeveralWorkersForWhatItQueues(t *testing.T) {
	var defaults struct {
		Kueue struct {
			ManagerConfig struct {
				Configuration struct {
					Controller   struct{ GroupKindConcurrency map[string]int }
					Integrations struct{ Frameworks []string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(packaged(t, "mlbatch").Files["values.yaml"], &defaults); err != nil {
		t.Fatal(err)
	}
	configuration := defaults.Kueue.ManagerConfig.Configuration
	workers := map[string]int{}
	for kind, n := range configuration.Controller.GroupKindConcurrency {
		workers[strings.ToLower(kind)] = n
	}
	for _, framework := range configuration.Integrations.Frameworks {
		group, kind, _ := strings.Cut(framework, "/")
		if n := workers[kind+"."+group]; n < 5 {
			t.Errorf("%s has %d workers, want at least 5", framework, n)
		}
	}
}

// A Go program that does not know its limit is killed when it has more garbage than fits.
func TestEveryProgramKnowsItsMemoryLimit(t *testing.T) {
	rendered := must(render(t, "mlbatch", values(t, must(setup.Profile("every-part"))(t))))(t)
	programs := 0
	for _, document := range strings.Split(rendered.Manifest, "\n---\n") {
		if parse(t, document).Kind != "Deployment" {
			continue
		}
		for _, c := range read[appsv1.Deployment](t, document).Spec.Template.Spec.Containers {
			var got []string
			for _, variable := range c.Env {
				if variable.Name == "GOMEMLIMIT" {
					got = append(got, variable.Value)
				}
			}
			limit := c.Resources.Limits.Memory()
			if len(got) != 1 || !strings.HasSuffix(got[0], "MiB") {
				t.Errorf("%s has a limit of %s, and GOMEMLIMIT is %q", c.Image, limit, got)
				continue
			}
			set := resource.MustParse(strings.TrimSuffix(got[0], "B"))
			if share := set.AsApproximateFloat64() / limit.AsApproximateFloat64(); share > 0.9 || share < 0.89 {
				t.Errorf("%s has a limit of %s, and GOMEMLIMIT is %s", c.Image, limit, got[0])
			}
			programs++
		}
	}
	if programs < 8 {
		t.Errorf("the test saw %d programs, want at least 8", programs)
	}
}

func TestTheMemoryLimitFollowsTheValues(t *testing.T) {
	for name, row := range map[string]struct {
		set  map[string]any
		want string
	}{
		"gibibytes":   {map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": "1.5Gi"}}}, "value: 1382MiB"},
		"megabytes":   {map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": "500M"}}}, "value: 429MiB"},
		"no limit":    {map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": nil}}}, ""},
		"one's own":   {map[string]any{"env": []any{map[string]any{"name": "GOMEMLIMIT", "value": "1GiB"}}}, "value: 1GiB"},
		"not a limit": {map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": "1e9"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := must(render(t, "appwrapper", row.set))(t).Manifest
			_, after, _ := strings.Cut(manifest, "- name: GOMEMLIMIT\n")
			got, _, _ := strings.Cut(strings.TrimSpace(after), "\n")
			if got != row.want {
				t.Errorf("GOMEMLIMIT has %q, want %q", got, row.want)
			}
			if strings.Contains(after, "GOMEMLIMIT") {
				t.Error("GOMEMLIMIT is set twice")
			}
		})
	}
}

func TestGangsNeedNoControllerOfPodGroups(t *testing.T) {
	manifest := string(readable(t, "coscheduler", must(render(t, "coscheduler", map[string]any{"controller": map[string]any{"enabled": false}}))(t).Manifest))
	if strings.Contains(manifest, "name: scheduler-plugins-controller") {
		t.Error("it is off, and something of it is there")
	}
	if strings.Count(manifest, "\nkind: Deployment\n") != 1 {
		t.Error("there is no scheduler")
	}
}
