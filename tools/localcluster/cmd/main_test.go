// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// command runs a command line of a user with an empty HOME.
func command(t *testing.T, args ...string) (out, progress string, err error) {
	t.Helper()
	var o, p bytes.Buffer
	err = program().Run(t.Context(), args, &o, &p)
	return o.String(), p.String(), err
}

func home(t *testing.T) (state string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	return filepath.Join(dir, "state", "mlbatch", "clusters")
}

func TestErrorsAreOneSentence(t *testing.T) {
	for line, want := range map[string]string{
		"clutser":                       `unknown command "clutser" for "localcluster": see 'localcluster --help'`,
		"start":                         `unknown command "start" for "localcluster"`,
		"up now":                        `unknown command "now" for "localcluster up"`,
		"up --prot=1":                   "unknown flag: --prot: see 'localcluster up --help'",
		"up --port=99999":               "--port=99999: choose a port from 1 to 65535",
		"up --simulated-nodes=-1":       "--simulated-nodes=-1: choose 0 or more",
		"up --port=x":                   `invalid argument "x" for "--port" flag`,
		"up --mode=fake":                `unknown mode "fake"; choose real or simulated`,
		"up --kubernetes=1.29":          "a local cluster runs no Kubernetes 1.29: choose one of 1.30, 1.37, 1.34",
		"down mlbatch":                  `unknown command "mlbatch" for "localcluster down"`,
		"up --name=gpu-0":               `cluster name "gpu-0" is reserved for a simulated node`,
		"up --name=Blue":                `cluster name "Blue" must be up to 20 lower-case letters`,
		"leaks --name=Blue":             `cluster name "Blue" must be up to 20 lower-case letters`,
		"kubeconfig --name=unit-y":      `cluster "unit-y" is not running; start it with: localcluster up --name=unit-y`,
		"load-image --name=unit-y a":    `cluster "unit-y" is not running; start it with: localcluster up --name=unit-y`,
		"status --name=unit-y":          `cluster "unit-y" is not running; start it with: localcluster up --name=unit-y`,
		"status --output=yaml":          `unknown output format "yaml"; choose text or json`,
		"load-image":                    "name at least one image archive to load",
		"down --name=unit-y --port 123": "unknown flag: --port",
	} {
		t.Run(line, func(t *testing.T) {
			home(t)
			out, progress, err := command(t, strings.Fields(line)...)
			wording.OneSentence(t, out+progress, err, want)
		})
	}
}

func TestDownOfAMissingClusterSucceeds(t *testing.T) {
	home(t)
	out, progress, err := command(t, "down", "--name=unit-y")
	if err != nil || out != "" || progress != "there is no cluster \"unit-y\"\n" {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
}

func TestTheKubeconfigOfARunningClusterIsPrintedAlone(t *testing.T) {
	dir := running(t)
	path := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, progress, err := command(t, "kubeconfig", "--name=unit-y")
	if err != nil || out != path+"\n" || progress != "" {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
}

func TestOnlyGivenFlagsAreAskedOfARunningCluster(t *testing.T) {
	for flag, want := range map[string]string{
		"--port=26443":         "runs with --port=4711, not 26443",
		"--simulated-nodes=10": "runs with --simulated-nodes=3, not 10",
		"--simulated-nodes=0":  "runs with --simulated-nodes=3, not 0",
		"--mode=simulated":     "runs with --mode=real, not simulated",
	} {
		t.Run(flag, func(t *testing.T) {
			running(t)
			_, _, err := command(t, "up", "--name=unit-y", flag)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestAnInterruptEndsTheWaitForACluster(t *testing.T) {
	running(t) // but never ready
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := program().Run(ctx, []string{"up", "--name=unit-y", "--simulated-nodes=3"}, io.Discard, io.Discard)
	wording.Wanted(t, err, "interrupted; run the command again")
}

// running records this process as the keeper of the cluster unit-y.
func running(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(home(t), "unit-y")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	keeper := plan.Keeper{PID: os.Getpid(), Boot: strings.TrimSpace(string(boot)), StartTime: startTime(t), Port: 4711, SimulatedNodes: 3}
	if err := plan.Write(dir, plan.KeeperFile, keeper); err != nil {
		t.Fatal(err)
	}
	return dir
}

// startTime returns the start time of this process, field 22 of /proc/self/stat.
func startTime(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return strings.Fields(rest)[19]
}

func TestLeaksAreListedAndAnError(t *testing.T) {
	var out bytes.Buffer
	if err := printLeaks(&out, nil); err != nil || out.Len() > 0 {
		t.Errorf("no leaks give %q, %v", out.String(), err)
	}
	err := printLeaks(&out, []string{"process 1 (etcd)", "mount /x"})
	if err == nil || out.String() != "process 1 (etcd)\nmount /x\n" {
		t.Errorf("two leaks give %q, %v", out.String(), err)
	}
}

func TestWithoutASubcommandTheHelpIsPrinted(t *testing.T) {
	out, progress, err := command(t)
	if err != nil || !strings.Contains(out, "localcluster [command]") || progress != "" {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
}
