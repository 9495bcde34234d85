// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mlbatch/mlbatch/test/wording"
)

// crowded is a namespace with 500 AppWrappers, a bare job and everything that list reads.
func crowded() map[string]string {
	world := busyNamespace()
	world[inBlue+"/localqueues"] = list("kueue.x-k8s.io/v1beta2", "LocalQueue", world[inBlue+"/localqueues/default"])
	return world
}

// ask runs a command line against a world, and returns its requests without those of an earlier one.
func ask(t *testing.T, world map[string]string, line string, forbidden ...string) (out, progress string, requests []string, err error) {
	t.Helper()
	home(t)
	kubeconfig, asked := whyServer(t, world, forbidden...)
	out, progress, err = command(t, append(strings.Fields(line), "--kubeconfig="+kubeconfig)...)
	return out, progress, asked(), err
}

func TestListReadsEightLists(t *testing.T) {
	out, progress, requests, err := ask(t, crowded(), "list")
	if err != nil || progress != "" || strings.Count(out, "\n") != 502 || !strings.Contains(out, "\ntrain7    AppWrapper  -     0     Queued   QuotaLent  ") {
		t.Fatalf("got %.400s, %q, %v", out, progress, err)
	}
	want := []string{
		"GET " + wrappers + "?limit=500", "GET " + runsOfBlue + "?limit=500", "GET " + inBlue + "/workloads?limit=500", "GET " + inBlue + "/localqueues?limit=500",
		"GET " + queues + "/clusterqueues?limit=500", "GET " + queues + "/cohorts?limit=500",
		"GET /api/v1/namespaces/blue/pods?fieldSelector=status.phase%3DPending&limit=500",
		"GET /api/v1/namespaces/blue/events?fieldSelector=reason%3DBackOff&limit=500",
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTheOldSpellingOfListNamesTheNewOne(t *testing.T) {
	now, _, _, err := ask(t, crowded(), "list")
	old, progress, _, oldErr := ask(t, crowded(), "run list")
	if err != nil || oldErr != nil || old != now || progress != "note: write 'mlbatch list': 'mlbatch run list' is its old spelling\n" {
		t.Errorf("got %.400s, %q, %v, %v", old, progress, err, oldErr)
	}
}

func TestListReadsAllPages(t *testing.T) {
	world := crowded()
	world[wrappers+"?2"] = world[wrappers]
	world[wrappers] = `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapperList","metadata":{"continue":"2"},"items":[]}`
	out, _, requests, err := ask(t, world, "list")
	if err != nil || strings.Count(out, "\n") != 502 || len(requests) != 9 {
		t.Errorf("got %d lines, %q, %v", strings.Count(out, "\n"), requests, err)
	}
}

func TestListForProgramsIsOneObject(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		out, _, _, err := ask(t, crowded(), "list -o "+format)
		if format == "yaml" {
			if err != nil || !strings.HasPrefix(out, "apiVersion: mlbatch.dev/v1\nitems:\n- gpus: 0\n  kind: Job\n  name: bare\n") {
				t.Errorf("got %.200s, %v", out, err)
			}
			continue
		}
		var all struct {
			Items []struct{ Name, Reason string }
		}
		if err != nil || json.Unmarshal([]byte(out), &all) != nil || len(all.Items) != 501 || all.Items[1].Reason != "QuotaLent" {
			t.Errorf("got %.200s, %v", out, err)
		}
	}
}

func TestListSaysWhatIsMissing(t *testing.T) {
	empty := crowded()
	empty[wrappers], empty[inBlue+"/workloads"] = list("workload.codeflare.dev/v1beta2", "AppWrapper"), list("kueue.x-k8s.io/v1beta2", "Workload")
	out, progress, _, err := ask(t, empty, "list")
	if err != nil || out != "" || progress != "there is no work in blue\n" {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
	out, progress, _, err = ask(t, crowded(), "list", inBlue+"/workloads")
	if want := "note: you may not list workloads in namespace blue: "; err != nil || !strings.HasPrefix(progress, want) || strings.Count(out, "\n") != 501 {
		t.Errorf("got %.200s, %q, %v", out, progress, err)
	}
	out, progress, _, err = ask(t, crowded(), "list", wrappers)
	wording.OneSentence(t, out+progress, err, "you may not list appwrappers in namespace blue: ask an administrator for a role with this right")
}

const whoAmI = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews"

// peopled is a namespace in which train7 is alice's, and failed long ago, and train8 is bob's. Alice asks.
func peopled(t *testing.T) map[string]string {
	t.Helper()
	world := crowded()
	world[whoAmI] = `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":"alice"}}}`
	world["/apis/batch/v1/namespaces/blue/jobs/bare"] = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"bare","namespace":"blue","uid":"uid-bare"}}`
	world[inBlue+"/workloads"] = strings.Replace(world[inBlue+"/workloads"], `"name":"job-bare",`, `"name":"job-bare","labels":{"mine":"bare"},`, 1)
	for number, labels := range map[string]string{"7": `"project":"vision","workload.codeflare.dev/user":"alice",`, "8": `"workload.codeflare.dev/user":"bob","project":"vision",`} {
		old := world[wrappers+"/train"+number]
		mine := strings.Replace(old, `"labels":{`, `"labels":{`+labels, 1)
		if mine == old {
			t.Fatal(old)
		}
		if number == "7" {
			mine = strings.Replace(mine, `"phase":"Suspended"`, `"phase":"Failed","phaseTransitionTime":"2020-01-01T00:00:00Z"`, 1)
		}
		world[wrappers] = strings.Replace(world[wrappers], old, mine, 1)
		world[wrappers+"/train"+number] = mine
	}
	return world
}

func TestAListThatIsMine(t *testing.T) {
	for line, row := range map[string]struct{ names, note string }{
		"list --me":                             {"", "1 more ended more than a day ago: see them with --all\n"},
		"list --me --all":                       {"train7", ""},
		"list --all -l project=vision":          {"train7 train8", ""},
		"list --me --all --state=failed":        {"train7", ""},
		"list --all --state=ended":              {"", "none of 501 pieces of work is as the flags say\n"},
		"list --me --all --state=queued":        {"", "none of 501 pieces of work is as the flags say\n"},
		"list -l project=vision --state=QUEUED": {"train8", ""},
		"list -l project=vision -o json":        {"train7 train8", ""},
	} {
		out, progress, _, err := ask(t, peopled(t), line)
		if err != nil || progress != row.note || strings.Join(regexp.MustCompile(`\btrain[78]\b`).FindAllString(out, -1), " ") != row.names {
			t.Errorf("%s: got %q, %q, %v", line, out, progress, err)
		}
	}
}

func TestWhatCannotBeListedIsASentence(t *testing.T) {
	for line, want := range map[string]string{
		"list --state=Suspended":       "there is no state Suspended: use Queued, Starting, Running, Retrying, Preempted, Stopping, Succeeded, Failed, Cancelled, Ended",
		"list -l a=b=c":                "cannot read --selector a=b=c: write NAME=VALUE, such as project=vision: ",
		"list --watch=1ms":             "--watch takes at least a second, and tables only",
		"list --watch -o json":         "--watch takes at least a second, and tables only",
		"cancel a -l b=c":              "names and --selector exclude each other: remove one of them",
		"cancel -l project=":           "no work in namespace blue has the labels project= and is Queued, Starting, Running, Retrying, Preempted: see 'mlbatch list --selector project='",
		"cancel -l project=vision":     "--selector project=vision also chooses AppWrapper train8, which is the work of bob: name what is yours",
		"cancel -l bare!=x":            "name what is yours",
		"cancel -l mine=bare":          "--selector mine=bare chooses 1 bare job only, and nothing says whose: name what is yours",
		"retry train7 --set=numPods=2": "AppWrapper train7 does not say of which settings it was made, as those of 'mlbatch submit' do: ",
		"cancel -l =":                  "cannot read --selector =: ",
	} {
		out, progress, requests, err := ask(t, peopled(t), line)
		wording.OneSentence(t, out+progress, err, want)
		if strings.Contains(strings.Join(requests, " "), "DELETE") {
			t.Errorf("%s deletes: %q", line, requests)
		}
	}
	out, progress, _, err := ask(t, crowded(), "list --me")
	wording.OneSentence(t, out+progress, err, "cannot create selfsubjectreviews: not found")
}

// The owner of a bare job may say whose it is in a label. Others are left out of what a selector chooses.
func TestASelectorLeavesBareJobsOutThatMayBeOfOthers(t *testing.T) {
	for labels, want := range map[string]string{
		`"project":"sound"`: "Delete AppWrapper train7 in namespace blue, ",
		`"project":"sound","workload.codeflare.dev/user":"alice"`: "Cancel these 2, with all that they have created: Job bare (Admitted), AppWrapper train7 (Suspended)? ",
	} {
		world := peopled(t)
		world[wrappers] = strings.NewReplacer(`"project":"vision","workload.codeflare.dev/user":"alice"`, `"project":"sound","workload.codeflare.dev/user":"alice"`,
			`"phase":"Failed","phaseTransitionTime":"2020-01-01T00:00:00Z"`, `"phase":"Suspended"`).Replace(world[wrappers])
		world[wrappers+"/train7"] = strings.Replace(world[wrappers+"/train7"], `"phase":"Failed"`, `"phase":"Suspended"`, 1)
		world[inBlue+"/workloads"] = strings.Replace(world[inBlue+"/workloads"], `"mine":"bare"`, labels, 1)
		_, progress, requests, err := answer(t, world, "cancel -l project=sound", "n")
		note := "note: 1 bare job is left out, as nothing says whose: name what is yours\n"
		if err == nil || !strings.Contains(progress, want) || strings.HasPrefix(progress, note) == strings.Contains(labels, "alice") {
			t.Errorf("%s: got %q, %v, %q", labels, progress, err, requests)
		}
	}
	world := peopled(t)
	world[inBlue+"/workloads"] = strings.Replace(world[inBlue+"/workloads"], `"mine":"bare"`, `"workload.codeflare.dev/user":"alice"`, 1)
	if out, progress, _, err := ask(t, world, "list --me"); err != nil || !strings.Contains(out, "\nbare  Job   alice ") {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
}

func TestASelectorChoosesMyWork(t *testing.T) {
	world := peopled(t)
	world["POST "+wrappers] = world[wrappers+"/train7"]
	out, progress, _, err := ask(t, world, "retry -l workload.codeflare.dev/user=alice")
	if err != nil || out != "AppWrapper train7 was submitted in namespace blue\n" || progress != "" {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
}

// A cluster without the platform answers with words that are no object.
func TestListOnAClusterWithoutThePlatform(t *testing.T) {
	home(t)
	kubeconfig, _ := apiServer(t) // it knows no AppWrappers
	out, progress, err := command(t, "list", "--kubeconfig="+kubeconfig)
	wording.OneSentence(t, out+progress, err, "the cluster does not serve appwrappers: ask an administrator whether the platform is installed")
}

// ofAll are the flags that a sentence names for all commands.
var ofAll = []string{"namespace", "kubeconfig", "context", "as", "as-group"}

// everyday are the commands of the pages for users and administrators.
var everyday = []string{"list", "status", "wait", "cancel", "retry", "logs", "exec", "port-forward", "cp", "top", "usage", "check"}

// A command or a flag that the page does not name is unknown to users.
func TestThePageOfCommandsNamesAllFlags(t *testing.T) {
	page := ""
	for _, name := range []string{"commands.md", "commands-admin.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		page += string(text)
	}
	found := 0
	for _, cmd := range rootCommand("1").Commands() {
		if !slices.Contains(everyday, cmd.Name()) {
			continue
		}
		found++
		row := rowOf(page, cmd)
		if row == "" {
			t.Errorf("the page has no row for mlbatch %s", cmd.Use)
		}
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if !slices.Contains(ofAll, flag.Name) && flag.Name != "verbose" && !strings.Contains(row, "--"+flag.Name) {
				t.Errorf("the row of mlbatch %s lacks --%s", cmd.Use, flag.Name)
			}
		})
	}
	if found != len(everyday) {
		t.Errorf("%d of %q are commands", found, everyday)
	}
}

func rowOf(page string, cmd *cobra.Command) string {
	return regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(fmt.Sprintf("`mlbatch %s`", cmd.Use)) + ` \|.*$`).FindString(page)
}
