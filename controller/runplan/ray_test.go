// SPDX-License-Identifier: Apache-2.0

package runplan_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// rayRun is a Run of api ray, which a test changes.
func rayRun(change func(*v1alpha1.Application)) runplan.Input {
	return given(func(app *v1alpha1.Application, _ *v1alpha1.Run) {
		app.Spec.API = v1alpha1.APIRay
		change(app)
	})
}

// rayParts are the files of the command and the RayJob of a plan.
func rayParts(t failer, in runplan.Input) (files map[string]string, job *rayv1.RayJob) {
	t.Helper()
	planned, problems := runplan.Plan(in)
	if planned == nil {
		t.Fatalf("%v", problems)
	}
	components := planned.AppWrapper.Spec.Components
	config, job := &corev1.ConfigMap{}, &rayv1.RayJob{}
	for i, into := range []any{config, job} {
		if err := json.Unmarshal(components[len(components)-2+i].Template.Raw, into); err != nil {
			t.Fatalf("%v", err)
		}
	}
	return config.Data, job
}

// A real bash runs the file as Ray does, and prints what the author wrote.
func TestRayRunsTheLineAsItIsWritten(t *testing.T) {
	for name, row := range map[string]struct{ command, options, want string }{
		"words":                 {"printf '<%s>'", `a "b  c" 'd"e'`, `<a><b  c><d"e>`},
		"dollars":               {"printf '<%s>'", `'$(x)' '$$' "$((1 + 1))" \$HOME`, `<$(x)><$$><2><$HOME>`},
		"several lines":         {"set -e\nX=1\necho $X\n", "2\n", "1 2\n"},
		"backticks and Unicode": {"echo `echo ü`", ", ;", "ü ,\n"},
		"what only bash knows":  {"[[ a == a ]] && A=(1 2) && echo", `"${A[1]}"`, "2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			files, job := rayParts(t, rayRun(func(app *v1alpha1.Application) { app.Spec.Command, app.Spec.Options = row.command, row.options }))
			folder := written(t, files)
			words := strings.Fields(strings.ReplaceAll(job.Spec.Entrypoint, "/codeflare/command", folder))
			got, err := exec.CommandContext(t.Context(), words[0], words[1:]...).Output() //nolint:gosec // It is what Ray runs.
			if err != nil || string(got) != row.want {
				t.Errorf("got %q (%v), want %q", got, err, row.want)
			}
		})
	}
}

// written has files in a folder, as a pod has those of a ConfigMap.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// Ray reads the file as YAML.
func TestRequirementsArriveAsTheyAreWritten(t *testing.T) {
	schema := compiled(t)
	rapid.Check(t, func(t *rapid.T) {
		app := rayRun(func(app *v1alpha1.Application) {
			app.Spec.Requirements = rapid.SliceOfN(rapid.Map(rapid.StringMatching("[!-~\u00a5\u2020][ -~\u00a1-\u00a5\u2020-\u2027\U0001F600]{0,30}"),
				func(text string) v1alpha1.Requirement { return v1alpha1.Requirement(text) }), 1, 64).Draw(t, "requirements")
		})
		stores(t, schema, v1alpha1.ApplicationKind, app.Application)
		files, _ := rayParts(t, app)
		var got struct{ Pip []v1alpha1.Requirement }
		if err := yaml.UnmarshalStrict([]byte(files["environment.yaml"]), &got); err != nil {
			t.Fatalf("%v", err)
		}
		if diff := cmp.Diff(app.Application.Spec.Requirements, got.Pip); diff != "" {
			t.Fatalf("they differ:\n%s", diff)
		}
	})
}

// fakeRay writes down what it is asked for, and answers from files: the code and the words of each
// subcommand. status fails until submit has been called.
const fakeRay = `#!/bin/sh
echo "$*" >>"$FAKE/calls"
if [ "$2" = status ] && ! grep -q "^job submit" "$FAKE/calls"; then exit "$FAKE_NEW"; fi
[ ! -f "$FAKE/$2" ] || cat "$FAKE/$2"
[ "$2" != logs ] || exit "$FAKE_LOGS"
`

func TestTheSubmitterEndsAsTheLineDoes(t *testing.T) {
	const status = "job status --address http://head:8265 id-1\n"
	const submit = "job submit --address http://head:8265 --submission-id id-1 --no-wait --runtime-env /codeflare/command/environment.yaml -- bash /codeflare/command/main\n"
	const logs = "job logs --address http://head:8265 --follow id-1\n"
	for name, row := range map[string]struct {
		end, isNew, logs string
		code             int
		calls            string
	}{
		"a success":                      {"Job 'id-1' succeeded", "1", "0", 0, status + submit + logs + status},
		"a failure with a code":          {"Job 'id-1' failed\nStatus message: Job entrypoint command failed with exit code 7, last available logs:\nexit code 9", "1", "0", 7, status + submit + logs + status},
		"a signal":                       {"Job 'id-1' failed\nStatus message: Job entrypoint command failed with exit code -9, last available logs:", "1", "0", 1, status + submit + logs + status},
		"a failure without a code":       {"Job 'id-1' failed\nStatus message: Failed to set up runtime environment", "1", "0", 1, status + submit + logs + status},
		"a stop":                         {"Job 'id-1' was stopped", "1", "0", 0, status + submit + logs + status},
		"one that was submitted already": {"Job 'id-1' succeeded", "0", "0", 0, status + logs + status},
		"a connection that breaks off":   {"Status for job 'id-1': RUNNING", "1", "3", 3, status + submit + logs},
	} {
		t.Run(name, func(t *testing.T) {
			_, job := rayParts(t, rayRun(func(*v1alpha1.Application) {}))
			command := job.Spec.SubmitterPodTemplate.Spec.Containers[0].Command
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "ray"), []byte(fakeRay), 0o700); err != nil { //nolint:gosec // It is a program.
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "status"), []byte(row.end), 0o600); err != nil {
				t.Fatal(err)
			}
			shell := exec.CommandContext(t.Context(), command[0], command[1], expanded(command[2])) //nolint:gosec // It is what pods run.
			shell.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "FAKE="+folder, "FAKE_NEW="+row.isNew, "FAKE_LOGS="+row.logs,
				"RAY_DASHBOARD_ADDRESS=head:8265", "RAY_JOB_SUBMISSION_ID=id-1")
			out, _ := shell.CombinedOutput()
			calls, err := os.ReadFile(filepath.Join(folder, "calls"))
			if diff := cmp.Diff(row.calls, string(calls)); diff != "" || err != nil {
				t.Errorf("it calls (%v):\n%s%s", err, diff, out)
			}
			if code := shell.ProcessState.ExitCode(); code != row.code {
				t.Errorf("it ends with %d, not %d: %s", code, row.code, out)
			}
		})
	}
}
