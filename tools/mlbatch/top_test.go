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
	world["/api/v1/nodes"] = list("v1", "Node", `{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"2","nvidia.com/gpu":"2"},"conditions":[{"type":"Ready","status":"True"}]}}`)
	world["/api/v1/pods"] = list("v1", "Pod", `{"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c","resources":{"requests":{"nvidia.com/gpu":"1"}}}]},"status":{"phase":"Running"}}`)
	world[deployments] = list("apps/v1", "Deployment", fmt.Sprintf(deployed, "appwrapper-controller-manager", "r/controller:1", "", "ours"))
	world[settingsOf] = list("v1", "ConfigMap", `{"metadata":{"name":"any"},"data":{"config.yaml":"appwrapper: {slackQueueName: slack}"}}`)
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
		parts   = "GET " + deployments + "?limit=500"
		ours    = "GET " + settingsOf + "?fieldSelector=metadata.name%3Dours&limit=500"
		devices = "GET " + settingsOf + "?fieldSelector=metadata.name%3Dmlbatch-node-devices&limit=500"
		pods    = "GET /api/v1/pods?fieldSelector=spec.nodeName%21%3D%2Cstatus.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed&limit=500"
		may     = ": ask an administrator for a role with this right; "
	)
	for name, row := range map[string]struct {
		by        string
		forbidden []string
		out       string
		notes     string
		requests  []string
	}{
		"an administrator": {
			out:      "red   all     0        0        a       cpu       [##########]+  6     4      2         0\n",
			notes:    "note: the quota of cpu in flavor a that can be used is 8, but pods can get 2 of its nodes\n",
			requests: []string{teamsOf, all, cohorts, flavors, nodes, parts, ours, devices, pods},
		},
		"somebody who may see nodes, and not how the controller judges them": {
			forbidden: []string{deployments, "/api/v1/pods"},
			out:       "a       cpu       8     8      0      0      2      2       -         -\n",
			notes: "note: you may not list deployments" + may + "nodes count as usable unless they show one of the usual signs\n" +
				"note: you may not list pods" + may + "what is stranded is missing\n" +
				"note: the quota of cpu in flavor a that can be used is 8, but pods can get 2 of its nodes\n",
			requests: []string{teamsOf, all, cohorts, flavors, nodes, parts, pods},
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
		"teams alone": {
			by: "team", out: "red   all     0        0        a       cpu       [##########]+  6     4      2         0\n", requests: []string{teamsOf, all},
		},
		"flavors alone": {
			by: "flavor", out: "a       cpu       8     8      0      0      2      2       -         -\n",
			notes:    "note: the quota of cpu in flavor a that can be used is 8, but pods can get 2 of its nodes\n",
			requests: []string{teamsOf, cohorts, flavors, nodes, parts, ours, devices, pods},
		},
		"queues alone": {by: "queue", out: "default  blue          0        0        -       -         -\n", requests: []string{all}},
		"queues of a member": {
			by: "queue", forbidden: []string{queues + "/localqueues"}, out: "default  blue          0        0        -       -         -\n",
			notes: "note: you may not list localqueues" + may + "these are the queues of namespace blue\n", requests: []string{all, own},
		},
		"nodes alone": {
			by: "node", out: "n     a        nvidia.com/gpu  [#####.....]  1     2       2      1     -\n", requests: []string{nodes, flavors, parts, ours, devices, pods},
		},
		"nodes without pods": {
			by: "node", forbidden: []string{"/api/v1/pods", queues}, out: "n     -        nvidia.com/gpu  -    -     2       2      -     -\n",
			notes:    "note: you may not list resourceflavors" + may + "the flavors of nodes are missing\nnote: you may not list pods" + may + "what is used is missing\n",
			requests: []string{nodes, flavors, parts, ours, devices, pods},
		},
	} {
		t.Run(name, func(t *testing.T) {
			line := "top --by=" + row.by
			if row.by == "" {
				line = "top --all"
			}
			out, progress, requests, err := ask(t, teams(), line, row.forbidden...)
			if err != nil || !strings.Contains(out, row.out) || progress != row.notes {
				t.Errorf("got %s\n%q, %v", out, progress, err)
			}
			if diff := cmp.Diff(row.requests, requests); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestTopSaysWhatAMemberCanStartNow(t *testing.T) {
	const reads = "clusterqueues?limit=500 cohorts?limit=500 namespaces/blue/localqueues?limit=500"
	strange := teams()
	strange[inBlue+"/localqueues"] = list("kueue.x-k8s.io/v1beta2", "LocalQueue")
	for name, row := range map[string]struct {
		world              map[string]string
		line, out, request string
		forbidden          []string
	}{
		"a member":                  {teams(), "top", "TEAM  FLAVOR  CAN START NOW  OF IT BORROWED  LENT, COMES BACK\nblue  a       0 cpu          -               2 cpu\n", reads, []string{queues + "/localqueues", "/api/v1"}},
		"a member of another team":  {teams(), "top --all", "red   all     0        0        a       cpu  ", "", nil},
		"a namespace without queue": {strange, "top", "red   all     0        0        a       cpu  ", "", nil},
		"the wide table":            {teams(), "top -o wide", "red   all     0        0        a       cpu  ", "", nil},
		"who sees no ClusterQueues": {teams(), "top", "QUEUE    CLUSTERQUEUE  PENDING", "clusterqueues?limit=500 namespaces/blue/localqueues?limit=500", []string{queues + "/clusterqueues"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, requests, err := ask(t, row.world, row.line, row.forbidden...)
			got := strings.ReplaceAll(strings.Join(requests, " "), "GET "+queues+"/", "")
			if err != nil || !strings.Contains(out, row.out) || row.request != "" && got != row.request {
				t.Errorf("got %s\nafter %s, %v", out, got, err)
			}
		})
	}
}

func TestTopForPrograms(t *testing.T) {
	out, _, _, err := ask(t, teams(), "top -o json")
	var answer struct {
		By    string
		Items []struct {
			Name  string
			Quota []struct{ Borrowed string }
		}
	}
	if err != nil || json.Unmarshal([]byte(out), &answer) != nil || answer.By != "team" || len(answer.Items) != 2 || answer.Items[1].Quota[0].Borrowed != "2" {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestAViewNeedsItsOwnRight(t *testing.T) {
	for view, resource := range map[string]string{"team": "clusterqueues", "flavor": "clusterqueues", "node": "nodes"} {
		out, progress, _, err := ask(t, teams(), "top --by="+view, queues+"/clusterqueues", "/api/v1/nodes")
		wording.OneSentence(t, out+progress, err, "you may not list "+resource+": ask an administrator for a role with this right")
	}
	out, progress, _, err := ask(t, teams(), "top --by=cohort")
	wording.OneSentence(t, out+progress, err, "cannot show anything by cohort: use team, queue, node, flavor")
	empty := teams()
	empty["/api/v1/nodes"] = list("v1", "Node")
	if out, progress, _, err := ask(t, empty, "top --by=node"); err != nil || out != "" || progress != "there are no nodes\n" {
		t.Errorf("got %q, %q, %v", out, progress, err)
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
	out2, progress2, _, err := ask(t, teams(), "top --all --by=node")
	wording.OneSentence(t, out2+progress2, err, "if any flags in the group [all by] are set none of the others can be")
	for _, line := range []string{"top -w=10ms", "top -w -o json"} {
		out, progress, _, err := ask(t, teams(), line)
		wording.OneSentence(t, out+progress, err, "--watch takes at least a second, and tables only")
	}
}
