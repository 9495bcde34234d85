// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/test/patience"
)

// Some clouds' hypervisors offer /dev/kvm without support by the processor.
func TestKVMIsUsedWhereTheProcessorHelps(t *testing.T) {
	open := func(string) error { return nil }
	closed := func(string) error { return os.ErrPermission }
	for name, c := range map[string]struct {
		cpuinfo string
		canOpen func(string) error
		want    bool
	}{
		"Intel":                       {"flags\t\t: fpu vmx sse\n", open, true},
		"AMD, as the last flag":       {"flags\t\t: fpu svm\n", open, true},
		"a device without the flag":   {"flags\t\t: fpu hypervisor svm_lock\n", open, false},
		"a flag without the device":   {"flags\t\t: fpu vmx sse\n", closed, false},
		"two processors, one a guest": {"flags\t\t: fpu\nflags\t\t: fpu vmx\n", open, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := accelerated(c.cpuinfo, c.canOpen); got != c.want {
				t.Errorf("accelerated: %t", got)
			}
		})
	}
}

func TestTheMachineHasNoNetworkAndCannotChangeWhatItReads(t *testing.T) {
	m := machine{shares: []share{{tag: "checkout", here: "/here"}, {tag: "carried", here: "/carried", writable: true}}}
	for name, accelerated := range map[string]bool{"emulated": false, "accelerated": true} {
		t.Run(name, func(t *testing.T) {
			m.accelerated = accelerated
			args := strings.Join(m.arguments(), " ")
			for _, want := range []string{
				"-nic none", "path=/here,mount_tag=checkout,security_model=none,multidevs=remap,readonly=on",
				"path=/carried,mount_tag=carried,security_model=none,multidevs=remap,readonly=off",
			} {
				if !strings.Contains(args, want) {
					t.Errorf("%s lacks %s", args, want)
				}
			}
			// A clock that counts instructions requires an emulated processor.
			if strings.Contains(args, "-icount") == accelerated {
				t.Errorf("wrong clock: %s", args)
			}
		})
	}
}

// qemu replaces QEMU by a script.
func qemu(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, qemuProgram), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestTheMachineIsEnded(t *testing.T) {
	for name, c := range map[string]struct {
		script, problem string
	}{
		"when the steps are done":   {`echo '{"step":"all","last":true}'; exec sleep 600`, ""},
		"when a step fails":         {`echo '{"step":"up","problem":"no"}'; exec sleep 600`, "up: no\nthe console is in dist/x.log"},
		"when the time is over":     {`exec sleep 600`, "the virtual machine was not done after 100ms; its console is in dist/x.log"},
		"and what it says is shown": {`echo 'no such CPU' >&2; exit 1`, "the virtual machine ended before its last step\nno such CPU\nthe console is in dist/x.log"},
	} {
		t.Run(name, func(t *testing.T) {
			qemu(t, c.script)
			timeout := time.Minute
			if strings.Contains(c.problem, "100ms") {
				timeout = 100 * time.Millisecond
			}
			began := time.Now()
			err := machine{console: "dist/x.log"}.run(t.Context(), timeout, io.Discard)
			if time.Since(began) > patience.For(30*time.Second) {
				t.Error("it was not stopped immediately")
			}
			if c.problem == "" && err != nil || c.problem != "" && (err == nil || err.Error() != c.problem) {
				t.Errorf("got %v, want %q", err, c.problem)
			}
		})
	}
}

func TestAMachineThatCannotStartIsAnError(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := (machine{}).run(t.Context(), time.Minute, io.Discard); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}
