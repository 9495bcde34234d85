// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	queue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/yaml"
)

const charts = "../../../../../charts/"

// ours are the settings that our charts have by default. Their feature gates are set until the
// test ends.
func ours(t *testing.T) Settings {
	t.Helper()
	var values struct {
		Kueue struct {
			ControllerManager struct {
				FeatureGates []struct {
					Name    featuregate.Feature
					Enabled bool
				}
			}
			ManagerConfig struct {
				Configuration map[string]any
			}
		}
	}
	decode(t, charts+"mlbatch/values.yaml", &values)
	for _, gate := range values.Kueue.ControllerManager.FeatureGates {
		features.SetFeatureGateDuringTest(t, gate.Name, gate.Enabled)
	}
	var c config.Configuration
	text, err := yaml.Marshal(values.Kueue.ManagerConfig.Configuration)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.FairSharing == nil {
		t.Fatal("our charts do not configure fair sharing")
	}
	return Settings{policy(t), c.FairSharing}
}

var documents = regexp.MustCompile(`(?m)^---.*\n`)

// policy is that of every ClusterQueue in the golden files of charts/teams, which other tests
// compare with what Helm renders. One of them has a team with a policy of its own.
func policy(t *testing.T) queue.ClusterQueuePreemption {
	t.Helper()
	var found []queue.ClusterQueuePreemption
	files, err := filepath.Glob(charts + "testdata/teams/*.out.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "pass-through.out.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range documents.Split(string(text), -1) {
			if !strings.Contains(document, "\nkind: ClusterQueue\n") {
				continue
			}
			var q queue.ClusterQueue
			if err := yaml.Unmarshal([]byte(document), &q); err != nil {
				t.Fatal(err)
			}
			found = append(found, *q.Spec.Preemption)
			if !reflect.DeepEqual(found[0], *q.Spec.Preemption) {
				t.Errorf("%s: %s has %+v, others have %+v", file, q.Name, *q.Spec.Preemption, found[0])
			}
		}
	}
	if len(found) == 0 {
		t.Fatal("the golden files have no ClusterQueue")
	}
	return found[0]
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}
