// SPDX-License-Identifier: Apache-2.0

package slackqueue

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/internal/slackquota"
)

// handed is the ConfigMap that the chart teams makes of an example.
func handed(t *testing.T) corev1.ConfigMap {
	t.Helper()
	manifests, err := os.ReadFile("../../../charts/testdata/teams/slack-queues.out.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(manifests), "\n---\n") {
		var c corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(document), &c); err == nil && c.Kind == "ConfigMap" && c.Name == slackquota.DeclaredName {
			return c
		}
	}
	t.Fatal("the chart makes no ConfigMap ", slackquota.DeclaredName)
	return corev1.ConfigMap{}
}

func TestWhatTheChartHandsOverIsRead(t *testing.T) {
	queues, err := parse(handed(t).Data)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		for _, group := range queues[name].ResourceGroups {
			for _, flavor := range group.Flavors {
				for _, quota := range flavor.Resources {
					text := fmt.Sprintf("%s in %s: %s %s %s", name, queues[name].CohortName, flavor.Name, quota.Name, quota.NominalQuota.String())
					if quota.LendingLimit != nil {
						text += " lends " + quota.LendingLimit.String()
					}
					got = append(got, text)
				}
			}
		}
	}
	want := []string{
		"slack-cluster-queue in research: default-flavor pods 0",
		"slack-cluster-queue in research: a100 cpu 96", "slack-cluster-queue in research: a100 memory 1Ti", "slack-cluster-queue in research: a100 nvidia.com/gpu 8 lends 6",
		"slack-of-products in products: h100 cpu 1500m", "slack-of-products in products: h100 memory 1Ti", "slack-of-products in products: h100 nvidia.com/gpu 8",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestADeclarationThatCannotBeReadIsNamed(t *testing.T) {
	for what, text := range map[string]string{
		"no YAML": "{", "an unknown field": "{cohort: research}", "no cohort": "{resourceGroups: [{}]}", "no quota": "{cohortName: research}",
	} {
		all, err := parse(map[string]string{"bad": text, "other": "{cohortName: research, resourceGroups: [{}]}"})
		if err == nil || !strings.Contains(err.Error(), "cannot read slack queue bad in ConfigMap mlbatch-slack-queues") {
			t.Errorf("%s: %v", what, err)
		}
		if bad, listed := all["bad"]; !listed || bad != nil || all["other"] == nil {
			t.Errorf("%s: got %v", what, all)
		}
	}
}
