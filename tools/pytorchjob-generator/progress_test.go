// SPDX-License-Identifier: Apache-2.0

package generator_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A shell runs the probe. It fails only if the program has written to its file, and then no more.
func TestTheProbeKnowsAHang(t *testing.T) {
	file := filepath.Join(t.TempDir(), "progress")
	pod := rendered(t, map[string]any{"jobName": "a", "containerImage": "a", "progress": map[string]any{"file": file}}).pods[0]
	command := pod.Spec.Containers[0].ReadinessProbe.Exec.Command
	ready := func() bool { return exec.Command(command[0], command[1:]...).Run() == nil }
	if !ready() {
		t.Error("it is an alarm that there is no file")
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for age, want := range map[time.Duration]bool{0: true, 10 * time.Second: true, time.Minute: false, -2 * time.Hour: true} {
		written := time.Now().Add(-age)
		if err := os.Chtimes(file, written, written); err != nil {
			t.Fatal(err)
		}
		if ready() != want {
			t.Errorf("written %s ago, the pod is ready: %t, want %t", age, !want, want)
		}
	}
}

// On a volume there may be a file of an earlier attempt, whose age says nothing of this one.
func TestAPodBeginsWithoutAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "progress")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	settings := map[string]any{"jobName": "a", "containerImage": "a", "mainProgram": "train.py", "progress": map[string]any{"file": file}}
	for range 2 { // the second one begins without a file
		if out, code := execute(t, "sh", rendered(t, settings).script()); code != 0 {
			t.Errorf("it ended with %d: %s", code, out)
		}
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file is still there: %v", err)
		}
	}
}
