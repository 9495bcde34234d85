// SPDX-License-Identifier: Apache-2.0

package teamsfile_test

import (
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamsfile"
)

func TestParseRefusesInASentence(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "the file has no values: setup/teams has examples",
		"# nothing\n":              "the file has no values: setup/teams has examples",
		"- a\n":                    "line 1 is not a value of the chart teams: write KEY: VALUE",
		"# a\nteams\n":             "line 2 is not a value of the chart teams: write KEY: VALUE",
		"a: 1\n---\nb: 2\n":        "the file has more than one document, and Helm reads only the first: remove the others",
		"teams: [\n":               "the file is not valid YAML: line 1: did not find expected node content",
		"teams: *none\n":           "the file is not valid YAML: unknown anchor 'none' referenced",
		"a: &a {b: *a}\n":          "the file is not valid YAML: anchor 'a' value contains itself",
		"teams: [{name: \xff}]\n":  "the file is not text in UTF-8: save it as UTF-8",
		"teams: []\n\tcohort: a\n": "the file is not valid YAML: line 2: found character that cannot start any token",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := teamsfile.Parse([]byte(text))
			wording.OneSentence(t, "", err, want)
		})
	}
}

// A style that this package does not know is never changed into something else.
func TestStrangeStylesAreForHands(t *testing.T) {
	for name, row := range map[string]struct{ file, want string }{
		"a merge key":            {"x: &x {quota: {f: {cpu: 1}}}\nteams:\n- name: a\n  <<: *x\n", "cannot change line "},
		"several lines of text":  {"teams:\n- name: a\n  quota:\n    f:\n      cpu: \"\\\n        1\"\n  users: [\"a\n    b\"]\n", ""},
		"a folded amount":        {"teams:\n- name: a\n  quota: {f: {cpu: 1}}\n  users:\n  - >-\n    bob\n", "cannot change line 5 without rewriting what is around it: edit the file by hand"},
		"an explicit key":        {"teams:\n- name: a\n  ? users\n  : [b]\n  quota: {f: {cpu: 1}}\n", ""},
		"a key that comes twice": {"teams:\n- name: a\n  quota: {f: {cpu: 1}}\n  users: [b]\n  users: [c]\n", "cannot change line "},
		"a separator of lines":   {"# \u2028\nteams: [{name: a, quota: {f: {cpu: 1}}}]\n", "cannot change the file, because it has line breaks that are neither those of Unix nor of Windows: replace them"},
		"a list that is shared":  {"x: &x\n- {name: a, quota: {f: {cpu: 1}}}\nteams: *x\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := teamsfile.Parse([]byte(row.file))
			if err != nil {
				t.Fatal(err)
			}
			teams, err := teamsfile.Read(file.Values())
			if err != nil {
				t.Fatal(err)
			}
			teams.Flavors = []teamsfile.Flavor{{Name: "f"}}
			set, err := file.Set(teams, "a", teamsfile.Settings{Users: teamsfile.Members{Add: []string{"new"}}, Quota: assignments(t, "cpu=2")})
			if row.want != "" {
				wording.OneSentence(t, "", err, row.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			_, after := parse(t, string(set.Bytes()))
			team, err := after.Find("a")
			if err != nil || team.Quota["f"]["cpu"].String() != "2" || !strings.Contains(strings.Join(team.Users, " "), "new") {
				t.Errorf("got %+v, %v in\n%s", team, err, set.Bytes())
			}
		})
	}
}
