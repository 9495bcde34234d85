// SPDX-License-Identifier: Apache-2.0

package teamsdiff_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamschart"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamsdiff"
)

func render(t *testing.T, text []byte) []string {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	chart, err := teamschart.Load()
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := chart.Render(values)
	if err != nil {
		t.Fatal(err)
	}
	return manifests
}

func objects(t *testing.T, manifests []string) []teamsdiff.Object {
	t.Helper()
	all, err := teamsdiff.Wanted(manifests)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWhatTheFileMakesIsWhatItSays(t *testing.T) {
	examples, err := filepath.Glob("../../../setup/teams/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatal("there are no examples: ", err)
	}
	for _, example := range examples {
		text, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		all := objects(t, render(t, text))
		if r := teamsdiff.Compare(all, all); r.Found() || len(all) < 4 {
			t.Errorf("%s: got %+v of %d objects", example, r, len(all))
		}
		if r := teamsdiff.Compare(nil, all); len(r.Objects) != len(all) || len(r.Quota) == 0 {
			t.Errorf("%s: got %+v of an empty cluster", example, r)
		}
	}
}

const hierarchy = `
cohorts:
  - {name: all, quota: {a: {cpu: 4, memory: 1Gi}}}
  - {name: research, parent: all}
flavors:
  - {name: a, nodeLabels: {kind: a}}
  - name: b
teams:
  - {name: vision, cohort: research, quota: {a: {cpu: 8, memory: 1Gi}, b: {cpu: 1, memory: 1Gi}}}
  - {name: speech, cohort: all, weight: 2, quota: {a: {cpu: {nominal: 8, lendingLimit: 2}, memory: 1Gi}}}
`

// slack is hierarchy with a slack queue. made is the ClusterQueue that the controller makes of it while nodes are bad.
const (
	slack = hierarchy + "slackQueues:\n  - {name: slack, cohort: research, quota: {a: {cpu: {nominal: 6, lendingLimit: 5}, memory: 1Gi}}}\n"
	made  = `apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: slack
  annotations:
    workload.codeflare.dev/declared-lending-limits: '{"a":{"cpu":"5","memory":null}}'
    workload.codeflare.dev/lowered-lending-limits: '{"a":{"cpu":{"limit":"2","own":"5"}}}'
spec:
  cohortName: research
  queueingStrategy: BestEffortFIFO
  stopPolicy: None
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: a
      resources:
      - {name: cpu, nominalQuota: 6, lendingLimit: 2}
      - {name: memory, nominalQuota: 1Gi}
`
)

func TestCompare(t *testing.T) {
	// owned gives the objects to a release, as Helm does.
	owned := func(name string) func(string) string {
		return func(s string) string {
			return strings.ReplaceAll(s, "  annotations:\n", "  annotations:\n    meta.helm.sh/release-name: "+name+"\n    meta.helm.sh/release-namespace: mlbatch-system\n")
		}
	}
	replace := func(old, new string) func(string) string {
		return func(s string) string { return strings.ReplaceAll(s, old, new) }
	}
	var out bytes.Buffer
	for _, row := range []struct {
		name string
		// live is what happened to the objects of the file on the cluster, or to those of another file.
		live  func(string) string
		other string
		file  string
		// queue is a slack queue of the cluster, which has none of the chart's ConfigMap.
		queue string
	}{
		{name: "the same, with what the API server adds and another unit", live: func(s string) string {
			return replace("spec:\n  clusterQueue:", "spec:\n  stopPolicy: None\n  clusterQueue:")(replace("nominalQuota: \"8\"", "nominalQuota: 8000m")(s))
		}},
		{name: "quota changed by hand", live: replace("nominalQuota: \"8\"", "nominalQuota: 9")},
		{name: "another limit", file: strings.Replace(hierarchy, "lendingLimit: 2", "borrowingLimit: 0", 1)},
		{name: "a team that is stopped in the file", file: strings.Replace(hierarchy, "weight: 2", "weight: 2, stopPolicy: HoldAndDrain", 1)},
		{name: "other fields of a queue, and one more", file: strings.Replace(hierarchy, "weight: 2", "weight: 2, queues: [{name: night}], "+
			"clusterQueue: {queueingStrategy: StrictFIFO, flavorFungibility: {whenCanBorrow: TryNextFlavor}, "+
			"admissionChecksStrategy: {admissionChecks: [{name: check}]}, preemption: {borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 3}}}", 1)},
		{name: "labels and annotations of the file", file: strings.Replace(hierarchy, "weight: 2", "weight: 2, labels: {cost: a}, annotations: {b: c}", 1)},
		{name: "a topology", file: strings.Replace(hierarchy, "nodeLabels: {kind: a}", "nodeLabels: {kind: a}, topologyName: racks", 1)},
		{name: "a stopped queue", live: replace("spec:\n  clusterQueue:", "spec:\n  stopPolicy: Hold\n  clusterQueue:")},
		{name: "labels of namespaces, and those of others", live: replace("mlbatch-team-namespace: \"true\"", "example.com/x: y")},
		{name: "another cohort and weight", file: strings.Replace(hierarchy, "cohort: all, weight: 2", "cohort: research", 1)},
		{name: "another parent", file: strings.Replace(hierarchy, ", parent: all", "", 1)},
		{name: "another order of flavors, and other labels", file: strings.Replace(hierarchy, "  - {name: a, nodeLabels: {kind: a}}\n  - name: b\n", "  - name: b\n  - name: a\n", 1)},
		{name: "a new team", file: hierarchy + "  - {name: language, cohort: all, quota: {a: {cpu: 1, memory: 1Gi}}}\n"},
		{name: "a team that is gone", file: hierarchy[:strings.Index(hierarchy, "  - {name: speech")]},
		{name: "an existing namespace without the label", file: strings.Replace(hierarchy, "name: speech,", "name: speech, createNamespace: false,", 1), live: replace("mlbatch-team-namespace: \"true\"", "example.com/x: y")},
		{name: "teams of another release", other: "flavors: [{name: a, create: false}]\nteams: [{name: other, quota: {a: {cpu: 1, memory: 1Gi}}}]\n"},
		{name: "flavors of another release", file: strings.ReplaceAll(hierarchy, "{name: a, nodeLabels: {kind: a}}", "{name: a, create: false}")},
		{name: "a slack queue that lends less, because nodes are bad", file: slack, queue: made},
		{name: "a slack queue that is not there", file: slack},
		{name: "a slack queue that follows another file", file: slack, queue: strings.NewReplacer("cohortName: research", "cohortName: all", "nominalQuota: 6", "nominalQuota: 8").Replace(made)},
		{name: "a slack queue made by hand, and its settings", file: slack, queue: strings.NewReplacer(
			"declared-", "other-", "lowered-", "another-", "stopPolicy: None", "stopPolicy: Hold\n  preemption: {withinClusterQueue: LowerPriority}\n  namespaceSelector: {}", "nominalQuota: 1Gi", "nominalQuota: 2Gi",
		).Replace(made)},
		{name: "a slack queue that is gone", queue: made},
		{name: "another slack queue", file: strings.Replace(slack, "name: slack", "name: reserve", 1), queue: made},
		{name: "a slack queue, of the file of another release or not", queue: made, other: "flavors: [{name: a, create: false}]\nteams: [{name: other, quota: {a: {cpu: 1, memory: 1Gi}}}]\n"},
		{name: "a slack queue that stays while all teams change", file: strings.NewReplacer("name: vision", "name: sight", "name: speech", "name: sound").Replace(slack), queue: made},
		{name: "a queue of nobody", queue: strings.NewReplacer("declared-", "other-", "lowered-", "another-").Replace(made)},
	} {
		cluster := strings.Join(render(t, []byte(hierarchy)), "\n---\n")
		if row.live != nil {
			cluster = row.live(cluster)
		}
		live := objects(t, []string{owned("teams")(cluster)})
		if row.other != "" {
			live = append(live, objects(t, []string{owned("other")(strings.Join(render(t, []byte(row.other)), "\n---\n"))})...)
		}
		if row.queue != "" {
			live = append(live, objects(t, []string{row.queue})...)
		}
		file := row.file
		if file == "" {
			file = hierarchy
		}
		r := teamsdiff.Compare(live, objects(t, render(t, []byte(file))))
		out.WriteString("# " + row.name + "\n")
		if err := r.WriteTable(&out); err != nil {
			t.Fatal(err)
		}
		for _, note := range r.Notes {
			out.WriteString("note: " + note + "\n")
		}
		out.WriteString("\n")
	}
	golden.Compare(t, "testdata/compare.txt", out.Bytes())
}
