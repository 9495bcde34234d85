// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package realfaults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// kubeletIsSilent: the kubelet does nothing until the node controller has noticed, and a bit longer. The programs of
// the node run on, so nothing may happen to any work.
func kubeletIsSilent(r *room) {
	r.Cleanup(func() {
		r.signal(unix.SIGCONT, r.isKubelet)
		r.finally("node is as good as new", r.nodeIsWhole)
	})
	r.signal(unix.SIGSTOP, r.isKubelet)
	r.Await("the node controller notices", func() error {
		n, err := r.node()
		if err == nil && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == corev1.TaintNodeUnreachable && t.Effect == corev1.TaintEffectNoExecute
		}) {
			err = fmt.Errorf("its taints are %v", n.Spec.Taints)
		}
		return err
	})
	time.Sleep(45 * time.Second) // longer than the grace of work that makes no progress
}

func (r *room) isKubelet(process string) bool {
	var keeper plan.Keeper
	r.Must(plan.Read(r.cluster.Dir(), plan.KeeperFile, &keeper))
	network := func(process string) string {
		of, _ := os.Readlink(filepath.Join(process, "ns", "net")) // it may have ended
		return of
	}
	return says(process, "comm") == "kubelet\n" && network(process) == network(fmt.Sprintf("/proc/%d", keeper.PID))
}

// signal sends a signal to the only process, by its folder in /proc, that is wanted.
func (r *room) signal(what unix.Signal, wanted func(process string) bool) {
	r.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	r.Must(err)
	found := slices.DeleteFunc(all, func(process string) bool { return !wanted(process) })
	if len(found) != 1 {
		r.Fatalf("%s is for one process, not for %q", unix.SignalName(what), found)
	}
	pid, err := strconv.Atoi(filepath.Base(found[0]))
	r.Must(err)
	r.Must(unix.Kill(pid, what))
}

// says is a file of a process; empty if the process has ended.
func says(process, file string) string {
	text, _ := os.ReadFile(filepath.Join(process, file))
	return string(text)
}
