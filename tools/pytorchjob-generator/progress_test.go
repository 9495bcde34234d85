// SPDX-License-Identifier: Apache-2.0

package generator_test

import (
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
