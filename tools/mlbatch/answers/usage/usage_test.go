// SPDX-License-Identifier: Apache-2.0

package usage_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

var now = time.Date(2026, 1, 8, 0, 0, 0, 0, time.UTC)

const week = 7 * 24 * time.Hour

func objects(t *testing.T) usage.Objects {
	t.Helper()
	text, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var o usage.Objects
	if err := yaml.UnmarshalStrict(text, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestUsageByEverything(t *testing.T) {
	var all bytes.Buffer
	queries := []usage.Query{{By: "team"}, {By: "team", Resource: "memory"}}
	for _, by := range usage.Dimensions() {
		queries = append(queries, usage.Query{By: by, Since: week})
	}
	for _, q := range queries {
		report := usage.Count(objects(t), q, now)
		fmt.Fprintf(&all, "# by %s since %s %s\n", q.By, q.Since, q.Resource)
		if err := report.WriteTable(&all); err != nil {
			t.Fatal(err)
		}
		for _, note := range report.Notes {
			all.WriteString("note: " + note + "\n")
		}
		all.WriteString("\n")
	}
	golden.Compare(t, "testdata/usage.txt", all.Bytes())
}

// Table, CSV and JSON are the same report.
func TestUsageForPrograms(t *testing.T) {
	for _, by := range usage.Dimensions() {
		report := usage.Count(objects(t), usage.Query{By: by, Since: week}, now)
		var rows, object bytes.Buffer
		if err := report.WriteCSV(&rows); err != nil {
			t.Fatal(err)
		}
		if err := printing.JSON(&object, report); err != nil {
			t.Fatal(err)
		}
		if by == "queue" {
			golden.Compare(t, "testdata/queue.csv", rows.Bytes())
			golden.Compare(t, "testdata/queue.json", object.Bytes())
		}
		lines, err := csv.NewReader(&rows).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		column := slices.Index(lines[0], "reservedHours")
		var same struct {
			Items []struct{ ReservedHours json.Number }
		}
		if err := json.Unmarshal(object.Bytes(), &same); err != nil || len(same.Items) != len(lines)-1 || len(same.Items) == 0 {
			t.Fatalf("by %s: %d rows and %d lines, %v", by, len(same.Items), len(lines), err)
		}
		for i, row := range same.Items {
			if got := lines[i+1][column]; got != row.ReservedHours.String() {
				t.Errorf("by %s: row %d has %s hours in CSV and %s in JSON", by, i, got, row.ReservedHours)
			}
		}
	}
}

func TestNothingWasUsed(t *testing.T) {
	report := usage.Count(usage.Objects{}, usage.Query{By: "team"}, now)
	var table, rows, object bytes.Buffer
	if report.WriteTable(&table) != nil || report.WriteCSV(&rows) != nil || printing.JSON(&object, report) != nil {
		t.Fatal("it cannot be written")
	}
	if table.Len() > 0 || strings.Count(rows.String(), "\n") != 1 || !strings.Contains(object.String(), `"items": [],`) || len(report.Notes) != 1 {
		t.Errorf("got %q, %q, %s", &table, &rows, &object)
	}
}

// Metrics and docs have these names, too.
func TestCausesAreTheClassesOfTheBooks(t *testing.T) {
	report := usage.Count(objects(t), usage.Query{By: "cause"}, now)
	for _, row := range report.Rows {
		if !slices.Contains(ledger.Classes(), row.Cause) {
			t.Errorf("there is no class %q", row.Cause)
		}
	}
}

func TestThePageShowsUsage(t *testing.T) {
	var out bytes.Buffer
	if err := usage.Count(objects(t), usage.Query{By: "team", Since: week}, now).WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	golden.Between(t, "../../../../docs/commands-admin.md", "<!-- usage: written by go test ./tools/mlbatch/answers/usage -run TestThePage -update -->\n```\n", "```\n<!-- end of usage -->", out.String())
}
