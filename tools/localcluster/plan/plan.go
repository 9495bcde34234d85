// SPDX-License-Identifier: Apache-2.0

// Package plan is the contract between the command that starts a local
// cluster and the keeper that holds it: what to mount, which network to make,
// which programs to run in which order, and how they are. It is data only.
package plan

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mlbatch/mlbatch/tools/artifacts/atomicfile"
)

// File names in a cluster's folder.
const (
	File       = "plan.json"
	StatusFile = "status.json"
	KeeperFile = "keeper.json"
	ImagesFile = "images.json"
	LogDir     = "log"
	// HealthSocket is where a keeper answers with a Health.
	HealthSocket = "health.sock"
)

// File descriptors that the keeper is started with.
const (
	// ListenerFD is the listening socket that was opened outside its network
	// namespace.
	ListenerFD = 3
	// RecordedFD gives one byte when the keeper is on record in KeeperFile. If it
	// ends without, nobody would know of the keeper, which then has to go.
	RecordedFD = 4
)

// Plan is all that a keeper has to know.
type Plan struct {
	// Name is the cluster's name; it is also the node's host name.
	Name string `json:"name"`
	// Dir is the cluster's folder; it is visible inside and outside.
	Dir string `json:"dir"`
	// Binds are folders of Dir mounted over paths that programs have fixed in
	// their code. Their parents are covered by empty file systems first.
	Binds []Bind `json:"binds"`
	// Sysctls are files of Dir mounted over files of /proc/sys: settings that
	// the whole machine shares, and that programs would change.
	Sysctls []Bind `json:"sysctls"`
	// Network is the one bridge that pods hang on.
	Network Network `json:"network"`
	// Cgroup is the folder below each cgroup hierarchy that pods live in; empty
	// if they need none.
	Cgroup string `json:"cgroup"`
	// Forward is the address inside the namespace that connections to the
	// listener are passed on to.
	Forward string `json:"forward"`
	// Revision is counted up when a running keeper is given another plan.
	Revision int `json:"revision,omitempty"`
	// Programs are started in this order; each waits for the one before.
	Programs []Program `json:"programs"`
}

// Bind mounts Source over Target.
type Bind struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// Network describes the bridge of the node.
type Network struct {
	Bridge string `json:"bridge"`
	// Address is the node's address with the pods' prefix, e.g. 10.200.0.1/24.
	Address string `json:"address"`
	// Services is routed to the bridge so that host programs reach Services. If it
	// is empty, nobody translates their addresses.
	Services string `json:"services"`
}

// Program is one process of the node.
type Program struct {
	Name string `json:"name"`
	// Version is that of its module.
	Version string   `json:"version,omitempty"`
	Path    string   `json:"path"`
	Args    []string `json:"args,omitempty"`
	// Env is the whole environment.
	Env []string `json:"env"`
	// Files is a digest of the files that it reads: with others it is another
	// program.
	Files string `json:"files,omitempty"`
	// PIDNamespace makes the program process 1 of a PID namespace of its own. When it
	// ends, even by SIGKILL, the kernel first ends everything that it started.
	PIDNamespace bool `json:"pidNamespace,omitempty"`
	// Before has to be satisfied each time before the program is started.
	Before Probe `json:"before,omitzero"`
	// Ready tells when the next program may start.
	Ready Probe `json:"ready"`
	// Timeout bounds the wait for Ready.
	Timeout time.Duration `json:"timeout"`
}

// Probe is satisfied when the socket accepts a connection or the URL answers
// 200. The zero Probe is satisfied at once.
type Probe struct {
	URL string `json:"url,omitempty"`
	// Method is how the URL is asked, if not with GET.
	Method string `json:"method,omitempty"`
	Socket string `json:"socket,omitempty"`
	// CA, Cert and Key are PEM files for https URLs.
	CA   string `json:"ca,omitempty"`
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
}

// Status is what the keeper reports while it works.
type Status struct {
	// Revision is that of the plan which the rest is about.
	Revision int `json:"revision,omitempty"`
	// Ready is true once every program of the plan has been ready.
	Ready bool `json:"ready"`
	// Waiting names the program that is being waited for.
	Waiting string `json:"waiting,omitempty"`
	// Error says in a sentence why the keeper did not bring the plan about. If it
	// was the first, the keeper ends.
	Error string `json:"error,omitempty"`
	// Restarts counts how often each program has ended by itself.
	Restarts map[string]int `json:"restarts,omitempty"`
	// Failing says of each program that has ended, and is not ready again, why.
	Failing map[string]string `json:"failing,omitempty"`
}

// Health says of each program why its Ready probe is not satisfied; "" if it is.
type Health map[string]string

// Keeper identifies the process that holds a cluster. A pid alone may be
// reused; together with its start time, and the boot that this counts from, it
// is not.
type Keeper struct {
	PID int `json:"pid"`
	// Boot is the kernel's random id of the time since it was started.
	Boot string `json:"boot"`
	// StartTime is field 22 of /proc/PID/stat, in clock ticks since boot.
	StartTime string `json:"startTime"`
	// Port on 127.0.0.1 is the one whose socket the keeper was given.
	Port int `json:"port"`
	// Mode is that of the cluster; empty means real.
	Mode string `json:"mode"`
	// SimulatedNodes is the number of nodes that the cluster was asked to have
	// beside the first one.
	SimulatedNodes int `json:"simulatedNodes"`
}

// Image is what a simulated cluster runs instead of an image. ImagesFile has one
// by each image's reference.
type Image struct {
	// File is the program, Path where the image has it.
	File string `json:"file"`
	Path string `json:"path"`
}

// Write stores v as JSON in dir/name; readers never see half of it.
func Write(dir, name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", name, err)
	}
	if err := atomicfile.Write(filepath.Join(dir, name), 0o600, data); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	return nil
}

// Read loads dir/name into v. The error wraps os.ErrNotExist if it is absent.
func Read(dir, name string, v any) error {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	return nil
}
