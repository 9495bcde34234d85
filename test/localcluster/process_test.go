// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// pidOf returns the pid of a program below the cluster's keeper; 0 if it does not run.
func (c cluster) pidOf(t *testing.T, program plan.Program) int {
	t.Helper()
	keeper := strconv.Itoa(c.keeper(t))
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		if parentOf(filepath.Base(process)) == keeper && strings.HasPrefix(string(command), program.Path+"\x00") {
			pid, _ := strconv.Atoi(filepath.Base(process))
			return pid
		}
	}
	return 0
}

// parentOf returns the pid of a process's parent; "" if there is no such process.
func parentOf(process string) string {
	stat, _ := os.ReadFile(filepath.Join("/proc", process, "stat"))
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return ""
	}
	return fields[1]
}

// processesOf returns the processes of a pod that run 'workload pause': the pod's program or
// its child.
func processesOf(pod *corev1.Pod) []string {
	var pids []string
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		exe, _ := os.Readlink(filepath.Join(process, "exe"))
		if strings.HasPrefix(string(command), "/workload\x00pause\x00") && strings.Contains(exe, "/"+string(pod.UID)+"/") {
			pids = append(pids, filepath.Base(process))
		}
	}
	return pids
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatal("there is nothing to kill")
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// inNetworkOf calls do in the network namespace of a process.
func inNetworkOf(pid int, do func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err == nil {
			defer network.Close()
			err = unix.Setns(int(network.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = do()
		}
		result <- err
	}()
	return <-result
}
