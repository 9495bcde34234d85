// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/test/patience"
)

// The pod of a shell ends when nobody has been in it for so long, and not before. Processes are files here.
func TestThePodOfAShellEndsWhenNobodyIsIn(t *testing.T) {
	for name, row := range map[string]struct {
		processes map[string]string
		ends      bool
	}{
		"nobody is in":   {processes: map[string]string{"1/status": "Name:\tsh\nPPid:\t0\n", "7/status": "Name:\tsleep\nPPid:\t1\n"}, ends: true},
		"somebody is in": {processes: map[string]string{"1/status": "Name:\tsh\nPPid:\t0\n", "8/status": "Name:\tbash\nPPid:\t0\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			script := strings.NewReplacer("/proc", write(t, row.processes), "sleep 5", "sleep 0.1").Replace(untilNobodyIsIn(2 * time.Second))
			if !row.ends { // it has to be there after twice as long; then somebody stops the job
				script = "( sleep 4; kill -TERM $$ ) & " + strings.Replace(script, "exit 0' TERM", "echo stopped; exit 0' TERM", 1)
			}
			ctx, cancel := patience.Context(t.Context())
			defer cancel()
			out, err := exec.CommandContext(ctx, "sh", "-c", script).CombinedOutput()
			want := map[bool]string{true: "nobody was here for 2s\n", false: "stopped\n"}[row.ends]
			if err != nil || string(out) != want {
				t.Errorf("%v: it prints %q, and not %q", err, out, want)
			}
		})
	}
}

func TestShell(t *testing.T) {
	j, err := Shell("0.0.1", map[string]any{"containerImage": "a", "numGpusPerPod": int64(1), "setupCommands": []any{"cd /data"}}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(j.Name(), "shell-") || !strings.Contains(j.Manifest, "cd /data\n") || !strings.Contains(j.Manifest, "-lt 3600 ]") ||
		j.AppWrapper().Annotations["workload.codeflare.dev.appwrapper/retryLimit"] != "0" {
		t.Error(j.Manifest)
	}
	for says, settings := range map[string]map[string]any{
		"the settings have mainProgram, but a shell runs no program: remove it": {"mainProgram": "a.py"},
		"the settings have backend, but a shell runs no program: remove it":     {"backend": "jobset"},
		"a shell has one pod, and not 2: remove numPods":                        {"numPods": int64(2)},
		"the settings are wrong: containerImage is missing":                     {"numPods": int64(1)},
	} {
		if _, err := Shell("0.0.1", settings, time.Hour); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("got %v, want %s", err, says)
		}
	}
}
