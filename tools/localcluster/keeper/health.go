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

// serveHealth tells everybody who connects to the health socket how the programs
// are. Only from in here can their probes be tried.
func serveHealth(p plan.Plan) error {
	socket := filepath.Join(p.Dir, plan.HealthSocket)
	_ = os.Remove(socket) // of an earlier keeper
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
			go tellHealth(conn, p.Dir)
		}
	}()
	return nil
}

func tellHealth(conn net.Conn, dir string) {
	defer conn.Close()
	var p plan.Plan
	if err := plan.Read(dir, plan.File, &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	_ = json.NewEncoder(conn).Encode(health(p)) // who does not listen does not mind
}

// health tries the probes of all programs at once.
func health(p plan.Plan) plan.Health {
	var mu sync.Mutex
	var all sync.WaitGroup
	found := plan.Health{}
	for _, program := range p.Programs {
		all.Go(func() {
			said := tryOnce(program.Ready)
			mu.Lock()
			defer mu.Unlock()
			found[program.Name] = said
		})
	}
	all.Wait()
	return found
}

// tryOnce is "" if a probe is satisfied, else why it is not.
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
