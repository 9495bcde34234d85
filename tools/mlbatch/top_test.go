// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/wording"
)

// teams is a world with everything that top reads.
func teams() map[string]string {
	world := crowded()
	world[queues+"/localqueues"] = world[inBlue+"/localqueues"]
	world[queues+"/resourceflavors"] = list("kueue.x-k8s.io/v1beta2", "ResourceFlavor", `{"metadata":{"name":"a"}}`)
	world["/api/v1/nodes"] = list("v1", "Node", `{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"2"},"conditions":[{"type":"Ready","status":"True"}]}}`)
	return world
}

func TestTopReadsAFewLists(t *testing.T) {
	const (
		teamsOf = "GET " + queues + "/clusterqueues?limit=500"
		all     = "GET " + queues + "/localqueues?limit=500"
		own     = "GET " + inBlue + "/localqueues?limit=500"
		cohorts = "GET " + queues + "/cohorts?limit=500"
		flavors = "GET " + queues + "/resourceflavors?limit=500"
		nodes   = "GET /api/v1/nodes?limit=500"
		may     = ": ask an administrator for a role with this right; "
	)
	for name, row := range map[string]struct {
		forbidden []string
		out       string
		notes     string
		requests  []string
	}{
		"an administrator": {
			out:      "red   all     0        0        a       cpu       [##########]+  6     4      2         0\n",
			notes:    "note: the quota of cpu in flavor a is 8, but the nodes that take its pods have 2\n",
			requests: []string{teamsOf, all, cohorts, flavors, nodes},
		},
		"a member who may see queues": {
			forbidden: []string{queues + "/localqueues", "/api/v1/nodes"},
			out:       "blue  all     0        0        a       cpu       [#####.....]   2     4      0         2\n",
			notes:     "note: you may not list nodes" + may + "what they have is missing\n",
			requests:  []string{teamsOf, all, own, cohorts, flavors, nodes},
		},
		"a member": {
			forbidden: []string{queues + "/clusterqueues", queues + "/localqueues", queues + "/cohorts"},
			out:       "QUEUE    CLUSTERQUEUE  PENDING  RUNNING  FLAVOR  RESOURCE  USED\ndefault  blue          0        0        -       -         -\n",
			notes:     "note: you may not list clusterqueues" + may + "the role mlbatch-view-queues has it; these are the queues of namespace blue\n",
			requests:  []string{teamsOf, own},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, progress, requests, err := ask(t, teams(), "top", row.forbidden...)
			if err != nil || !strings.Contains(out, row.out) || progress != row.notes {
				t.Errorf("got %s\n%q, %v", out, progress, err)
			}
			if diff := cmp.Diff(row.requests, requests); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestTopForPrograms(t *testing.T) {
	out, _, _, err := ask(t, teams(), "top -o json")
	var answer struct {
		Teams []struct {
			Name  string
			Quota []struct{ Borrowed string }
		}
	}
	if err != nil || json.Unmarshal([]byte(out), &answer) != nil || len(answer.Teams) != 2 || answer.Teams[1].Quota[0].Borrowed != "2" {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestTopWithoutQueues(t *testing.T) {
	empty := teams()
	empty[queues+"/clusterqueues"] = list("kueue.x-k8s.io/v1beta2", "ClusterQueue")
	if out, progress, _, err := ask(t, empty, "top"); err != nil || out != "" || progress != "there are no queues\n" {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
	out, progress, _, err := ask(t, teams(), "top", queues)
	wording.OneSentence(t, out+progress, err, "you may not list localqueues in namespace blue: ask an administrator for a role with this right")
	home(t)
	kubeconfig, _ := apiServer(t)
	out, progress, err = command(t, "top", "--kubeconfig="+kubeconfig)
	wording.OneSentence(t, out+progress, err, "the cluster does not serve clusterqueues: ask an administrator whether the platform is installed")
}

func TestTopIsRedrawnUntilItIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var out bytes.Buffer
	n := 0
	err := redraw(ctx, &out, time.Millisecond, func(screen io.Writer) error {
		if n++; n == 3 {
			stop()
		}
		_, err := fmt.Fprintln(screen, "table", n)
		return err
	})
	if err != nil || out.String() != "table 1\n\ntable 2\n\n" {
		t.Errorf("got %q, %v", &out, err)
	}
	failed := errors.New("failed")
	if err := redraw(t.Context(), &out, time.Hour, func(io.Writer) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	for _, line := range []string{"top -w=10ms", "top -w -o json"} {
		out, progress, _, err := ask(t, teams(), line)
		wording.OneSentence(t, out+progress, err, "--watch takes at least a second, and tables only")
	}
}
