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

func TestListReadsSevenLists(t *testing.T) {
	out, progress, requests, err := ask(t, crowded(), "list")
	if err != nil || progress != "" || strings.Count(out, "\n") != 502 || !strings.Contains(out, "\ntrain7    AppWrapper  default  Suspended  QuotaLent  ") {
		t.Fatalf("got %.400s, %q, %v", out, progress, err)
	}
	want := []string{
		"GET " + wrappers + "?limit=500", "GET " + inBlue + "/workloads?limit=500", "GET " + inBlue + "/localqueues?limit=500",
		"GET " + queues + "/clusterqueues?limit=500", "GET " + queues + "/cohorts?limit=500",
		"GET /api/v1/namespaces/blue/pods?fieldSelector=status.phase%3DPending&limit=500",
		"GET /api/v1/namespaces/blue/events?fieldSelector=reason%3DBackOff&limit=500",
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestListReadsAllPages(t *testing.T) {
	world := crowded()
	world[wrappers+"?2"] = world[wrappers]
	world[wrappers] = `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapperList","metadata":{"continue":"2"},"items":[]}`
	out, _, requests, err := ask(t, world, "list")
	if err != nil || strings.Count(out, "\n") != 502 || len(requests) != 8 {
		t.Errorf("got %d lines, %q, %v", strings.Count(out, "\n"), requests, err)
	}
}

func TestListForProgramsIsOneObject(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		out, _, _, err := ask(t, crowded(), "list -o "+format)
		if format == "yaml" {
			if err != nil || !strings.HasPrefix(out, "apiVersion: mlbatch.dev/v1\nitems:\n- kind: Job\n  name: bare\n") {
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

// A cluster without the platform answers with words that are no object.
func TestListOnAClusterWithoutThePlatform(t *testing.T) {
	home(t)
	kubeconfig, _ := apiServer(t) // it knows no AppWrappers
	out, progress, err := command(t, "list", "--kubeconfig="+kubeconfig)
	wording.OneSentence(t, out+progress, err, "the cluster does not serve appwrappers: ask an administrator whether the platform is installed")
}

// everyday are the commands of the page for users.
var everyday = []string{"list", "status", "wait", "cancel", "retry", "logs", "top", "usage", "check"}

const usersPage = "../../docs/commands.md"

// A command or a flag that the page does not name is unknown to users.
func TestThePageOfCommandsNamesAllFlags(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash(usersPage))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, cmd := range rootCommand("1").Commands() {
		if !slices.Contains(everyday, cmd.Name()) {
			continue
		}
		found++
		row := rowOf(string(page), cmd)
		if row == "" {
			t.Errorf("the page has no row for mlbatch %s", cmd.Use)
		}
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Name != "kubeconfig" && flag.Name != "context" && flag.Name != "namespace" && flag.Name != "verbose" && !strings.Contains(row, "--"+flag.Name) {
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
