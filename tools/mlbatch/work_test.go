// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/test/wording"
)

// deletable is a world in which train7 can be deleted.
func deletable() map[string]string {
	world := busyNamespace()
	world["DELETE "+wrappers+"/train7"] = `{"kind":"Status","apiVersion":"v1","status":"Success"}`
	return world
}

// answer runs a command line, and answers its question.
func answer(t *testing.T, world map[string]string, line, says string) (out, progress string, requests []string, err error) {
	t.Helper()
	home(t)
	kubeconfig, asked := whyServer(t, world)
	asking := program()
	asking.Root = func(version string) *cobra.Command {
		root := rootCommand(version)
		root.SetIn(strings.NewReader(says))
		return root
	}
	var o, p bytes.Buffer
	err = asking.Run(t.Context(), append(strings.Fields(line), "--kubeconfig="+kubeconfig), &o, &p)
	return o.String(), p.String(), asked(), err
}

func TestCancelAsksFirst(t *testing.T) {
	const question = "Delete AppWrapper train7 in namespace blue, which is Suspended, and all that it has created? [y/N] "
	for says, sure := range map[string]bool{"y\n": true, "YES\n": true, "": false, "n\n": false, "yesterday\n": false} {
		out, progress, requests, err := answer(t, deletable(), "cancel train7", says)
		deleted := strings.HasPrefix(requests[len(requests)-1], "DELETE ")
		if progress != question || deleted != sure || sure != (err == nil) || sure != (out == "AppWrapper train7 was deleted in namespace blue\n") {
			t.Errorf("after %q: got %q, %q, %v; deleted: %v", says, out, progress, err, deleted)
		}
		if !sure {
			wording.Wanted(t, err, "nothing was cancelled: answer yes, or use --yes")
		}
	}
	out, progress, _, err := answer(t, deletable(), "cancel train7 --yes", "")
	if err != nil || progress != "" || out != "AppWrapper train7 was deleted in namespace blue\n" {
		t.Errorf("with --yes: got %q, %q, %v", out, progress, err)
	}
}

// All names are looked up before anything is deleted, and what goes wrong with one leaves the others.
func TestCancelTakesSeveralNames(t *testing.T) {
	out, progress, requests, err := answer(t, deletable(), "cancel train7 bare aw/train7 train7", "y\n")
	if progress != "Cancel these 2, with all that they have created: AppWrapper train7 (Suspended), Job bare (Admitted)? [y/N] " || out != "AppWrapper train7 was deleted in namespace blue\n" {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
	wording.Wanted(t, err, "delete jobs in namespace blue")
	if last := requests[len(requests)-1]; !strings.HasPrefix(last, "DELETE ") || !strings.Contains(last, "bare") {
		t.Errorf("the last request is %s", last)
	}
	out, progress, requests, err = answer(t, deletable(), "cancel train7 trian7 --yes", "")
	wording.OneSentence(t, out+progress, err, "there is no AppWrapper, Run or queued job trian7 in namespace blue")
	if strings.Contains(strings.Join(requests, "\n"), "DELETE") {
		t.Errorf("something was deleted: %q", requests)
	}
}

func TestWhatIsWrongWithSeveralIsOneLine(t *testing.T) {
	out, progress, _, err := ask(t, busyNamespace(), "retry train7 train8 --annotate retryLimit=0")
	wording.OneSentence(t, out+progress, err, "AppWrapper train7 has not ended: it is Suspended: wait for its end with 'mlbatch wait train7'; AppWrapper train8 has not ended: ")
}

func TestCommandsAboutOnePieceOfWork(t *testing.T) {
	for line, row := range map[string]struct{ out, says string }{
		"status train7":                      {out: "AppWrapper train7 in namespace blue is Suspended.\nQuotaLent: "},
		"status survey":                      {out: "Run survey in namespace blue is Queued.\n"},
		"status bare":                        {out: "Job bare in namespace blue is admitted.\n"},
		"status train7 -o json":              {out: `"state": "Suspended"`},
		"status train7 -o yaml":              {out: "\n  state: Suspended\n"},
		"status trian7":                      {says: "there is no AppWrapper, Run or queued job trian7 in namespace blue: did you mean train7?"},
		"wait trian7":                        {says: "there is no AppWrapper, Run or queued job trian7 in namespace blue: did you mean train7?"},
		"wait job/loose":                     {says: "Job loose is in no queue, so nothing says when it ends: use 'kubectl wait'"},
		"cancel job/x -n red":                {says: "there is no job x in namespace red: is the namespace right?"},
		"logs bare":                          {says: "Job bare has no pods yet: it is Admitted: see 'mlbatch why bare'"},
		"exec train7":                        {says: "name the work, and after -- the command: mlbatch exec NAME -- COMMAND"},
		"exec train7 ls":                     {says: "name the work, and after -- the command: mlbatch exec NAME -- COMMAND"},
		"logs train7 --attempt 2":            {says: "AppWrapper train7 has no attempt 2: the present one is 1"},
		"logs train7 --attempt 0":            {says: "attempts are counted from 1: leave --attempt out for the present one"},
		"logs train7":                        {says: "AppWrapper train7 has no pods yet: it is Suspended: see 'mlbatch why train7'"},
		"retry":                              {says: "name AppWrappers, Runs or jobs: mlbatch retry NAME…"},
		"cancel":                             {says: "name AppWrappers, Runs or jobs: mlbatch cancel NAME…"},
		"retry train7 --annotate=retryLimit": {says: "cannot read --annotate retryLimit: write NAME=VALUE, such as retryLimit=0, or NAME- to remove it"},
		"retry train7":                       {says: "AppWrapper train7 has not ended: it is Suspended: wait for its end with 'mlbatch wait train7'"},
	} {
		t.Run(line, func(t *testing.T) {
			out, progress, requests, err := ask(t, busyNamespace(), line)
			if len(requests) > 12 {
				t.Errorf("%d requests: %q", len(requests), requests)
			}
			if row.says != "" {
				wording.OneSentence(t, out+progress, err, row.says)
				return
			}
			if err != nil || !strings.Contains(out, row.out) {
				t.Errorf("got %q, %v", out, err)
			}
		})
	}
}

func TestACommandFollowsTheDashes(t *testing.T) {
	home(t)
	kubeconfig, _ := whyServer(t, busyNamespace())
	for says, args := range map[string][]string{
		"AppWrapper train7 has no pods yet: it is Suspended: see 'mlbatch why train7'":          {"train7", "--", "ls", "-l"},
		"name the work, and after -- the command: mlbatch exec NAME -- COMMAND":                 {"train7", "--"},
		"if any flags in the group [rank pod] are set none of the others can be; [pod rank] we": {"train7", "--rank=1", "--pod=p", "--", "ls"},
	} {
		out, progress, err := command(t, append([]string{"exec", "--kubeconfig=" + kubeconfig}, args...)...)
		wording.OneSentence(t, out+progress, err, says)
	}
}

// A shell that has a terminal waits for a terminal's end of input, which a pipe does not have.
func TestAPipeIsNoTerminal(t *testing.T) {
	world := busyNamespace()
	world["/api/v1/namespaces/blue/pods"] = list("v1", "Pod", storedPod)
	home(t)
	kubeconfig, asked := whyServer(t, world)
	_, progress, _ := command(t, "exec", "--kubeconfig="+kubeconfig, "bare", "-it", "--", "sh") // the server runs no commands
	requests := asked()
	last := requests[len(requests)-1]
	if !strings.Contains(progress, "note: standard input is no terminal, so the command gets none\n") || !strings.Contains(last, "stdin=true") || strings.Contains(last, "tty=true") {
		t.Errorf("got %q, %q", progress, requests)
	}
}

// cp and port-forward ask for the subresources of the pod that exec would choose.
func TestAPodIsReachedByTheNameOfItsWork(t *testing.T) {
	for line, asked := range map[string]string{
		"cp bare:/out .":          "/api/v1/namespaces/blue/pods/p/exec?command=tar&command=-cf&command=-&command=-C&command=%2F&command=.%2Fout&container=pytorch",
		"cp testdata bare:/in/":   "/api/v1/namespaces/blue/pods/p/exec?command=tar&command=-xmf&command=-&command=-C&command=%2Fin&container=pytorch&stderr=true&stdin=true",
		"port-forward bare :8888": "/api/v1/namespaces/blue/pods/p/portforward",
	} {
		world := busyNamespace()
		world["/api/v1/namespaces/blue/pods"] = list("v1", "Pod", storedPod)
		out, progress, requests, err := ask(t, world, line) // the server does neither
		if last := requests[len(requests)-1]; err == nil || out+progress != "" || !strings.Contains(last, asked) {
			t.Errorf("%s: got %q, %q, %v; asked %q", line, out, progress, err, requests)
		}
	}
}

// Without the right to read AppWrappers nobody knows whether there is one.
func TestWithoutRightsAnUnknownNameIsNotSaidToBeUnknown(t *testing.T) {
	for _, line := range []string{"why a", "status a", "wait a", "cancel a", "retry a"} {
		out, progress, _, err := ask(t, busyNamespace(), line, wrappers, inBlue, runsOfBlue)
		wording.OneSentence(t, out+progress, err, "you may not get appwrappers in namespace blue: ask an administrator for a role with this right")
	}
}

func TestAShellCompletesFurtherNames(t *testing.T) {
	for verb, further := range map[string]bool{"cancel": true, "retry": true, "status": false} {
		home(t)
		kubeconfig, _ := whyServer(t, busyNamespace())
		out, _, err := command(t, "__complete", verb, "--kubeconfig="+kubeconfig, "bare", "train0", "")
		if err != nil || strings.HasPrefix(out, "train1\n") != further {
			t.Errorf("%s: got %.100s, %v", verb, out, err)
		}
	}
}

func TestLogsAreReadFromTheCluster(t *testing.T) {
	world := busyNamespace()
	world["/api/v1/namespaces/blue/pods"], world["/api/v1/namespaces/blue/pods/p/log"] = list("v1", "Pod", storedPod), "epoch 1\n"
	out, progress, requests, err := ask(t, world, "logs bare -f")
	last := "GET /api/v1/namespaces/blue/pods/p/log?container=pytorch&follow=true"
	if err != nil || out != "epoch 1\n" || progress != "" || requests[len(requests)-1] != last {
		t.Errorf("got %q, %q, %q, %v", out, progress, requests, err)
	}
}

func TestAShellCompletesNames(t *testing.T) {
	for _, verb := range []string{"why", "status", "wait", "cancel", "retry", "logs", "exec"} {
		home(t)
		kubeconfig, asked := whyServer(t, busyNamespace())
		out, _, err := command(t, "__complete", verb, "--kubeconfig="+kubeconfig, "train49")
		if err != nil || !strings.HasPrefix(out, "bare\ntrain0\ntrain1\n") || !strings.HasSuffix(out, "\n:4\n") || len(asked()) != 3 {
			t.Errorf("%s: got %.100s, %v, %q", verb, out, err, asked())
		}
	}
}
