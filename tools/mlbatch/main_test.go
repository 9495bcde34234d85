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

	"github.com/spf13/pflag"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// command runs a command line of a user with an empty home.
func command(t *testing.T, args ...string) (out, progress string, err error) {
	t.Helper()
	var o, p bytes.Buffer
	err = run(t.Context(), args, &o, &p)
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

func TestWhatCannotBeDoneIsOneSentence(t *testing.T) {
	for line, want := range map[string]string{
		"clutser":                            `unknown command "clutser" for "mlbatch": see 'mlbatch --help'`,
		"cluster start":                      `unknown command "start" for "mlbatch cluster"`,
		"cluster up now":                     `unknown command "now" for "mlbatch cluster up"`,
		"cluster up --prot=1":                "unknown flag: --prot: see 'mlbatch cluster up --help'",
		"cluster up --port=99999":            "there is no port 99999: --port takes 1 to 65535",
		"cluster up --simulated-nodes=-1":    "there cannot be -1 nodes: --simulated-nodes takes 0 and more",
		"cluster up --port=x":                `invalid argument "x" for "--port" flag`,
		"cluster up --mode=fake":             `there is no mode "fake"; choose real or simulated`,
		"cluster down mlbatch":               `unknown command "mlbatch" for "mlbatch cluster down"`,
		"cluster up --name=gpu-0":            `cluster name "gpu-0" is also that of a simulated node`,
		"cluster up --name=Blue":             `cluster name "Blue" must be up to 20 lower-case letters`,
		"cluster leaks --name=Blue":          `cluster name "Blue" must be up to 20 lower-case letters`,
		"cluster kubeconfig --name=unit-y":   `cluster "unit-y" is not running; start it with: mlbatch cluster up --name=unit-y`,
		"cluster load-image --name=unit-y a": `cluster "unit-y" is not running; start it with: mlbatch cluster up --name=unit-y`,
		"cluster status --name=unit-y":       `cluster "unit-y" is not running; start it with: mlbatch cluster up --name=unit-y`,
		"cluster status --output=yaml":       `there is no output format "yaml"; choose text or json`,
		"install now":                        `unknown command "now" for "mlbatch install"`,
		"install --charts=/no/such/folder":   "cannot find the packaged chart mlbatch in /no/such/folder: run 'make release REGISTRY=REGISTRY', or name",
		"upgrade --timeout=soon":             `invalid argument "soon" for "--timeout" flag`,
		"install --charts=oci://127.0.0.1:1/x --kubeconfig=/no/such/file": "cannot find the cluster, which --kubeconfig and --context say",
		"uninstall --kubeconfig=/no/such/file":                            "cannot find the cluster, which --kubeconfig and --context say",
		"components --kubeconfig=/no/such/file":                           "cannot find the cluster, which --kubeconfig and --context say",
		"components --kubeconfig=testdata/nobody.yaml":                    "cannot reach the cluster at http://127.0.0.1:1, which --kubeconfig and --context say",
		"components --output=yaml":                                        `there is no output format "yaml"; choose text or json`,
		"submit":                                                          "name the settings file of the job with --filename",
		"submit settings.yaml":                                            `unknown command "settings.yaml" for "mlbatch submit"`,
		"submit -f /no/such/file":                                         "cannot read the settings: open /no/such/file",
		"submit -f /dev/null":                                             "the settings are wrong: jobName is missing: every job needs a name",
		"submit -f /dev/null --set a":                                     `cannot read --set a: key "a" has no value`,
		"submit -f /dev/null --set numPods=x":                             "the settings are wrong: numPods: got string, want integer",
		"submit -f /dev/null --set jobName=a,containerImage=b --kubeconfig=/no/such/file": "cannot find the cluster, which --kubeconfig and --context say",
		"cluster load-image":                    "name at least one image archive to load",
		"cluster down --name=unit-y --port 123": "unknown flag: --port",
	} {
		t.Run(line, func(t *testing.T) {
			home(t)
			out, progress, err := command(t, strings.Fields(line)...)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("got %v, want %s", err, want)
			}
			if strings.Contains(err.Error(), "\n") || out+progress != "" {
				t.Errorf("it says more than a sentence: %q, %q, %q", err, out, progress)
			}
		})
	}
}

func TestWithoutAKubeconfigTheSentenceSaysWhereOneWasLookedFor(t *testing.T) {
	for _, line := range []string{"components", "uninstall", "submit -f /dev/null --set jobName=a,containerImage=b"} {
		home(t)
		t.Setenv("KUBECONFIG", "/no/such/file")
		_, _, err := command(t, strings.Fields(line)...)
		if want := "cannot find the cluster: there is none in /no/such/file: name a kubeconfig with --kubeconfig or KUBECONFIG"; err == nil || err.Error() != want {
			t.Errorf("mlbatch %s: got %v, want %s", line, err, want)
		}
	}
}

func TestDownOfAClusterThatNeverWasSaysSo(t *testing.T) {
	home(t)
	out, progress, err := command(t, "cluster", "down", "--name=unit-y")
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
	out, progress, err := command(t, "cluster", "kubeconfig", "--name=unit-y")
	if err != nil || out != path+"\n" || progress != "" {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
}

func TestARunningClusterIsFollowedUnlessAFlagSaysOtherwise(t *testing.T) {
	for flag, want := range map[string]string{
		"--port=36443":         "runs with --port=4711, not 36443",
		"--simulated-nodes=10": "runs with --simulated-nodes=3, not 10",
		"--simulated-nodes=0":  "runs with --simulated-nodes=3, not 0",
		"--mode=simulated":     "runs with --mode=real, not simulated",
	} {
		t.Run(flag, func(t *testing.T) {
			running(t)
			_, _, err := command(t, "cluster", "up", "--name=unit-y", flag)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestAnInterruptedCommandSaysSoAndNoMore(t *testing.T) {
	running(t) // and does not become ready
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := run(ctx, []string{"cluster", "up", "--name=unit-y", "--simulated-nodes=3"}, io.Discard, io.Discard)
	if err == nil || err.Error() != "interrupted; run the command again" {
		t.Errorf("got %v", err)
	}
}

// running makes this very process the keeper of the cluster unit-y.
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

// startTime is this process's, field 22 of its stat.
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

func TestHelpAndVersion(t *testing.T) {
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"--version": "mlbatch version " + versions.Version + "\n",
		"":          "mlbatch [command]",
		"cluster":   "mlbatch cluster [command]",
	} {
		out, _, err := command(t, strings.Fields(line)...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("mlbatch %s says %q, %v", line, out, err)
		}
	}
}

func TestTheTeamsAreWhereThePlatformIsUnlessToldOtherwise(t *testing.T) {
	for want, args := range map[string][]string{
		"mlbatch-system": nil,
		"queues":         {"--namespace=queues"},
		"tenants":        {"--namespace=queues", "--teams-namespace=tenants"},
	} {
		var w where
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		w.bind(flags)
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		if got := w.teams().Namespace; got != want {
			t.Errorf("with %q they are in %q and not in %q", args, got, want)
		}
	}
}
