// SPDX-License-Identifier: Apache-2.0

// Package plan is the contract between the localcluster command and the keeper: what to
// mount, which network to create, which programs to run in which order, and their status.
// It is only data.
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
	// HealthSocket is where the keeper serves a Health.
	HealthSocket = "health.sock"
)

// File descriptors that the keeper inherits.
const (
	// ListenerFD is the listening socket that was opened on the host.
	ListenerFD = 3
	// RecordedFD delivers one byte once KeeperFile records the keeper. If it closes without a
	// byte, the keeper must exit: no command could find it.
	RecordedFD = 4
)

// Plan is what the keeper has to do.
type Plan struct {
	// Name is the cluster's name; it is also the node's host name.
	Name string `json:"name"`
	// Dir is the cluster's folder, on the host and inside.
	Dir string `json:"dir"`
	// Binds are folders of Dir, mounted at paths that programs have hard-coded. Their
	// parents are first covered by empty file systems.
	Binds []Bind `json:"binds"`
	// Sysctls are files of Dir, mounted over files of /proc/sys that programs would change
	// for the whole machine.
	Sysctls []Bind `json:"sysctls"`
	// Network is the bridge of all pods.
	Network Network `json:"network"`
	// Cgroup is the pods' cgroup in each hierarchy; empty if they need none.
	Cgroup string `json:"cgroup"`
	// Forward is the address inside the namespace to which connections from the listener
	// are forwarded.
	Forward string `json:"forward"`
	// Revision increases with each new plan for a running keeper.
	Revision int `json:"revision,omitempty"`
	// Programs start in this order, each when the one before is ready.
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
	// Services is the CIDR of Services, routed to the bridge so that host programs reach
	// them. It is empty if there is no kube-proxy.
	Services string `json:"services"`
}

// Program is one process of the node.
type Program struct {
	Name string `json:"name"`
	// Version is the version of its module.
	Version string   `json:"version,omitempty"`
	Path    string   `json:"path"`
	Args    []string `json:"args,omitempty"`
	// Env is the whole environment.
	Env []string `json:"env"`
	// Files is a digest of the files that the program reads: if they change, it restarts.
	Files string `json:"files,omitempty"`
	// PIDNamespace makes the program process 1 of its own PID namespace. When it exits, even
	// by SIGKILL, the kernel first kills everything that it started.
	PIDNamespace bool `json:"pidNamespace,omitempty"`
	// Before must succeed before each start of the program.
	Before Probe `json:"before,omitzero"`
	// Ready must succeed before the next program starts.
	Ready Probe `json:"ready"`
	// Timeout limits the wait for Ready.
	Timeout time.Duration `json:"timeout"`
}

// Probe succeeds when the socket accepts a connection or the URL returns 200. The zero Probe
// always succeeds.
type Probe struct {
	URL string `json:"url,omitempty"`
	// Method is the HTTP method; GET by default.
	Method string `json:"method,omitempty"`
	Socket string `json:"socket,omitempty"`
	// CA, Cert and Key are PEM files for https URLs.
	CA   string `json:"ca,omitempty"`
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
}

// Status is the status that the keeper reports.
type Status struct {
	// Revision is the revision of the plan that it follows.
	Revision int `json:"revision,omitempty"`
	// Ready is true once every program of the plan has been ready.
	Ready bool `json:"ready"`
	// Waiting names the program that the keeper waits for.
	Waiting string `json:"waiting,omitempty"`
	// Error says in one sentence why the keeper could not carry out the plan. If it was the
	// first plan, the keeper exits.
	Error string `json:"error,omitempty"`
	// Restarts counts how often each program exited by itself.
	Restarts map[string]int `json:"restarts,omitempty"`
	// Failing has the programs that exited and are not ready again, with the reason.
	Failing map[string]string `json:"failing,omitempty"`
}

// Health has the error of each program's Ready probe, or "".
type Health map[string]string

// Keeper identifies the keeper's process. A pid may be reused; pid, start time and boot
// together are unique.
type Keeper struct {
	PID int `json:"pid"`
	// Boot is the kernel's random id of the current boot.
	Boot string `json:"boot"`
	// StartTime is field 22 of /proc/PID/stat, in clock ticks since boot.
	StartTime string `json:"startTime"`
	// Port is the port of ListenerFD on 127.0.0.1.
	Port int `json:"port"`
	// Mode is the cluster's mode; empty means real.
	Mode string `json:"mode"`
	// SimulatedNodes is the number of simulated nodes that were asked for.
	SimulatedNodes int `json:"simulatedNodes"`
	// PlatformNodes is the number of nodes that run the platform; 0 means one.
	PlatformNodes int `json:"platformNodes,omitempty"`
	// Kubernetes is the minor version that was asked for, or "" for that of the checkout.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Image is the program that a simulated cluster runs instead of an image. ImagesFile maps image
// references to programs.
type Image struct {
	// File is the program on the host, Path its path in the image.
	File string `json:"file"`
	Path string `json:"path"`
	// More are the image's other programs on the host, by their paths in the image.
	More map[string]string `json:"more,omitempty"`
}

// Write stores v as JSON in dir/name, atomically.
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

// Read loads dir/name into v. The error wraps os.ErrNotExist if the file is missing.
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
