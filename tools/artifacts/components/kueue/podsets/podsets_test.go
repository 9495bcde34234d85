// SPDX-License-Identifier: Apache-2.0

// Package podsets compares how our controller finds pod sets with how the pinned version of
// Kueue finds them.
package podsets

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	queue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/jobs/appwrapper"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/tools/artifacts/components/kueue/drawn"
)

// fixtures are the golden pairs of controller/internal/kinds.
const fixtures = "../../../../../controller/internal/kinds/testdata/"

// reading is the result of our controller for a resource.
type reading struct {
	PodSets []struct {
		Path        string            `json:"path"`
		Replicas    int32             `json:"replicas"`
		Annotations map[string]string `json:"annotations"`
	} `json:"podSets"`
	// Declare is set if we expect Kueue to find other pod sets, or none.
	Declare bool   `json:"declare"`
	Verdict string `json:"verdict"`
	// What follows is of no interest to Kueue.
	Final string         `json:"final"`
	Turns map[string]any `json:"turns"`
	Ends  map[string]any `json:"ends"`
	Ended map[string]any `json:"ended"`
	Error string         `json:"error"`
}

// podSet has the fields of a pod set by which Kueue counts and places it.
type podSet struct {
	count                       int32
	podIndex, groupIndex, group string
}

func TestKueueFindsThePodSetsThatWeFind(t *testing.T) {
	inputs, err := filepath.Glob(fixtures + "*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, input := range inputs {
		var resources map[string]map[string]any
		decode(t, input, &resources)
		var readings map[string]reading
		decode(t, strings.Replace(input, ".in.yaml", ".out.yaml", 1), &readings)
		for sentence, resource := range resources {
			t.Run(filepath.Base(input)+"/"+sentence, func(t *testing.T) {
				compare(t, readings[sentence], resource)
			})
		}
	}
}

// compare skips resources that we reject, and those without a spec, for which Kueue does not
// find the pod template at the path.
func compare(t *testing.T, ours reading, resource map[string]any) {
	t.Helper()
	spec, _ := resource["spec"].(map[string]any)
	if len(spec) == 0 || ours.Error != "" || len(ours.PodSets) == 0 {
		return
	}
	theirs, err := podSetsOf(resource)
	if err != nil {
		t.Fatal(err)
	}
	var want []podSet
	for _, p := range ours.PodSets {
		const prefix = "workload.codeflare.dev.appwrapper/tas-"
		want = append(want, podSet{p.Replicas, p.Annotations[prefix+"pod-index-label"],
			p.Annotations[prefix+"sub-group-index-label"], p.Annotations[prefix+"sub-group-count"]})
	}
	if same := slices.Equal(want, theirs); same == ours.Declare {
		t.Errorf("ours are %v, Kueue's are %v, and that they differ is said to be %t", want, theirs, ours.Declare)
	}
}

// Objects have values at the edge of what their fields may have. The package operators has what operators make of them.
func TestKueueCountsThePodsThatWeCount(t *testing.T) {
	const seed, specs = 1, 30
	objects, err := drawn.Draw(t.Context(), seed, specs)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, o := range objects {
		if o.Refused != "" {
			continue
		}
		compared++
		job := appwrapper.NewJob()
		if err := json.Unmarshal(o.Stored, job.Object()); err != nil {
			t.Fatalf("%s: %v", o.What, err)
		}
		found, err := job.PodSets(t.Context(), nil)
		if err != nil {
			t.Errorf("%s: Kueue finds no pod sets: %v", o.What, err)
		}
		counted := map[string]int32{}
		for _, podSet := range found {
			counted[podSet.Template.Annotations[drawn.Mark]] += podSet.Count
		}
		if !drawn.Same(o.Pods, counted) {
			t.Errorf("%s\n  we count     %v\n  Kueue counts %v", o.What, o.Pods, counted)
		}
	}
	if compared < len(objects)/3 {
		t.Errorf("only %d of %d objects were compared", compared, len(objects))
	}
}

// podSetsOf asks Kueue for the pod sets of an AppWrapper that wraps the resource.
func podSetsOf(resource map[string]any) ([]podSet, error) {
	fill(resource)
	encoded, err := json.Marshal(map[string]any{"spec": map[string]any{"components": []any{map[string]any{"template": resource}}}})
	if err != nil {
		return nil, err
	}
	job := appwrapper.NewJob()
	if err := json.Unmarshal(encoded, job.Object()); err != nil {
		return nil, err
	}
	found, err := job.PodSets(context.Background(), nil)
	if err != nil {
		return nil, err
	}
	var all []podSet
	for _, p := range found {
		all = append(all, placed(p))
	}
	return all, nil
}

func placed(p queue.PodSet) podSet {
	found := podSet{count: p.Count}
	if request := p.TopologyRequest; request != nil {
		found.podIndex, found.groupIndex = value(request.PodIndexLabel), value(request.SubGroupIndexLabel)
		if request.SubGroupCount != nil {
			found.group = strconv.Itoa(int(*request.SubGroupCount))
		}
	}
	return found
}

func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// fill replaces empty pod templates by valid ones. Our rules do not need valid ones, but Kueue does.
func fill(node any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			fill(item)
		}
	case map[string]any:
		for key, child := range node {
			if empty, ok := child.(map[string]any); ok && len(empty) == 0 && strings.HasSuffix(strings.ToLower(key), "template") {
				node[key] = map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main"}}}}
			}
			fill(child)
		}
	}
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
