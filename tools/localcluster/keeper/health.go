// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// serveHealth writes the health of all programs to each connection of the health socket.
// Their probes only work inside the node.
func serveHealth(p plan.Plan) error {
	socket := filepath.Join(p.Dir, plan.HealthSocket)
	_ = os.Remove(socket) // left by an earlier keeper
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("cannot serve the cluster's health: %w", err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go writeHealth(conn, p.Dir)
		}
	}()
	return nil
}

func writeHealth(conn net.Conn, dir string) {
	defer conn.Close()
	var p plan.Plan
	if err := plan.Read(dir, plan.File, &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	_ = json.NewEncoder(conn).Encode(health(p)) // the client may be gone
}

// health runs the probes of all programs in parallel.
func health(p plan.Plan) plan.Health {
	var mu sync.Mutex
	var all sync.WaitGroup
	found := plan.Health{}
	for _, program := range p.Programs {
		all.Go(func() {
			problem := tryOnce(program.Ready)
			mu.Lock()
			defer mu.Unlock()
			found[program.Name] = problem
		})
	}
	all.Wait()
	return found
}

// tryOnce runs a probe, and returns "" or why it failed.
func tryOnce(probe plan.Probe) string {
	check, err := checker(probe)
	if err == nil {
		err = check()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
