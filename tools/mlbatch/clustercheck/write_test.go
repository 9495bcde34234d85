// SPDX-License-Identifier: Apache-2.0

package clustercheck_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clustercheck"
)

// report has the findings of some scenes of checkup.
func report(t *testing.T, scenes ...string) (all checkup.Report) {
	t.Helper()
	for _, scene := range scenes {
		text, err := os.ReadFile("../answers/checkup/testdata/" + scene + ".out.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var one checkup.Report
		if err := yaml.UnmarshalStrict(text, &one); err != nil {
			t.Fatal(err)
		}
		all.Findings = append(all.Findings, one.Findings...)
	}
	return all
}

func TestThePageShowsAReport(t *testing.T) {
	var out bytes.Buffer
	if err := clustercheck.WriteTable(&out, report(t, "flavors overlap", "devices are stranded"), false); err != nil {
		t.Fatal(err)
	}
	golden.Between(t, "../../../docs/check.md", "<!-- check: written by go test ./tools/mlbatch/clustercheck -run TestThePage -update -->\n```\n", "```\n<!-- end of check -->", out.String())
}

// What others wrote does not reach a terminal as it is.
func TestTheTableHasNoControlCharacters(t *testing.T) {
	r := report(t, "a LocalQueue is inactive")
	r.Findings[0].Evidence = []checkup.Evidence{{Name: "message", Value: "a\x1b[2J\nb"}}
	for _, wide := range []bool{false, true} {
		var out bytes.Buffer
		if err := clustercheck.WriteTable(&out, r, wide); err != nil || strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), "message: a [2J b") {
			t.Errorf("got %q, %v", &out, err)
		}
	}
}
