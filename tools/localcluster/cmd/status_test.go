// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/tools/localcluster"
)

func TestAStatusIsReadable(t *testing.T) {
	status := localcluster.Status{
		Name: "x", Mode: localcluster.Simulated, Address: "https://127.0.0.1:1", Kubeconfig: "/x/kubeconfig", Logs: "/x/log",
		Nodes: []localcluster.Nodes{{Kind: "real", Ready: 1, All: 1}, {Kind: "simulated", Ready: 2, All: 10}},
		Use:   &localcluster.Use{Processes: 12, CPUSeconds: 83.4, MemoryBytes: 3 << 20, DiskBytes: 5<<20 + 1},
		Components: []localcluster.Component{
			{Name: "etcd", Version: "v3.6.16", State: localcluster.Running, PID: 77, UpSeconds: 3661, CPUSeconds: 1.9, MemoryBytes: 2 << 20},
			{Name: "kwok", State: localcluster.Restarting, Restarts: 2, Problem: "ended with exit status 1"},
			{Name: "kubelet", Version: "v1.34.4", State: localcluster.Waiting},
		},
		Deployments: []localcluster.Deployment{{Name: "kube-system/coredns", Ready: 1, All: 1, Images: []string{"a:1", "b:2"}}},
	}
	want := `mode             simulated
address          https://127.0.0.1:1
kubeconfig       /x/kubeconfig
logs             /x/log
real nodes       1 of 1 ready
simulated nodes  2 of 10 ready
in use           12 processes, 3 MiB of memory, 1m23s of processor time, 5 MiB of disk

component  version  state       restarts  pid  up      processor  memory  health
etcd       v3.6.16  running     0         77   1h1m1s  1s         2 MiB   ok
kwok       -        restarting  2         -    -       -          -       ended with exit status 1
kubelet    v1.34.4  waiting     0         -    -       -          -       -

deployment           ready   images
kube-system/coredns  1 of 1  a:1 b:2
`
	var out strings.Builder
	if err := printStatus(&out, status); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTheStatusOfAStoppedClusterIsJSONToo(t *testing.T) {
	home(t)
	out, _, err := command(t, "status", "--name=unit-y", "-o", "json")
	var got localcluster.Status
	if e := json.Unmarshal([]byte(out), &got); e != nil {
		t.Fatal(e)
	}
	if err == nil || got.Name != "unit-y" || got.Problem != err.Error() {
		t.Errorf("got %+v, %v", got, err)
	}
}
