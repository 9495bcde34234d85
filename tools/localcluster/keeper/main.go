// SPDX-License-Identifier: Apache-2.0

// Command keeper is process 1 of a local cluster's node. It runs in private mount, network,
// PID, UTS and IPC namespaces: when it exits, for whatever reason, the kernel removes every
// process, mount and interface of the cluster. It sets up the node's file systems and
// network, runs the programs of the plan, restarts those that exit, and forwards
// connections from the listener it was given to the API server.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "keeper is started by localcluster up; do not run it by hand")
		os.Exit(2)
	}
	dir := os.Args[1]
	signals := make(chan os.Signal, 1)
	// Do this first: a signal without a handler would end the cluster.
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	reporter := newReporter(dir)
	if err := keep(dir, signals, reporter); err != nil {
		reporter.fail(err)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// keep returns only if the cluster cannot start or is told to end. On SIGHUP it follows a
// new plan.
func keep(dir string, signals <-chan os.Signal, report *reporter) error {
	if err := awaitRecord(os.NewFile(plan.RecordedFD, "recorded")); err != nil {
		return err
	}
	var p plan.Plan
	if err := plan.Read(dir, plan.File, &p); err != nil {
		return err
	}
	for _, step := range []func(plan.Plan) error{mountNode, setHostname, makeNetwork, makeCgroups, serveHealth} {
		if err := step(p); err != nil {
			return err
		}
	}
	listener, err := outerListener(os.NewFile(plan.ListenerFD, "listener"))
	if err != nil {
		return err
	}
	go forward(listener, p.Forward)

	s := newSupervisor(dir, report)
	if err := s.follow(p); err != nil {
		return err
	}
	for received := range signals {
		if received != syscall.SIGHUP {
			return nil
		}
		if err := s.followNew(); err != nil {
			report.fail(err) // programs keep running, and the next plan may work
		}
	}
	return nil
}

// outerListener returns the listener for the API server's socket on the host. It closes the
// file, which programs would inherit; they do not inherit the listener.
func outerListener(socket *os.File) (net.Listener, error) {
	defer socket.Close()
	listener, err := net.FileListener(socket)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on the API server's socket on the host: %w", err)
	}
	return listener, nil
}

// awaitRecord waits until the command that started us has recorded our pid: nobody could
// stop an unrecorded keeper.
func awaitRecord(recorded *os.File) error {
	defer recorded.Close()
	if _, err := recorded.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("the command that started the cluster exited too early: %w", err)
	}
	return nil
}

func setHostname(p plan.Plan) error {
	if err := syscall.Sethostname([]byte(p.Name)); err != nil {
		return fmt.Errorf("cannot set the node's host name: %w", err)
	}
	return nil
}
