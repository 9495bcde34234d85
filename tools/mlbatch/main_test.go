// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mlbatch/mlbatch/test/sameseed"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

// No test depends on how fast the machine is.
func TestMain(m *testing.M) {
	slow = time.Hour
	os.Exit(sameseed.Run(m))
}

// command runs a command line of a user with an empty home.
func command(t *testing.T, args ...string) (out, progress string, err error) {
	t.Helper()
	var o, p bytes.Buffer
	err = program().Run(t.Context(), args, &o, &p)
	return o.String(), p.String(), err
}

// home sets HOME to an empty folder.
func home(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
}

func TestWhatCannotBeDoneIsOneSentence(t *testing.T) {
	for line, want := range map[string]string{
		"clutser":                          `unknown command "clutser" for "mlbatch": see 'mlbatch --help'`,
		"install now":                      `unknown command "now" for "mlbatch install"`,
		"install --charts=/no/such/folder": "cannot find the packaged chart mlbatch in /no/such/folder: run 'make release REGISTRY=REGISTRY', or name",
		"upgrade --timeout=soon":           `invalid argument "soon" for "--timeout" flag`,
		"install --charts=oci://127.0.0.1:1/x --kubeconfig=/no/such/file": "cannot find the cluster: check --kubeconfig and --context",
		"uninstall --kubeconfig=/no/such/file":                            "cannot find the cluster: check --kubeconfig and --context",
		"components --kubeconfig=/no/such/file":                           "cannot find the cluster: check --kubeconfig and --context",
		"components --kubeconfig=testdata/nobody.yaml":                    "cannot reach the cluster at http://127.0.0.1:1: check --kubeconfig and --context",
		"images --charts=/no/such/folder":                                 "cannot find the packaged chart mlbatch in /no/such/folder",
		"images --kube-version=1.29":                                      "the platform does not run on Kubernetes 1.29, but on >=1.30",
		"images --kube-version=newest":                                    "--kube-version newest is not a version of Kubernetes: use one such as 1.33",
		"components --output=wide":                                        `invalid argument "wide" for "-o, --output" flag: use table, json or yaml`,
		"audit --output=wide":                                             `invalid argument "wide" for "-o, --output" flag: use table, json or yaml`,
		"audit --except=blue":                                             "cannot read --except blue: write NAMESPACE/KIND/NAME",
		"audit --except=blue/Job/[":                                       "cannot read --except blue/Job/[: write NAMESPACE/KIND/NAME",
		"audit --grace=-1s":                                               "--grace is negative: write a duration such as 2m",
		"audit --kubeconfig=/no/such/file":                                "cannot find the cluster: check --kubeconfig and --context",
		"audit --kubeconfig=testdata/nobody.yaml":                         "cannot read the cluster: ",
		"submit":                                                 "name a script, or a settings file with --filename",
		"submit -f /dev/null -- x":                               "--folder, --array and arguments belong to a script: name it first",
		"submit --folder=a -f /dev/null":                         "--folder, --array and arguments belong to a script: name it first",
		"submit --array=0-3%2 -f /dev/null":                      "--folder, --array and arguments belong to a script: name it first",
		"submit main.go --array=-1":                              "cannot read --array -1: write FIRST-LAST, or FIRST-LAST%N, such as 0-19%4, of which N run at the same time",
		"submit main.go --array=0-199":                           "--array 0-199 has 200 numbers, and at most 100 can have an AppWrapper each: write 0-199%N",
		"submit main.go --image=a --array=0-1 --wait":            "--wait follows one AppWrapper, and --array 0-1 becomes 2: leave it out, or write 0-1%N",
		"submit main.go --array=9-0%2":                           "--array 9-0%2 ends before it begins",
		"submit main.go --array=0-9%0":                           "--array 0-9%0 runs none at a time",
		"submit main.go --array=0-99999%2":                       "--array 0-99999%2 has 100000 numbers, and an array has at most 10000: submit several",
		"submit main.go --image=a --nodes=2 --array=0-3%2":       "each number of an array with % has one pod, and not 2: remove numPods, or %2",
		"submit a b c":                                           "name one script, and write its arguments after --: mlbatch submit a -- b c",
		"submit testdata --image=a":                              "testdata is a folder: name the script that runs, and its folder with --folder",
		"submit main.go --nodes=two --image=a":                   "the settings are wrong: numPods: is a text, and must be a whole number",
		"submit main.go --image=a --array=":                      "--array is empty: write FIRST-LAST, or leave it out",
		"submit main.go --image=a --folder=":                     "--folder is empty: write a folder, or leave it out",
		"submit main.go --image=a --namespace=":                  "--namespace is empty: write the namespace of your team, or leave it out",
		"submit main.go --image=a --array=a-b":                   "cannot read --array a-b: write FIRST-LAST",
		"submit main.go --image=a --set=queueName=A_B":           "the settings are wrong: queueName: 'A_B' is no name: use lower-case letters and digits",
		"submit main.go --image=a --set=priority=urgent":         "the settings are wrong: priority: value must be one of 'default-priority'",
		"submit main.go --image=a --nodes=0":                     "the settings are wrong: numPods: is 0, and must be at least 1",
		"submit main.go --image=a --memory=1GB":                  "the settings are wrong: totalMemoryPerPod: '1GB' is no amount",
		"submit main.go --folder=/no/such --image=a":             "main.go is not in the folder /no/such: name a folder that has it",
		"submit -f testdata":                                     "cannot read the settings: read testdata: is a directory",
		"submit testdata/settings/list.yaml":                     "testdata/settings/list.yaml has no settings: write NAME: VALUE, one in each line",
		"submit testdata/settings/unclosed.yaml":                 "cannot read the settings in testdata/settings/unclosed.yaml: error converting YAML to JSON: yaml: line ",
		"logs a --attempt=x":                                     `invalid argument "x" for "--attempt" flag: write a whole number`,
		"logs a --attempt=-1":                                    "attempts are counted from 1: leave --attempt out for the present one",
		"web --port=99999":                                       `invalid argument "99999" for "--port" flag: this number is too large`,
		"top --watch=x":                                          `invalid argument "x" for "-w, --watch" flag: write a time such as 30s, 5m or 1h`,
		"shell --idle=x":                                         `invalid argument "x" for "--idle" flag: write a time such as 30s, 5m or 1h`,
		"list --me=perhaps":                                      `invalid argument "perhaps" for "--me" flag: write true or false`,
		"list --state=nope":                                      "there is no state nope: use Queued, Starting, Running",
		"list --selector=a,=b":                                   "cannot read --selector a,=b: write NAME=VALUE, such as project=vision",
		"why a/b/c --kubeconfig=testdata/nobody.yaml":            `cannot read "a/b/c": write NAME or KIND/NAME; kinds are`,
		"retry a --annotate=x --kubeconfig=testdata/nobody.yaml": "cannot read --annotate x: write NAME=VALUE, such as retryLimit=0, or NAME- to remove it",
		"pack":                                 "name the files to wrap, or - for standard input: mlbatch pack FILE…",
		"version now":                          `unknown command "now" for "mlbatch version": see 'mlbatch version --help'`,
		"submit main.go --image=a --name=2024": `the settings are wrong: jobName "2024" must start with a lower-case letter`,
		"submit main.go --image=a --name=":     "the settings are wrong: jobName is missing: set the name of the job",
		"submit main.go --image=a --set=jobName=2024":       `the settings are wrong: jobName "2024" must start with a lower-case letter`,
		"submit main.go --image=a --memory=ten":             "the settings are wrong: totalMemoryPerPod: 'ten' is no amount: write a number, and a unit such as",
		"submit main.go --image=a --gpus=-1":                "the settings are wrong: numGpusPerPod: is -1, and must be at least 0",
		"submit main.go --image=":                           "the settings are wrong: containerImage: '' is empty or has spaces: write one word",
		"submit main.go --image=a --print --namespace=Blue": "the settings are wrong: namespace: 'Blue' is no name: use lower-case letters and digits",
		"shell --image=a --name=2024":                       `the settings are wrong: jobName "2024" must start with a lower-case letter`,
		"submit main.go":                                    "the settings are wrong: containerImage is missing",
		"submit -f ../../samples/job.yaml":                  "../../samples/job.yaml is a manifest of the kind AppWrapper, and not settings of a job: submit it with kubectl create, or wrap it first with mlbatch pack",
		"run":                                               "say what to do: see 'mlbatch run --help'",
		"completion tcsh":                                   `unknown command "tcsh" for "mlbatch completion": see 'mlbatch completion --help'`,
		"completion":                                        "say what to do: see 'mlbatch completion --help'",
		"port-forward a abc":                                "cannot read the ports: ",
		"port-forward a 80 --address=x":                     "cannot read the ports: ",
		"submit main.go --image=a --set=queueName=2024":     "the settings are wrong: queueName: is a number, and must be a text",
		"submit testdata/empty.py --image=a":                "testdata/empty.py is empty: name the script that runs",
		"run plna":                                          `unknown command "plna" for "mlbatch run": see 'mlbatch run --help'`,
		"run plan":                                          "name the files of the Runs: mlbatch run plan FILE…",
		"run plan /no/such/file":                            "cannot read the manifests: open /no/such/file",
		"run plan -o xml /dev/null":                         `invalid argument "xml" for "-o, --output" flag: use yaml or json`,
		"run plan /dev/null":                                "there is no Run in /dev/null: name a file that has one",
		"shell nvidia-smi":                                  "write the command after --: mlbatch shell -- nvidia-smi",
		"shell --idle=1s":                                   "--idle is shorter than a minute: write a time such as 30m",
		"shell":                                             "the settings are wrong: containerImage is missing",
		"shell --nodes=2 --image=a":                         "a shell has one pod, and not 2: remove numPods",
		"shell --image=a --kubeconfig=/no/such/file":        "cannot find the cluster: check --kubeconfig and --context",
		"run plan ../../samples/codeflare/digits.yaml --kubeconfig=testdata/nobody.yaml": "cannot list the RunSizeConfigurations: ",
		"run plan ../../samples/codeflare/digits.yaml --kubeconfig=/no/such/file":        "cannot find the cluster: check --kubeconfig and --context",
		"run submit":                  "name the files of the Runs: mlbatch run submit FILE…",
		"run submit /no/such/file":    "cannot read the manifests: open /no/such/file",
		"run list now":                `unknown command "now" for "mlbatch run list": see 'mlbatch run list --help'`,
		"run list -A -n blue":         "--namespace and --all-namespaces exclude each other: remove one of them",
		"run list -o xml":             `invalid argument "xml" for "-o, --output" flag: use table, wide, json or yaml`,
		"run status":                  "name one Run: mlbatch run status NAME",
		"run status a -o wide":        `invalid argument "wide" for "-o, --output" flag: use table, json or yaml`,
		"run logs":                    "name one Run: mlbatch run logs NAME",
		"run logs a b":                "name one Run: mlbatch run logs NAME",
		"run logs a --worker=-1":      "--rank is negative: ranks are counted from 0",
		"run logs a --worker=0 --all": "if any flags in the group [rank index pod all] are set none of the others can be",
		"run cancel":                  "name one Run: mlbatch run cancel NAME",
		"run retry a b":               "name one Run: mlbatch run retry NAME",
		"run retry a --kubeconfig=testdata/nobody.yaml":             "cannot get runs in namespace default: check --kubeconfig and --context: ",
		"logs a --rank=-1 --kubeconfig=testdata/nobody.yaml":        "--rank is negative: ranks are counted from 0",
		"logs a --tail=-1 --kubeconfig=testdata/nobody.yaml":        "--tail is negative: leave it out for all lines",
		"logs a --since=0 --kubeconfig=testdata/nobody.yaml":        "--since must be a second or longer, such as 10m",
		"list --as-group=x --kubeconfig=testdata/nobody.yaml":       "--as-group needs a user: add --as USER",
		"components --as-group=x --kubeconfig=testdata/nobody.yaml": "--as-group needs a user: add --as USER",
		"run list --kubeconfig=/no/such/file":                       "cannot find the cluster: check --kubeconfig and --context",
		"run submit --wiat a":                                       "unknown flag: --wiat: see 'mlbatch run submit --help'",
		"why":                                                       "name one AppWrapper, Run or job: mlbatch why NAME",
		"why a -o wide":                                             `invalid argument "wide" for "-o, --output" flag: use table, json or yaml`,
		"why a --kubeconfig=/no/such/file":                          "cannot find the cluster: check --kubeconfig and --context",
		"why job/a --kubeconfig=testdata/nobody.yaml":               "cannot get jobs in namespace default: check --kubeconfig and --context: ",
		"why aw/a --kubeconfig=testdata/nobody.yaml":                "cannot get appwrappers in namespace default: check --kubeconfig and --context: ",
		"list now":                        `unknown command "now" for "mlbatch list": see 'mlbatch list --help'`,
		"list -o csv":                     `invalid argument "csv" for "-o, --output" flag: use table, wide, json or yaml`,
		"list -A -n blue":                 "--namespace and --all-namespaces exclude each other: remove one of them",
		"list --kubeconfig=/no/such/file": "cannot find the cluster: check --kubeconfig and --context",
		"list -n a --kubeconfig=testdata/nobody.yaml": "cannot list appwrappers in namespace a: check --kubeconfig and --context: ",
		"status":           "name one AppWrapper, Run or job: mlbatch status NAME",
		"status a -o wide": `invalid argument "wide" for "-o, --output" flag: use table, json or yaml`,
		"status a -n b --kubeconfig=testdata/nobody.yaml": "cannot get appwrappers in namespace b: check --kubeconfig and --context: ",
		"wait a b": "name one AppWrapper, Run or job: mlbatch wait NAME",
		"cancel pod/x --kubeconfig=testdata/nobody.yaml": `cannot read "pod/x": write NAME or KIND/NAME; kinds are appwrapper, run, job, `,
		"top -o csv":                              `invalid argument "csv" for "-o, --output" flag: use table, wide, json or yaml`,
		"top --kubeconfig=testdata/nobody.yaml":   "cannot list clusterqueues: check --kubeconfig and --context: ",
		"usage -o wide":                           `invalid argument "wide" for "-o, --output" flag: use table, csv, json or yaml`,
		"usage --by node":                         `unknown --by "node": use team, user, queue, cause or appwrapper`,
		"usage --since=-1h":                       `invalid argument "-1h" for "--since" flag: write a time that is longer than 0, such as 12h or 7d`,
		"usage --since=0d":                        `invalid argument "0d" for "--since" flag: write a time that is longer than 0`,
		"usage --since=-7d":                       `invalid argument "-7d" for "--since" flag: write a time that is longer than 0`,
		"usage --since=99999999999d":              `invalid argument "99999999999d" for "--since" flag: write a time that is longer than 0`,
		"usage --since=lately":                    `invalid argument "lately" for "--since" flag: write a time that is longer than 0`,
		"usage --kubeconfig=testdata/nobody.yaml": "cannot list appwrappers in all namespaces: check --kubeconfig and --context: ",
		"check -o csv":                            `invalid argument "csv" for "-o, --output" flag: use table, wide, json or yaml`,
		"check --fail-on=bad":                     `unknown severity "bad": use error, warning or note`,
		"check --kubeconfig=/no/such/file":        "cannot find the cluster: check --kubeconfig and --context",
		"check --kubeconfig=testdata/nobody.yaml": "cannot list deployments: check --kubeconfig and --context: ",
		"logs":                                "name one AppWrapper, Run or job: mlbatch logs NAME",
		"logs a --all --rank=1":               "if any flags in the group [rank index pod all] are set none of the others can be",
		"retry a --kubeconfig=/no/such/file":  "cannot find the cluster: check --kubeconfig and --context",
		"submit settings.yaml":                "cannot read the settings: open settings.yaml",
		"submit -f /no/such/file":             "cannot read the settings: open /no/such/file",
		"submit -f /dev/null":                 "the settings are wrong: jobName is missing: set the name of the job",
		"submit -f /dev/null --set a":         `cannot read --set a: key "a" has no value`,
		"submit -f /dev/null --set numPods=x": "the settings are wrong: numPods: is a text, and must be a whole number",
		"submit -f /dev/null --set jobName=a,containerImage=b --kubeconfig=/no/such/file": "cannot find the cluster: check --kubeconfig and --context",
	} {
		t.Run(line, func(t *testing.T) {
			home(t)
			out, progress, err := command(t, strings.Fields(line)...)
			wording.OneSentence(t, out+progress, err, want)
		})
	}
}

func TestWithoutAKubeconfigTheSentenceSaysWhereOneWasLookedFor(t *testing.T) {
	for _, line := range []string{"components", "uninstall", "audit", "submit -f /dev/null --set jobName=a,containerImage=b", "run list", "run logs a", "run cancel a"} {
		home(t)
		t.Setenv("KUBECONFIG", "/no/such/file")
		_, _, err := command(t, strings.Fields(line)...)
		if want := "cannot find the cluster: there is none in /no/such/file: name a kubeconfig with --kubeconfig or KUBECONFIG"; err == nil || err.Error() != want {
			t.Errorf("mlbatch %s: got %v, want %s", line, err, want)
		}
	}
}

// They say what is left, and how to resume.
func TestErrorsOfInterruptedSubcommandsAreKept(t *testing.T) {
	for _, kept := range []error{install.ErrInterrupted, submit.ErrInterrupted, runs.ErrInterrupted} {
		p := program()
		p.Root = func(string) *cobra.Command {
			return &cobra.Command{RunE: func(*cobra.Command, []string) error { return fmt.Errorf("%w in step 2", kept) }}
		}
		ctx, interrupt := context.WithCancel(t.Context())
		interrupt()
		if err := p.Run(ctx, nil, io.Discard, io.Discard); err == nil || err.Error() != kept.Error()+" in step 2" {
			t.Errorf("%q becomes %v", kept, err)
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
