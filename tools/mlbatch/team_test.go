// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamschart"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamsfile"
)

// printed are the output and the notes of a command line about a file.
func printed(t *testing.T, path, line string) string {
	t.Helper()
	out, progress, err := command(t, append(strings.Fields("team "+line), "--file="+path)...)
	text := fmt.Sprintf("$ mlbatch team %s\n%s%s", line, out, progress)
	if err != nil {
		text += "error: " + err.Error() + "\n"
	}
	return strings.ReplaceAll(text, path, "teams.yaml") + "\n"
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
	path = filepath.Join("..", "..", "charts", "testdata", "teams", "slack-queues.in.yaml")
	all.WriteString("# charts/testdata/teams/slack-queues.in.yaml\n")
	for _, line := range []string{"list", "show slack-cluster-queue", "show slack-of-products -o json"} {
		all.WriteString(printed(t, path, line))
	}
	golden.Compare(t, filepath.Join("testdata", "team", "list.txt"), all.Bytes())
}

// Only teams can be changed, and slack queues can be shown, too.
func TestTeamCompletes(t *testing.T) {
	path := "--file=" + filepath.Join("..", "..", "charts", "testdata", "teams", "slack-queues.in.yaml")
	for verb, want := range map[string]string{"show": "vision\nshop\nslack-cluster-queue\nslack-of-products\n", "set": "vision\nshop\n", "remove": "vision\nshop\n"} {
		if out, _, err := command(t, "__complete", "team", verb, path, ""); err != nil || out != want+":4\n" {
			t.Errorf("%s: got %s, %v", verb, out, err)
		}
	}
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
		"team list -o wide":                  `invalid argument "wide" for "-o, --output" flag: use table, json or yaml`,
		"team list now":                      `unknown command "now" for "mlbatch team list"`,
		"team":                               "say what to do: see 'mlbatch team --help'",
		"team lst":                           `unknown command "lst" for "mlbatch team": see 'mlbatch team --help'`,
		"team show":                          "name one team: mlbatch team show TEAM",
		"team show visoin -f " + research:    `there is no team "visoin" in the file: did you mean vision?`,
		"team show marketing -f " + research: `there is no team "marketing" in the file: it has vision, speech`,
		"team show slack-cluter-queue -f ../../charts/testdata/teams/slack-queues.in.yaml": `there is no team "slack-cluter-queue" in the file: did you mean slack-cluster-queue?`,
		"team show vision -f testdata":                               "cannot read the teams: read testdata",
		"team diff -f /no/such/file":                                 "there is no file /no/such/file: name the values file of the teams with --file",
		"team diff -o wide":                                          `invalid argument "wide" for "-o, --output" flag: use table, json or yaml`,
		"team diff --kubeconfig=/no/such/file -f " + research:        "cannot find the cluster: check --kubeconfig and --context",
		"team diff --kubeconfig=testdata/nobody.yaml -f " + research: "cannot list clusterqueues: check --kubeconfig and --context: ",
		"team diff -f testdata/team/refused.yaml":                    `the chart refuses testdata/team/refused.yaml: teams: team "vision" has no quota`,
		"team set":                                                            "name one team: mlbatch team set TEAM [FLAVOR:]RESOURCE=AMOUNT…",
		"team set cpu=1":                                                      "name one team: mlbatch team set TEAM [FLAVOR:]RESOURCE=AMOUNT…",
		"team set vision":                                                     `say which quota team "vision" gets: mlbatch team set TEAM`,
		"team add new --weight=2":                                             `say which quota team "new" gets: mlbatch team add TEAM`,
		"team remove":                                                         "name one team: mlbatch team remove TEAM",
		"team set vision cpu":                                                 `cannot read "cpu": write [FLAVOR:]RESOURCE=AMOUNT`,
		"team set vision cpu=":                                                `cannot read "cpu=": write [FLAVOR:]RESOURCE=AMOUNT`,
		"team set vision cpu=1,2":                                             `cannot read "cpu=1,2": write [FLAVOR:]RESOURCE=AMOUNT`,
		"team set vision cpu=1,limit=2":                                       `cannot read "cpu=1,limit=2": write [FLAVOR:]RESOURCE=AMOUNT`,
		"team set vision cpu=none,lendingLimit=2":                             `cannot read "cpu=none,lendingLimit=2": write [FLAVOR:]RESOURCE=AMOUNT`,
		"team set vision cpu=12x":                                             `cannot read "cpu=12x": "12x" is not an amount: write a number`,
		"team set vision --weight=big":                                        `invalid argument "big" for "--weight" flag`,
		"team set visoin cpu=1 -f " + research:                                `there is no team "visoin" in the file: did you mean vision?`,
		"team remove visoin -f " + research:                                   `there is no team "visoin" in the file: did you mean vision?`,
		"team add vision cpu=1 -f " + research:                                `the file already has a team "vision": 'mlbatch team set' changes it`,
		"team set vision cpu=1 -f " + research:                                "the file has 2 flavors: say which one cpu is for, such as default-flavor:cpu=…",
		"team set vision h10:cpu=1 -f " + research:                            `there is no flavor "h10" in the file: did you mean h100?`,
		"team set vision h100:cpu=1 h100:cpu=2 -f " + research:                "cpu in flavor h100 is set twice: write its amount and limits once, with commas",
		"team set vision h100:pods=lendingLimit=1 -f " + research:             `team "vision" has no quota of pods in flavor h100: write h100:pods=AMOUNT`,
		"team set vision h100:pods=none -f " + research:                       `team "vision" has no quota of pods in flavor h100: write h100:pods=AMOUNT`,
		"team set vision --remove-user=alcie -f " + research:                  `there is no member of the team's users "alcie" in the file: did you mean alice?`,
		"team set vision --weight=-1 -f " + research:                          research + " is not changed, because the chart would refuse it: the chart does not take these values: teams: teams/0/weight: is -1, and must be at least 0",
		"team set vision --stop-policy=Stop -f " + research:                   research + " is not changed, because the chart would refuse it: the chart does not take these values: teams: teams/0/stopPolicy: value must be one of 'None', 'Hold', 'HoldAndDrain'",
		"team set vision h100:cpu=1e3k -f " + research:                        `cannot read "h100:cpu=1e3k": "1e3k" is not an amount`,
		"team set vision h100:nvidia.com/gpu=41 -f " + research:               research + ` is not changed, because the chart would refuse it: teams: flavor "h100" has 64 of nvidia.com/gpu, but the quota adds up to more: vision has 41, speech has 24`,
		"team set vision h100:cpu=none -f " + research:                        research + ` is not changed, because the chart would refuse it: teams: team "vision": `,
		"team set vision h100:nvidia.com/gpu=,lendingLimit=40 -f " + research: `cannot read "h100:nvidia.com/gpu=,lendingLimit=40"`,
		"team set vision h100:nvidia.com/gpu=lendingLimit=40 -f " + research:  research + ` is not changed, because the chart would refuse it: teams: team "vision": flavor "h100" lends 40 of nvidia.com/gpu, more than the nominal 32`,
		"team add Big! h100:cpu=1 -f " + research:                             research + " is not changed, because the chart would refuse it: the chart does not take these values: teams: teams/2/name: ",
		"team add slack h100:cpu=1 h100:memory=1 -f " + research:              research + ` is not changed, because the chart would refuse it: teams: the name "slack" is reserved`,
	} {
		t.Run(line, func(t *testing.T) {
			home(t)
			out, progress, err := command(t, strings.Fields(line)...)
			wording.OneSentence(t, out+progress, err, want)
		})
	}
}

// Each line changes the file that the line before left. What a change does to the file is printed, too.
func TestTeamChanges(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "team", "research.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	shared, err := os.ReadFile(filepath.Join("..", "..", "setup", "teams", "three-teams.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for _, row := range []struct {
		file  string
		lines []string
	}{
		{string(text), []string{
			"set vision h100:nvidia.com/gpu=40",
			"set vision h100:nvidia.com/gpu=40",
			"set vision h100:nvidia.com/gpu=40.0,lendingLimit=none,borrowingLimit=8 h100:cpu=400,lendingLimit=100 -o json",
			"set speech default-flavor:cpu=80 h100:nvidia.com/gpu=borrowingLimit=none",
			"set speech --weight=2 --add-user=carol --add-group=interns --remove-group=speech-edit-group",
			"set speech --cohort=reserch --dry-run",
			"set speech --stop-policy=HoldAndDrain",
			"show speech",
			"set speech --stop-policy=HoldAndDrain",
			"set speech --stop-policy=None",
			"set vision h100:pods=100 h100:nvidia.com/gpux=1 default-flavor:pods=1 default-flavor:nvidia.com/gpux=0 --dry-run",
			"add language default-flavor:cpu=8 default-flavor:memory=64Gi h100:nvidia.com/gpu=4,lendingLimit=0 h100:cpu=8 h100:memory=64Gi default-flavor:nvidia.com/gpu=0 --user=dave --user=on --weight=0.5",
			"remove vision",
			"remove language",
			"remove speech",
			"add first default-flavor:cpu=8 default-flavor:memory=64Gi --namespace=one --existing-namespace --group=a --queue=q --cohort=",
		}},
		{string(shared), []string{"set vision nvidia.com/gpu=24", "set language cpu=199 pods=201", "remove vision", "remove speech", "set language cpu=200 --dry-run -o yaml"}},
		{`{"flavors": [{"name": "a"}], "teams": [{"name": "vision", "quota": {"a": {"cpu": 1, "memory": "1Gi"}}}]}` + "\n", []string{
			"set vision cpu=2,borrowingLimit=1 --add-user=alice",
			"add speech cpu=1 memory=1Gi",
			"remove vision",
		}},
		{"teams: []  # none yet\n", []string{"add vision cpu=1 memory=1Gi --user=alice", "remove vision"}},
		{"cohort: all", []string{"add vision cpu=1 memory=1Gi --user=alice"}},
	} {
		path := teamsYAML(t, row.file)
		for _, line := range row.lines {
			before, _ := os.ReadFile(path)
			all.WriteString(printed(t, path, line))
			after, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all.WriteString(lineDiff(string(before), string(after)))
		}
		all.WriteString("----\n")
	}
	golden.Compare(t, filepath.Join("testdata", "team", "changes.txt"), all.Bytes())
}

// lineDiff are the lines that differ between two texts.
func lineDiff(before, after string) string {
	old, now := strings.Split(before, "\n"), strings.Split(after, "\n")
	same := make([][]int, len(old)+1) // how many lines the rests of both have in common
	for i := range same {
		same[i] = make([]int, len(now)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			if same[i][j] = max(same[i+1][j], same[i][j+1]); old[i] == now[j] {
				same[i][j] = same[i+1][j+1] + 1
			}
		}
	}
	var text strings.Builder
	for i, j := 0, 0; i < len(old) || j < len(now); {
		switch {
		case i < len(old) && j < len(now) && old[i] == now[j]:
			i, j = i+1, j+1
		case j == len(now) || i < len(old) && same[i+1][j] >= same[i][j+1]:
			text.WriteString("- " + old[i] + "\n")
			i++
		default:
			text.WriteString("+ " + now[j] + "\n")
			j++
		}
	}
	if before == after {
		return ""
	}
	return text.String() + "\n"
}

// A file that is a link, and its permissions, stay.
func TestTeamSetKeepsLinksAndPermissions(t *testing.T) {
	path := teamsYAML(t, "teams: [{name: a, quota: {default-flavor: {cpu: 1, memory: 1}}}]\n")
	link := filepath.Join(t.TempDir(), "link.yaml")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, _, err := command(t, "team", "set", "a", "cpu=2", "--file="+link); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	info, statErr := os.Lstat(link)
	mode, modeErr := os.Stat(path)
	if err != nil || statErr != nil || modeErr != nil || string(text) != "teams: [{name: a, quota: {default-flavor: {cpu: 2, memory: 1}}}]\n" || info.Mode()&os.ModeSymlink == 0 || mode.Mode().Perm() != 0o640 {
		t.Errorf("got %q, %v, %v, %v", text, info, mode, err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// What another program writes meanwhile is not lost.
func TestTeamSetDoesNotOverwriteAChange(t *testing.T) {
	path := teamsYAML(t, "teams: [] # new\n")
	err := replaceFile(path, []byte("teams: []\n"), []byte("teams: [{name: a}]\n"))
	wording.OneSentence(t, "", err, path+" has changed meanwhile: run the command again")
}

func TestTeamPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "team", "research.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	path := teamsYAML(t, string(text))
	out, progress, err := command(t, "team", "set", "vision", "h100:nvidia.com/gpu=40", "--file="+path)
	if err != nil {
		t.Fatal(err)
	}
	golden.Between(t, "../../docs/commands-admin.md", "<!-- team: written by go test ./tools/mlbatch -run TestTeamPage -update -->\n```\n", "```\n<!-- end of team -->", out+strings.ReplaceAll(progress, path, "teams.yaml"))
}

const twoTeams = "cohorts: [{name: all}]\ncohort: all\nteams:\n- {name: vision, quota: {default-flavor: {cpu: 4, memory: 1Gi}}}\n- {name: speech, quota: {default-flavor: {cpu: 8, memory: 1Gi}}}\n"

// applied is a world that has what the chart makes of a file.
func applied(t *testing.T, text string) map[string]string {
	t.Helper()
	chart, err := teamschart.Load()
	if err != nil {
		t.Fatal(err)
	}
	file, err := teamsfile.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := chart.Render(file.Values())
	if err != nil {
		t.Fatal(err)
	}
	items := map[string][]string{}
	for _, document := range strings.Split(strings.Join(manifests, "\n---\n"), "\n---\n") {
		object, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		var kind struct{ Kind string }
		if err := json.Unmarshal(object, &kind); err != nil {
			t.Fatal(err)
		}
		items[kind.Kind] = append(items[kind.Kind], string(object))
	}
	world := map[string]string{"/api/v1/namespaces": list("v1", "Namespace", items["Namespace"]...)}
	for kind, resource := range map[string]string{"ClusterQueue": "clusterqueues", "LocalQueue": "localqueues", "Cohort": "cohorts", "ResourceFlavor": "resourceflavors"} {
		world[queues+"/"+resource] = list("kueue.x-k8s.io/v1beta2", kind, items[kind]...)
	}
	return world
}

func TestTeamDiff(t *testing.T) {
	const limit = "?limit=500"
	five := []string{
		"GET " + queues + "/clusterqueues" + limit, "GET " + queues + "/localqueues" + limit, "GET " + queues + "/cohorts" + limit,
		"GET " + queues + "/resourceflavors" + limit, "GET /api/v1/namespaces" + limit,
	}
	path := teamsYAML(t, twoTeams)
	for name, row := range map[string]struct {
		world         map[string]string
		forbidden     []string
		out, progress string
		requests      []string
		err           error
	}{
		"the same": {world: applied(t, twoTeams), progress: "the cluster has what " + path + " says\n", requests: five},
		"another quota": {
			world: applied(t, strings.Replace(twoTeams, "cpu: 4", "cpu: 3", 1)), requests: five, err: somethingFound,
			out: "QUOTA OF     FLAVOR          RESOURCE  CLUSTER  FILE  CHANGE\nteam vision  default-flavor  cpu       3        4     +1\ncohort all   default-flavor  cpu       11       12    +1\n",
		},
		"a user who may not": {
			world: applied(t, twoTeams), forbidden: []string{"/api/v1/namespaces"}, requests: five,
			err: errors.New("you may not list namespaces: ask an administrator for a role with this right"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, progress, requests, err := ask(t, row.world, "team diff --file="+path, row.forbidden...)
			if out != row.out || progress != row.progress || fmt.Sprint(err) != fmt.Sprint(row.err) {
				t.Errorf("got %s, %q, %v", out, progress, err)
			}
			if diff := cmp.Diff(row.requests, requests); diff != "" {
				t.Errorf("requests (-want +got)\n%s", diff)
			}
		})
	}
}

// The ConfigMap that the chart makes stands for the ClusterQueue that the controller makes.
func TestTeamDiffOfASlackQueue(t *testing.T) {
	withSlack := func(cpu string) string {
		return twoTeams + "slackQueues: [{name: slack-cluster-queue, quota: {default-flavor: {cpu: " + cpu + ", memory: 1Gi}}}]\n"
	}
	out, _, requests, err := ask(t, applied(t, withSlack("2")), "team diff --file="+teamsYAML(t, withSlack("3")))
	want := "OBJECT                            STATE    FIELD  CLUSTER  FILE\nClusterQueue slack-cluster-queue  missing  -      -        -\n\n" +
		"QUOTA OF                         FLAVOR          RESOURCE  CLUSTER  FILE  CHANGE\n" +
		"slack queue slack-cluster-queue  default-flavor  cpu       -        3     +3\n" +
		"slack queue slack-cluster-queue  default-flavor  memory    -        1Gi   +1Gi\n" +
		"cohort all                       default-flavor  cpu       12       15    +3\n" +
		"cohort all                       default-flavor  memory    2Gi      3Gi   +1Gi\n"
	if out != want || len(requests) != 5 || !errors.Is(err, somethingFound) {
		t.Errorf("got %s, %q, %v", out, requests, err)
	}
}

func TestTeamDiffReadsAllPages(t *testing.T) {
	world := applied(t, twoTeams)
	world[queues+"/clusterqueues?2"] = world[queues+"/clusterqueues"]
	world[queues+"/clusterqueues"] = `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ClusterQueueList","metadata":{"continue":"2"},"items":[]}`
	out, _, requests, err := ask(t, world, "team diff -o json --file="+teamsYAML(t, twoTeams))
	if err != nil || len(requests) != 6 || !strings.HasSuffix(out, "  \"items\": [],\n  \"quota\": []\n}\n") {
		t.Errorf("got %s, %q, %v", out, requests, err)
	}
}
