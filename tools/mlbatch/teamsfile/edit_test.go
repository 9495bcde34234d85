// SPDX-License-Identifier: Apache-2.0

package teamsfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mlbatch/mlbatch/tools/mlbatch/teamsfile"
)

func parse(t rapid.TB, text string) (teamsfile.File, teamsfile.Teams) {
	t.Helper()
	file, err := teamsfile.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	teams, err := teamsfile.Read(file.Values())
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return file, teams
}

func assignments(t rapid.TB, texts ...string) []teamsfile.Assignment {
	t.Helper()
	var all []teamsfile.Assignment
	for _, text := range texts {
		a, err := teamsfile.ParseAssignment(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

// written draws a file as people write them: with blocks and braces, comments, empty lines, shared quota, and the line
// breaks of Windows.
func written(t *rapid.T) string {
	var text strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&text, format, args...) }
	maybe := func(label string, words string) string {
		if rapid.Bool().Draw(t, label) {
			return words
		}
		return ""
	}
	say("%sflavors:\n  - name: a%s\n  - {name: b, capacity: {cpu: 1e3}}\n%s", maybe("title", "# Teams — größer als früher\n"), maybe("note", " # \"old\" {nodes}"), maybe("gap", "\n"))
	say("teams:%s\n", maybe("who", " # all of them"))
	indent := strings.Repeat(" ", rapid.IntRange(0, 4).Draw(t, "indent"))
	gap := rapid.Bool().Draw(t, "gaps")
	shared := ""
	for i := range rapid.IntRange(1, 4).Draw(t, "teams") {
		if i > 0 && gap {
			say("\n")
		}
		say("%s", maybe("about", indent+"# About the next one: it's \"big\".\n"))
		say("%s- name: t%d%s\n", indent, i, maybe("remark", " # x: {"))
		say("%s", maybe("users", indent+"  users:\n"+indent+"    - 'al, ice'\n"+indent+"    - bob # he's new\n"))
		say("%s", maybe("groups", indent+"  groups: [g1, \"g: 2\"]\n"))
		switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
		case kind == 0 && shared != "":
			say("%s  quota: *%s%s\n", indent, shared, maybe("same", " # as above"))
		case kind == 1:
			shared = fmt.Sprintf("q%d", i)
			say("%s  quota: &%s%s\n%[1]s    a: {cpu: 8, memory: 1Ti}\n%[1]s    b: # blue\n%[1]s      cpu: {nominal: 4, lendingLimit: 2} # lent\n%[1]s      memory: 2Gi\n", indent, shared, maybe("anchored", " # shared"))
		case kind == 2:
			shared = fmt.Sprintf("q%d", i)
			say("%s  quota: &%s {a: {cpu: 8.0, memory: \"1Ti\"},\n%[1]s          b: {cpu: {nominal: 4}, memory: 2Gi}} # braces\n", indent, shared)
		default:
			say("%s  quota:\n%[1]s    a:\n%[1]s      cpu: 8\n%[1]s      # Terabytes.\n%[1]s      memory: 1Ti\n", indent)
		}
		say("%s", maybe("trailer", indent+"    # not yet: more\n"))
	}
	say("%s%s", maybe("next", indent+"# the next team goes here\n"), maybe("rest", "\n# Others read.\ndashboards: {users: [grafana]}\n"))
	out := text.String()
	if rapid.Bool().Draw(t, "no end") {
		out = strings.TrimSuffix(out, "\n")
	}
	if rapid.Bool().Draw(t, "windows") {
		out = strings.ReplaceAll(out, "\n", "\r\n")
	}
	return maybe("mark", "\ufeff") + out
}

func TestAddThenRemoveGivesTheFileBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := written(t)
		file, teams := parse(t, text)
		weight := 2.0
		added, err := file.Add(teams, "new", teamsfile.Settings{
			Weight: &weight, Users: teamsfile.Members{Add: []string{"o'neill: {", "on"}}, Quota: assignments(t, "a:cpu=8", "b:cpu=4,lendingLimit=1", "a:memory=1Gi"),
		})
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		_, teams = parse(t, string(added.Bytes()))
		back, err := added.Remove(teams, "new")
		if err != nil {
			t.Fatalf("%v in\n%s", err, added.Bytes())
		}
		if diff := cmp.Diff(text, string(back.Bytes())); diff != "" {
			t.Errorf("(-before +after)\n%s\nbetween\n%s", diff, added.Bytes())
		}
	})
}

func TestSettingWhatIsSetChangesNoByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := written(t)
		file, teams := parse(t, text)
		for _, team := range teams.Teams {
			s := teamsfile.Settings{Cohort: &team.Cohort, Users: teamsfile.Members{Add: team.Users}, Groups: teamsfile.Members{Add: team.Groups}}
			for flavor, shares := range team.Quota {
				for resource, share := range shares {
					words := flavor + ":" + resource + "=" + share.Nominal.String()
					if share.LendingLimit != nil {
						words += ",lendingLimit=" + share.LendingLimit.String()
					}
					s.Quota = append(s.Quota, assignments(t, words)...)
				}
			}
			set, err := file.Set(teams, team.Name, s)
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			if diff := cmp.Diff(text, string(set.Bytes())); diff != "" {
				t.Errorf("(-before +after)\n%s", diff)
			}
		}
	})
}

// Whatever is shared, a change is to one team, and all comments about others are kept.
func TestAChangeIsToOneTeam(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := written(t)
		file, before := parse(t, text)
		name := rapid.SampledFrom(before.Names()).Draw(t, "team")
		set, err := file.Set(before, name, teamsfile.Settings{Quota: assignments(t, "a:cpu=9,borrowingLimit=1", "a:nvidia.com/gpu=3", "b:memory=5Gi"), Users: teamsfile.Members{Add: []string{"carol"}}})
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		_, after := parse(t, string(set.Bytes()))
		for _, d := range teamsfile.Differences(before, after) {
			if d.Name != name || d.Resource == "cpu" && d.After.String() != "9, borrows at most 1" {
				t.Errorf("%+v changed in\n%s", d, set.Bytes())
			}
		}
		for _, comment := range []string{"# Teams", "# Others read.", "# the next team", "# \"old\" {nodes}", "# all of them"} {
			if strings.Count(text, comment) != strings.Count(string(set.Bytes()), comment) {
				t.Errorf("the comment %s is lost in\n%s", comment, set.Bytes())
			}
		}
	})
}

func TestRemovingATeamKeepsTheOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := written(t)
		file, before := parse(t, text)
		name := rapid.SampledFrom(before.Names()).Draw(t, "team")
		removed, err := file.Remove(before, name)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		_, after := parse(t, string(removed.Bytes()))
		for _, d := range teamsfile.Differences(before, after) {
			if d.Name != name {
				t.Errorf("%+v changed in\n%s", d, removed.Bytes())
			}
		}
		if len(after.Teams) != len(before.Teams)-1 {
			t.Errorf("got %v", after.Names())
		}
	})
}

// Every example can be edited, whatever its style.
func FuzzParse(f *testing.F) {
	examples, err := filepath.Glob("../../../setup/teams/*.yaml")
	if err != nil || len(examples) == 0 {
		f.Fatal("there are no examples: ", err)
	}
	for _, example := range examples {
		text, err := os.ReadFile(example)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, text := range []string{
		"teams: []", "teams: ~", "ams:\n- ? n", "{\"teams\": [{\"name\": \"a\"}]}", "a: &x {b: *x}", "teams:\n- &t\n  name: a\n- *t", "teams:\n- ? name\n  : a", "teams: [{name: a, quota: {f: {cpu: 1}}}] # '",
		"teams:\n- name: a\n  users: |\n   x\n", "teams:\n- <<: {name: a}", "teams:\n\u2028- name: a", "\"te\\\n ams\": [a,]", "a: !!map\n b: 1", "--- # a\nteams:\n- name: 'a\n    b'\n...\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		file, err := teamsfile.Parse([]byte(text))
		if err != nil {
			return
		}
		teams, err := teamsfile.Read(file.Values())
		if err != nil {
			return
		}
		if added, err := file.Add(teams, "new", teamsfile.Settings{}); err == nil {
			_ = added.Bytes()
		}
		teams.Flavors = []teamsfile.Flavor{{Name: "f"}}
		for _, name := range teams.Names() {
			_, _ = file.Remove(teams, name)
			_, _ = file.Set(teams, name, teamsfile.Settings{Users: teamsfile.Members{Add: []string{"u"}}, Quota: []teamsfile.Assignment{{Flavor: "f", Resource: "cpu", Nominal: "3", LendingLimit: "1"}}})
			_, _ = file.Set(teams, name, teamsfile.Settings{Quota: []teamsfile.Assignment{{Flavor: "f", Resource: "cpu", Nominal: teamsfile.None}}})
		}
	})
}
