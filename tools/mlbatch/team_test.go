// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/test/wording"
)

// printed are the output and the notes of a command line about a file.
func printed(t *testing.T, path, line string) string {
	t.Helper()
	out, progress, err := command(t, append(strings.Fields("team "+line), "--file="+path)...)
	text := fmt.Sprintf("$ mlbatch team %s\n%s%s", line, out, strings.ReplaceAll(progress, path, "teams.yaml"))
	if err != nil {
		text += "error: " + strings.ReplaceAll(err.Error(), path, "teams.yaml") + "\n"
	}
	return text + "\n"
}

func TestTeamListAndShow(t *testing.T) {
	var all bytes.Buffer
	for _, example := range []string{"hierarchical", "two-flavors", "reserved"} {
		path := filepath.Join("..", "..", "setup", "teams", example+".yaml")
		all.WriteString("# setup/teams/" + example + ".yaml\n" + printed(t, path, "list"))
	}
	path := filepath.Join("testdata", "team", "research.yaml")
	for _, line := range []string{"list", "list -o json", "show vision", "show speech -o yaml"} {
		all.WriteString(printed(t, path, line))
	}
	golden.Compare(t, filepath.Join("testdata", "team", "list.txt"), all.Bytes())
}

// A file that the chart refuses can still be looked at.
func TestTeamListOfARefusedFile(t *testing.T) {
	path := teamsYAML(t, "flavors: [{name: a, capacity: {cpu: 1}}]\nteams: [{name: vision, quota: {a: {cpu: 2, memory: 1Gi}}}]\n")
	out, progress, err := command(t, "team", "list", "--file="+path)
	want := "note: the chart refuses " + path + ` as it is: teams: flavor "a" has 1 of cpu, but the quota adds up to more: vision has 2` + "\n"
	if err != nil || progress != want || !strings.Contains(out, "vision") {
		t.Errorf("got %s, %q, %v", out, progress, err)
	}
}

func teamsYAML(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "teams.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTeamRefusesInASentence(t *testing.T) {
	research := filepath.Join("testdata", "team", "research.yaml")
	for line, want := range map[string]string{
		"team list -f /no/such/file":         "there is no file /no/such/file: name the values file of the teams with --file",
		"team list -f /dev/null":             "cannot read /dev/null: the file has no values",
		"team list -o wide":                  `unknown output format "wide": use table, json or yaml`,
		"team list now":                      `unknown command "now" for "mlbatch team list"`,
		"team show":                          "name one team: mlbatch team show TEAM",
		"team show visoin -f " + research:    `there is no team "visoin" in the file: did you mean vision?`,
		"team show marketing -f " + research: `there is no team "marketing" in the file: it has vision, speech`,
		"team show vision -f " + "testdata":  "cannot read the teams: read testdata",
	} {
		t.Run(line, func(t *testing.T) {
			home(t)
			out, progress, err := command(t, strings.Fields(line)...)
			wording.OneSentence(t, out+progress, err, want)
		})
	}
}
