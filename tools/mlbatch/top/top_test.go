// SPDX-License-Identifier: Apache-2.0

package top_test

import (
	"bytes"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/mlbatch/top"
)

func objects(t *testing.T) top.Objects {
	t.Helper()
	text, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var o top.Objects
	if err := yaml.UnmarshalStrict(text, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTopShowsWhoUsesWhat(t *testing.T) {
	member := objects(t)
	member.ClusterQueues, member.Unread = nil, []string{"you may not list clusterqueues"}
	var all bytes.Buffer
	for _, row := range []struct {
		who  string
		sees top.Objects
		wide bool
	}{{"an administrator", objects(t), false}, {"wide", objects(t), true}, {"a member", member, false}} {
		overview := top.Judge(row.sees)
		all.WriteString("# " + row.who + "\n")
		if err := overview.WriteTable(&all, row.wide); err != nil {
			t.Fatal(err)
		}
		for _, note := range overview.Notes {
			all.WriteString("note: " + note + "\n")
		}
		all.WriteString("\n")
	}
	golden.Compare(t, "testdata/top.txt", all.Bytes())
}

// What Kueue refuses must not hang.
func TestCohortsInACycle(t *testing.T) {
	o := objects(t)
	o.Cohorts[1].Spec.ParentName = "vision"
	if pools := top.Judge(o).Cohorts; len(pools) == 0 {
		t.Error("there is no cohort")
	}
}

func TestWithoutNodesNothingIsSaidOfThem(t *testing.T) {
	o := objects(t)
	o.Nodes = nil
	overview := top.Judge(o)
	if len(overview.Notes) != 1 || // that of the stopped team
		overview.Flavors[0].Nodes != nil {
		t.Errorf("got %+v", overview)
	}
}

func TestThePageShowsAnOverview(t *testing.T) {
	var out bytes.Buffer
	if err := top.Judge(objects(t)).WriteTable(&out, false); err != nil {
		t.Fatal(err)
	}
	golden.Between(t, "../../../docs/commands.md", "<!-- top: written by go test ./tools/mlbatch/top -run TestThePage -update -->\n```\n", "```\n<!-- end of top -->", out.String())
}
