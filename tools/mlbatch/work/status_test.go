// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"bytes"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

func TestStatusSaysHowFarWorkIs(t *testing.T) {
	var all bytes.Buffer
	for _, target := range []why.Target{
		{Namespace: "blue", Name: "pulls"}, {Namespace: "blue", Name: "waits"}, {Namespace: "blue", Name: "train"}, {Namespace: "red", Name: "lost"}, {Kind: "run", Namespace: "red", Name: "study"},
	} {
		report, err := work.Status(t.Context(), cluster(t, interceptor.Funcs{}), target, now)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString("# " + target.Name + "\n")
		if err := report.WriteText(&all, now); err != nil {
			t.Fatal(err)
		}
		all.WriteString("\n")
	}
	golden.Compare(t, "testdata/status.out.txt", all.Bytes())
}

func TestStatusOfWhatIsNotThere(t *testing.T) {
	_, err := work.Status(t.Context(), cluster(t, interceptor.Funcs{}), why.Target{Namespace: "blue", Name: "pulled"}, now)
	if none := (why.NotFoundError{}); !errors.As(err, &none) || len(none.Names) == 0 {
		t.Errorf("got %v", err)
	}
}

func TestThePageShowsAList(t *testing.T) {
	overview, err := work.List(t.Context(), cluster(t, interceptor.Funcs{}), "blue", now)
	var out bytes.Buffer
	if err != nil || overview.WriteTable(&out, work.Columns{}, now) != nil {
		t.Fatal(err)
	}
	golden.Between(t, "../../../docs/commands.md", "<!-- list: written by go test ./tools/mlbatch/work -run TestThePage -update -->\n```\n", "```\n<!-- end of list -->", out.String())
}

func TestThePageShowsAStatus(t *testing.T) {
	report, err := work.Status(t.Context(), cluster(t, interceptor.Funcs{}), why.Target{Namespace: "blue", Name: "pulls"}, now)
	var out bytes.Buffer
	if err != nil || report.WriteText(&out, now) != nil {
		t.Fatal(err)
	}
	golden.Between(t, "../../../docs/commands.md", "<!-- status: written by go test ./tools/mlbatch/work -run TestThePage -update -->\n```\n", "```\n<!-- end of status -->", out.String())
}
