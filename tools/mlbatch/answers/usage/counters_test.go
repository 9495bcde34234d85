// SPDX-License-Identifier: Apache-2.0

package usage_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
)

var increases = []usage.Increase{
	{"blue", "nvidia.com/gpu", string(ledger.Useful), 7200.4}, {"blue", "nvidia.com/gpu", string(ledger.LostToNode), 3600}, {"blue", "Other", string(ledger.Useful), 0},
	{"red", "nvidia.com/gpu", string(ledger.Useful), 3600}, {"red", "amd.com/gpu", string(ledger.Held), 1800}, {"red", "nvidia.com/gpu", "Dreaming", 99},
}

func TestIncreasesAreAddedUp(t *testing.T) {
	for by, want := range map[string]string{
		"team": `team,resource,appWrappers,reservedHours,startingHours,inFlightHours,idleHours,usefulHours,lostToNodeHours,lostToFailureHours,lostToHangHours,lostToPreemptionHours,pausingHours,endingHours,heldHours,earlierHours
blue,nvidia.com/gpu,,3.0001,0.0000,0.0000,0.0000,2.0001,1.0000,0.0000,0.0000,0.0000,0.0000,0.0000,0.0000,3.0001
red,amd.com/gpu,,0.5000,0.0000,0.0000,0.0000,0.0000,0.0000,0.0000,0.0000,0.0000,0.0000,0.0000,0.5000,0.5000
red,nvidia.com/gpu,,1.0000,0.0000,0.0000,0.0000,1.0000,0.0000,0.0000,0.0000,0.0000,0.0000,0.0000,0.0000,1.0000
`,
		"cause": `cause,resource,appWrappers,reservedHours,earlierHours
Useful,nvidia.com/gpu,,3.0001,3.0001
LostToNode,nvidia.com/gpu,,1.0000,1.0000
Held,amd.com/gpu,,0.5000,0.5000
`,
	} {
		report := usage.Add(increases, usage.Query{By: by, Since: week}, now)
		var out, table bytes.Buffer
		if err := report.WriteCSV(&out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("by %s (-want +got)\n%s", by, diff)
		}
		if err := report.WriteTable(&table); err != nil || strings.Contains(table.String(), "EARLIER") || !strings.Contains(table.String(), "TOTAL") && by == "team" {
			t.Errorf("by %s: %v\n%s", by, err, table.String())
		}
		if notes := strings.Join(report.Notes, "\n"); !strings.Contains(notes, `the class "Dreaming" is not known`) || strings.Contains(notes, "does it scrape") {
			t.Errorf("by %s it notes %s", by, notes)
		}
	}
	nothing := usage.Add(nil, usage.Query{By: "team", Since: week}, now)
	if len(nothing.Rows) > 0 || !strings.Contains(strings.Join(nothing.Notes, "\n"), "does it scrape the controller") {
		t.Errorf("without series: %+v", nothing)
	}
	if len(usage.Add(nil, usage.Query{By: "team", Since: week}, now).Notes) != len(nothing.Notes) {
		t.Error("notes of one report are in the next")
	}
}

func TestCountersAreAskedWhatTheyKnow(t *testing.T) {
	for sentence, row := range map[string]struct {
		query     usage.Query
		namespace string
		want      string // or a part of the error
	}{
		"everybody": {usage.Query{By: "team", Since: week}, "",
			`sum by (namespace, resource, class) (increase(appwrapper_usage_device_seconds_total{}[604800s]))`},
		"one team and device": {usage.Query{By: "cause", Since: time.Hour, Resource: "nvidia.com/gpu"}, `bl"ue`,
			`sum by (namespace, resource, class) (increase(appwrapper_usage_device_seconds_total{namespace="bl\"ue", resource="nvidia.com/gpu"}[3600s]))`},
		"other devices": {usage.Query{By: "team", Since: time.Hour, Resource: "Other"}, "",
			`sum by (namespace, resource, class) (increase(appwrapper_usage_device_seconds_total{resource="Other"}[3600s]))`},
		"users":       {usage.Query{By: "user", Since: week}, "", "prometheus cannot tell usage by user, because no label"},
		"queues":      {usage.Query{By: "queue", Since: week}, "", "by queue"},
		"AppWrappers": {usage.Query{By: "appwrapper", Since: week}, "", "by appwrapper"},
		"for ever":    {usage.Query{By: "team"}, "", "say for how long: --since"},
		"a moment":    {usage.Query{By: "team", Since: time.Millisecond}, "", "say for how long: --since"},
		"cores":       {usage.Query{By: "team", Since: week, Resource: "cpu"}, "", "counts devices only, not cpu"},
	} {
		got, err := usage.Counters(row.query, row.namespace)
		if err != nil && strings.Contains(err.Error(), row.want) {
			continue
		}
		if err != nil || got != row.want {
			t.Errorf("%s: got %s, %v", sentence, got, err)
		}
	}
}

// The real Prometheus evaluates the question on this page (tools/artifacts/components/prometheus).
func TestThePageHasTheQuestion(t *testing.T) {
	query, err := usage.Counters(usage.Query{By: "team", Since: week}, "")
	if err != nil {
		t.Fatal(err)
	}
	golden.Between(t, "../../../../docs/commands-admin.md", "<!-- increase: written by go test ./tools/mlbatch/answers/usage -run TestThePage -update -->\n```\n", "```\n<!-- end of increase -->", query+"\n")
}
