// SPDX-License-Identifier: Apache-2.0

package top_test

import (
	"bytes"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/top"
)

func objects(t *testing.T) top.Objects {
	t.Helper()
	text, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o := top.Objects{Signs: nodesigns.Default()}
	if err := yaml.UnmarshalStrict(text, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func withoutPods(t *testing.T) top.Objects {
	t.Helper()
	o := objects(t)
	o.Pods = nil
	return o
}

func TestTopShowsWhoUsesWhat(t *testing.T) {
	blue, red := objects(t), objects(t) // what members see who may see ClusterQueues
	blue.LocalQueues, red.LocalQueues = blue.LocalQueues[:2], red.LocalQueues[2:]
	stopped := objects(t)
	stopped.ClusterQueues[0].Status.Conditions = stopped.ClusterQueues[2].Status.Conditions
	member := objects(t)
	member.ClusterQueues, member.Unread = nil, []string{"you may not list clusterqueues"}
	var all bytes.Buffer
	for _, row := range []struct {
		who  string
		sees top.Objects
		view top.View
		wide bool
	}{
		{"blue, which borrows", blue, top.Own, false}, {"red", red, top.Own, false}, {"blue, stopped", stopped, top.Own, false},
		{"an administrator", objects(t), "", false}, {"wide", objects(t), "", true}, {"a member", member, "", false},
		{"by team", objects(t), top.ByTeam, false}, {"by flavor", objects(t), top.ByFlavor, false},
		{"by queue", objects(t), top.ByQueue, false}, {"by queue, wide", objects(t), top.ByQueue, true},
		{"by node", objects(t), top.ByNode, false}, {"by node, wide", objects(t), top.ByNode, true}, {"by node, without pods", withoutPods(t), top.ByNode, false},
	} {
		overview := top.Judge(row.sees, row.view)
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
	if pools := top.Judge(o, "").Cohorts; len(pools) == 0 {
		t.Error("there is no cohort")
	}
}

func TestWithoutNodesNothingIsSaidOfThem(t *testing.T) {
	o := objects(t)
	o.Nodes = nil
	overview := top.Judge(o, "")
	if len(overview.Notes) != 1 || // that of the stopped team
		overview.Flavors[0].Usable != nil {
		t.Errorf("got %+v", overview)
	}
}

func TestThePageShowsWhatATeamCanStart(t *testing.T) {
	var out bytes.Buffer
	o := objects(t)
	o.LocalQueues = o.LocalQueues[2:]
	if err := top.Judge(o, top.Own).WriteTable(&out, false); err != nil {
		t.Fatal(err)
	}
	golden.Between(t, "../../../../docs/commands.md", "<!-- top: written by go test ./tools/mlbatch/answers/top -run TestThePage -update -->\n```\n", "```\n<!-- end of top -->", out.String())
}

func TestThePageShowsAnOverview(t *testing.T) {
	var out bytes.Buffer
	if err := top.Judge(objects(t), "").WriteTable(&out, false); err != nil {
		t.Fatal(err)
	}
	golden.Between(t, "../../../../docs/commands-admin.md", "<!-- top --all: written by go test ./tools/mlbatch/answers/top -run TestThePage -update -->\n```\n", "```\n<!-- end of top --all -->", out.String())
}
