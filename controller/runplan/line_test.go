// SPDX-License-Identifier: Apache-2.0

package runplan_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// commandOf is the command of the first pods of a plan, as Kubernetes starts it.
func commandOf(t *testing.T, in runplan.Input) []string {
	t.Helper()
	planned, problems := runplan.Plan(in)
	if planned == nil {
		t.Fatal(problems)
	}
	command := decoded(t, planned.AppWrapper)[0].template.Spec.Containers[0].Command
	for i := range command {
		command[i] = expanded(command[i])
	}
	return command
}

func TestTorchrunStartsTheProgram(t *testing.T) {
	for name, row := range map[string]struct{ command, options, want string }{
		"a script":                         {"train.py", "", "train.py"},
		"with options":                     {"train.py --a", "--b  c", "train.py --a --b  c"},
		"that python starts":               {"python train.py", "", "train.py"},
		"that a version of it starts":      {"python3.12  train.py", "", "train.py"},
		"without a buffer":                 {"python3 -u train.py", "", "train.py"},
		"that a python somewhere starts":   {"/opt/venv/bin/python train.py", "", "train.py"},
		"that torchrun starts":             {"torchrun train.py", "", "train.py"},
		"a module":                         {"python -u -m digits.train", "", "-m digits.train"},
		"a script whose name looks alike":  {"python_train.py -u", "", "python_train.py -u"},
		"a script that is an option's":     {"python3 -usual.py", "", "-usual.py"},
		"options on a line of their own":   {"train.py\n", "\n --a\n", "train.py --a"},
		"blanks around it":                 {"  python train.py \n", " \n", "train.py"},
		"what only options name":           {"python", "train.py", "train.py"},
		"what the shell of the pod reads":  {"$HOME/train.py", `"$(date)" '$$' ü`, `$HOME/train.py "$(date)" '$$' ü`},
		"an option that looks like python": {"train.py", "python3 -u", "train.py python3 -u"},
	} {
		t.Run(name, func(t *testing.T) {
			command := commandOf(t, given(func(app *v1alpha1.Application, _ *v1alpha1.Run) {
				app.Spec.Command, app.Spec.Options = row.command, row.options
			}))
			const launcher = `torchrun --nnodes=${WORLD_SIZE} --node_rank=${RANK} --nproc_per_node=1 --rdzv_id=101 --rdzv_endpoint="${MASTER_ADDR}:${MASTER_PORT}" `
			if got, is := strings.CutPrefix(command[2], launcher); !is || got != row.want {
				t.Errorf("got %q, want %q", command[2], row.want)
			}
		})
	}
}

// A real shell runs the command of a pod, and prints what the author wrote.
func TestAShellRunsTheLineAsItIsWritten(t *testing.T) {
	for name, row := range map[string]struct{ command, options, want string }{
		"words":                      {"printf '<%s>'", `a "b  c" 'd"e'`, `<a><b  c><d"e>`},
		"dollars":                    {"printf '<%s>'", `'$(x)' '$$' "$((1 + 1))" "$0" \$HOME`, `<$(x)><$$><2><bash><$HOME>`},
		"several lines":              {"set -e\nX=1\necho $X\n", "2\n", "1 2\n"},
		"what only bash understands": {"[[ a == a ]] && A=(1 2) && echo", `"${A[1]}"`, "2\n"},
		"backticks and Unicode":      {"echo `echo ü`", ", ;", "ü ,\n"},
		"a status":                   {"echo a; exit 3", "", "a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			command := commandOf(t, given(func(app *v1alpha1.Application, _ *v1alpha1.Run) {
				app.Spec.API, app.Spec.Command, app.Spec.Options = v1alpha1.APIShell, row.command, row.options
			}))
			shell := exec.CommandContext(t.Context(), command[0], command[1:]...) //nolint:gosec // It is what pods run.
			out, _ := shell.Output()
			got := string(out)
			if want := strings.ReplaceAll(row.want, "<bash>", "<"+bash(t)+">"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if code := shell.ProcessState.ExitCode(); name == "a status" && code != 3 {
				t.Errorf("the exit code is %d", code)
			}
		})
	}
}

// bash is the path by which a shell finds bash.
func bash(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The same bytes each time, because a Run's AppWrapper is applied by them.
func TestTheSameInputGivesTheSameBytes(t *testing.T) {
	input := func() runplan.Input {
		return given(func(app *v1alpha1.Application, _ *v1alpha1.Run) {
			app.Spec.Env = map[string]v1alpha1.Text{"C": "", "A": "", "B": "", "E": "", "D": ""}
		})
	}
	first, _ := runplan.Plan(input())
	want, err := json.Marshal(first.AppWrapper)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, _ := runplan.Plan(input())
		if got, err := json.Marshal(again.AppWrapper); err != nil || string(got) != string(want) {
			t.Fatalf("got %s, want %s (%v)", got, want, err)
		}
	}
}
