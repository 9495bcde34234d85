// SPDX-License-Identifier: Apache-2.0

package generator_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// torchrun replaces the real one: it prints its arguments.
const torchrun = `#!/bin/sh
echo "RANK=$RANK"
for word in "$@"; do echo "<$word>"; done
exit "${EXIT:-0}"
`

const calledWith = "<--nnodes=2>\n<--node_rank=1>\n<--rdzv_id=101>\n<--rdzv_endpoint=host:23456>\n"

// A shell runs the scripts of the pods, and they do what the settings describe.
func TestScripts(t *testing.T) {
	for name, row := range map[string]struct {
		settings map[string]any
		// in is the shell to use; if empty, the result must be the same in two shells.
		in string
		// exit is the exit code of torchrun.
		exit string
		// the end of the script's output, and its exit code.
		says string
		code int
	}{
		"a main program gets its rank":            {settings: map[string]any{"mainProgram": "train.py --lr 1"}, says: "RANK=1\n" + calledWith + "<train.py>\n<--lr>\n<1>\n"},
		"the exit code is that of the program":    {settings: map[string]any{"mainProgram": "train.py"}, exit: "7", says: "<train.py>\n", code: 7},
		"several lines are one command":           {settings: map[string]any{"mainProgram": "train.py\n  --a 1 \\\n\n  # why\n  --b 2 # and how\n"}, says: "<train.py>\n<--a>\n<1>\n<--b>\n<2>\n"},
		"a line break in quotes is kept":          {settings: map[string]any{"mainProgram": "train.py 'a\n  b' \"c\n# d\" \\\n e\\ f"}, says: "<train.py>\n<a\n  b>\n<c\n# d>\n<e f>\n"},
		"quotes in quotes are kept":               {settings: map[string]any{"mainProgram": "train.py '\"\n' \"it's\n\" \"a \\\" 'b\n\" c"}, says: "<train.py>\n<\"\n>\n<it's\n>\n<a \" 'b\n>\n<c>\n"},
		"variables are expanded":                  {settings: map[string]any{"setupCommands": []any{"X=1"}, "mainProgram": "$X-train.py a#b"}, says: "<1-train.py>\n<a#b>\n"},
		"a comment at the end is dropped":         {settings: map[string]any{"mainProgram": "# first\ntrain.py\n# don't\n# last"}, says: calledWith + "<train.py>\n"},
		"setup commands form one script":          {settings: map[string]any{"setupCommands": []any{"for i in 1 2; do", "  echo $i", "done", "cat <<EOF\n $i\nEOF\n", false, nil}}, says: "1\n2\n 2\n", code: 1},
		"a setup command that fails ends the job": {settings: map[string]any{"setupCommands": []any{"cd /", "sh -c 'exit 42'", "echo no"}, "mainProgram": "train.py"}, says: "NVME_MOUNT_PATH=\n", code: 42},
		"so does one of several lines":            {settings: map[string]any{"setupCommands": []any{"sh -c 'exit 3'\necho no"}}, says: "NVME_MOUNT_PATH=\n", code: 3},
		"unless it is before ||":                  {settings: map[string]any{"setupCommands": []any{"false || echo yes"}}, says: "yes\n"},
		"unless stopOnSetupFailure is false":      {settings: map[string]any{"stopOnSetupFailure": false, "setupCommands": []any{"false", "echo on"}}, says: "on\n"},
		"without setup commands nothing changes":  {settings: map[string]any{"stopOnSetupFailure": true, "mainProgram": "train.py; echo $?"}, exit: "5", says: "<train.py>\n5\n"},
		"setup options do not affect the program": {settings: map[string]any{"setupCommands": []any{"cd /"}, "mainProgram": "train.py; rc=$?; echo $rc; exit $rc"}, exit: "5", says: "<train.py>\n5\n", code: 5},
		"nor its pipes":                           {settings: map[string]any{"setupCommands": []any{"cd /"}, "mainProgram": "train.py | cat; echo $?"}, exit: "5", says: "<train.py>\n0\n"},
		"unless the author sets -e":               {settings: map[string]any{"setupCommands": []any{"set -e"}, "mainProgram": "train.py; echo no"}, exit: "5", says: "<train.py>\n", code: 5},
		"or errexit":                              {settings: map[string]any{"setupCommands": []any{"set -u -o errexit"}, "mainProgram": "train.py; echo no"}, exit: "5", says: "<train.py>\n", code: 5},
		"or pipefail":                             {in: "bash", settings: map[string]any{"setupCommands": []any{"set -o pipefail"}, "mainProgram": "train.py | cat"}, exit: "5", says: "<train.py>\n", code: 5},
		"so does a setup command in a pipe":       {in: "bash", settings: map[string]any{"setupCommands": []any{"sh -c 'exit 3' | cat", "echo no"}}, says: "NVME_MOUNT_PATH=\n", code: 3},
		"the shell expands dollars":               {settings: map[string]any{"setupCommands": []any{"X=$(echo $(echo a))", "Y='$$ $$$ $(RANK) $$(RANK) $( $'"}, "mainProgram": "$X.py $(echo b) \"$Y\""}, says: "<a.py>\n<b>\n<$$ $$$ $(RANK) $$(RANK) $( $>\n"},
		"sakkara sets the rank":                   {settings: map[string]any{"schedulerName": "sakkara", "mainProgram": "train.py"}, says: "RANK=5\n" + strings.Replace(calledWith, "rank=1", "rank=5", 1) + "<train.py>\n"},
		"so does sakkara-scheduler":               {settings: map[string]any{"schedulerName": "sakkara-scheduler", "mainProgram": "train.py"}, says: "RANK=5\n" + strings.Replace(calledWith, "rank=1", "rank=5", 1) + "<train.py>\n"},
		"one process starts for each GPU":         {settings: map[string]any{"numGpusPerPod": 4, "mainProgram": "train.py"}, says: "<--node_rank=1>\n<--nproc_per_node=4>\n<--rdzv_id=101>\n<--rdzv_endpoint=host:23456>\n<train.py>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			row.settings["jobName"], row.settings["containerImage"] = "a", "b"
			script := rendered(t, row.settings).script()
			for _, shell := range []string{"sh", "bash"} {
				if row.in != "" && row.in != shell {
					continue
				}
				out, code := execute(t, shell, script, "EXIT="+row.exit)
				if !strings.HasSuffix(out, row.says) || code != row.code {
					t.Errorf("%s: code %d, not %d (-want +got)\n%s", shell, code, row.code, cmp.Diff(row.says, out))
				}
			}
		})
	}
}

// execute runs a script as a pod would, and returns its output and its exit code.
func execute(t *testing.T, shell, script string, variables ...string) (string, int) {
	t.Helper()
	programs := t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "torchrun"), []byte(torchrun), 0o755); err != nil { //nolint:gosec // It must be executable.
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), shell, "-c", script)
	command.Env = append(variables, "PATH="+programs+":"+os.Getenv("PATH"),
		"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=host", "MASTER_PORT=23456", "SAKKARA_RANK=5")
	out, err := command.Output()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return string(out), command.ProcessState.ExitCode()
}
