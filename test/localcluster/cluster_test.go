// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// mode is a mode of local clusters. Every test runs in each.
type mode struct {
	name string
	// flags of 'localcluster up'.
	flags []string
	// real is true if a node runs containers. Otherwise, a node runs the platform's pods as
	// processes.
	real bool
	// ports are the ports of its clusters.
	ports [2]int
}

var modes = []mode{
	{name: "real", real: true, ports: [2]int{26445, 26446}},
	{name: "simulated", flags: []string{"--mode=simulated"}, ports: [2]int{26447, 26448}},
}

// disk is a separate file system, which the tests fill.
func (m mode) disk() string { return filepath.Join(root, "disk-of-"+m.name) }

// cluster is a cluster of the tests, as its user sees it.
type cluster struct {
	mode mode
	name string
	port int
	// state is the user's XDG_STATE_HOME.
	state string
}

// The clusters of a mode. They have few nodes, to be quick.
func (m mode) main() cluster {
	return cluster{mode: m, name: m.name, port: m.ports[0], state: m.disk()}
}
func (m mode) second() cluster {
	return cluster{mode: m, name: m.name + "-second", port: m.ports[1], state: home}
}

func everyCluster() []cluster {
	var all []cluster
	for _, m := range modes {
		all = append(all, m.main(), m.second())
	}
	return all
}

// inEachMode runs a test in every mode.
func inEachMode(t *testing.T, test func(*testing.T, mode)) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) { test(t, m) })
	}
}

// command returns 'localcluster …' for this cluster.
func (c cluster) command(args ...string) *exec.Cmd {
	cmd := exec.Command(localclusterProgram(), append([]string{"--name=" + c.name}, args...)...)
	cmd.Dir = checkout
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+c.state)
	return cmd
}

// run runs a command and returns its stderr.
func (c cluster) run(args ...string) (string, error) {
	cmd := c.command(args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	err := cmd.Run()
	return said.String(), err
}

func (c cluster) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	said, err := c.run(args...)
	if err != nil {
		t.Fatalf("localcluster %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return said
}

// wantRefusal runs a command that must fail with these words in its last line.
func (c cluster) wantRefusal(t *testing.T, words string, args ...string) {
	t.Helper()
	said, err := c.run(args...)
	if err == nil {
		t.Errorf("localcluster %s must fail, but succeeds", strings.Join(args, " "))
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, words) {
		t.Errorf("it prints\n%s\nwithout %q in the last line", said, words)
	}
}

// upFlags are the flags of 'up' for the cluster.
func (c cluster) upFlags() []string {
	return append([]string{"up", "--port=" + strconv.Itoa(c.port), "--simulated-nodes=2"}, c.mode.flags...)
}

// running starts the cluster if it does not run.
func running(t *testing.T, c cluster) cluster {
	t.Helper()
	if !c.described().Running() {
		c.mustRun(t, c.upFlags()...)
	}
	return c
}

// described returns the cluster as our programs see it.
func (c cluster) described() *localcluster.Cluster {
	described, err := localcluster.New(localcluster.Config{
		Name: c.name, Port: c.port, Checkout: checkout, StateDir: filepath.Join(c.state, "mlbatch", "clusters"),
	}, io.Discard)
	if err != nil {
		panic(err) // a mistake in this file
	}
	return described
}

func (c cluster) dir() string { return c.described().Dir() }

// api returns an administrator's client.
func (c cluster) api(t *testing.T) client.Client {
	t.Helper()
	config, err := c.described().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = -1, -1
	api, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func (c cluster) plan(t *testing.T) plan.Plan {
	t.Helper()
	var p plan.Plan
	read(t, c.dir(), plan.File, &p)
	return p
}

func (c cluster) status(t *testing.T) plan.Status {
	t.Helper()
	var s plan.Status
	read(t, c.dir(), plan.StatusFile, &s)
	return s
}

func (c cluster) keeper(t *testing.T) int {
	t.Helper()
	var k plan.Keeper
	read(t, c.dir(), plan.KeeperFile, &k)
	return k.PID
}

func read(t *testing.T, dir, name string, v any) {
	t.Helper()
	if err := plan.Read(dir, name, v); err != nil {
		t.Fatal(err)
	}
}
