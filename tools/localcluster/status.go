// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// Status is the state of a cluster.
type Status struct {
	Name string `json:"name"`
	// Problem says in one sentence what is wrong with the cluster; it is empty if the
	// cluster is healthy.
	Problem    string `json:"problem,omitempty"`
	Mode       Mode   `json:"mode,omitempty"`
	Address    string `json:"address,omitempty"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Logs       string `json:"logs,omitempty"`
	// Components are the programs that the keeper runs.
	Components []Component `json:"components,omitempty"`
	// Nodes and Deployments come from the API server; they are empty if it does not answer.
	Nodes       []Nodes      `json:"nodes,omitempty"`
	Deployments []Deployment `json:"deployments,omitempty"`
	Use         *Use         `json:"use,omitempty"`
}

// Component is a program that the keeper runs.
type Component struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	State   State  `json:"state"`
	// Problem is why its probe fails, or why it exited.
	Problem  string `json:"problem,omitempty"`
	Restarts int    `json:"restarts"`
	PID      int    `json:"pid,omitempty"`
	// UpSeconds is the age of its process, CPUSeconds its processor time.
	UpSeconds   float64 `json:"upSeconds,omitempty"`
	CPUSeconds  float64 `json:"cpuSeconds,omitempty"`
	MemoryBytes uint64  `json:"memoryBytes,omitempty"`
}

// State is the state of a component's process.
type State string

// A Running component has a process, a Restarting one lost it, a Waiting one has none yet.
const (
	Running    State = "running"
	Restarting State = "restarting"
	Waiting    State = "waiting"
)

// Nodes counts the nodes of one kind.
type Nodes struct {
	Kind  string `json:"kind"` // real or simulated
	Ready int    `json:"ready"`
	All   int    `json:"all"`
}

// Deployment is a Deployment of the cluster or of the platform.
type Deployment struct {
	Name   string   `json:"name"` // with its namespace
	Ready  int32    `json:"ready"`
	All    int32    `json:"all"`
	Images []string `json:"images"`
}

// Use is the use of resources by all processes of the cluster, including pods, and by its
// folder. CPUSeconds includes processes that have exited.
type Use struct {
	Processes   int     `json:"processes"`
	CPUSeconds  float64 `json:"cpuSeconds"`
	MemoryBytes uint64  `json:"memoryBytes"`
	DiskBytes   uint64  `json:"diskBytes"`
}

// Status observes the cluster and changes nothing. The cluster may change meanwhile.
// Deployments are listed in the given namespaces.
func (c *Cluster) Status(ctx context.Context, namespaces ...string) Status {
	s := Status{Name: c.config.Name}
	keeper, alive := c.host.proc.keeperOf(c.Dir())
	if !alive {
		s.Problem = c.notRunning().Error()
		return s
	}
	var planned plan.Plan
	var report plan.Status
	// At first either may be missing: no program was started yet.
	_ = plan.Read(c.Dir(), plan.File, &planned)
	_ = plan.Read(c.Dir(), plan.StatusFile, &report)

	s.Mode, s.Kubeconfig, s.Logs = c.Mode(), c.KubeconfigPath(), c.LogDir()
	s.Address = fmt.Sprintf("https://127.0.0.1:%d", keeper.Port)
	members := family(c.host.proc.all(), keeper.PID)
	health, healthErr := c.health()
	s.Components = statusOfPrograms(planned, report, health, members, c.host.proc.uptime())
	s.Use = use(members)
	s.Use.DiskBytes = diskUsed(c.Dir())
	observeErr := c.observe(ctx, &s, keeper, namespaces)
	s.Problem = s.problem(report, healthErr, observeErr)
	return s
}

// healthTimeout is longer than the keeper's own timeout of a probe.
const healthTimeout = 5 * time.Second

// health asks the keeper to run all probes.
func (c *Cluster) health() (plan.Health, error) {
	conn, err := net.DialTimeout("unix", filepath.Join(c.Dir(), plan.HealthSocket), healthTimeout)
	if err != nil {
		return nil, fmt.Errorf("the keeper does not answer: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(healthTimeout))
	var found plan.Health
	if err := json.NewDecoder(conn).Decode(&found); err != nil {
		return nil, fmt.Errorf("the keeper does not answer: %w", err)
	}
	return found, nil
}

// healthUnknown is the problem of components if the keeper does not answer.
const healthUnknown = "unknown"

// statusOfPrograms joins the planned programs with their processes.
func statusOfPrograms(p plan.Plan, report plan.Status, health plan.Health, members []process, uptime time.Duration) []Component {
	var all []Component
	for _, program := range p.Programs {
		c := Component{Name: program.Name, Version: versionOf(program.Path), State: Waiting, Restarts: report.Restarts[program.Name]}
		i := slices.IndexFunc(members, func(m process) bool { return m.program == program.Path })
		switch {
		case i >= 0:
			m := members[i]
			c.State, c.PID, c.MemoryBytes = Running, m.pid, m.memory
			c.UpSeconds, c.CPUSeconds = (uptime - m.began).Seconds(), m.cpu.Seconds()
			c.Problem = health[program.Name]
			if health == nil {
				c.Problem = healthUnknown
			}
		case report.Ready || report.Restarts[program.Name] > 0:
			c.State, c.Problem = Restarting, cmp.Or(report.Failing[program.Name], "has no process")
		}
		all = append(all, c)
	}
	return all
}

// versionOf is the version of the main module in a binary.
func versionOf(path string) string {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return ""
	}
	if info.Main.Replace != nil {
		return info.Main.Replace.Version
	}
	return info.Main.Version
}

func use(members []process) *Use {
	u := &Use{Processes: len(members)}
	for _, m := range members {
		u.CPUSeconds += (m.cpu + m.ended).Seconds()
		u.MemoryBytes += m.memory
	}
	return u
}

// problem sums up what is wrong, and errs: what could not be observed.
func (s *Status) problem(report plan.Status, errs ...error) string {
	if !report.Ready && report.Error == "" {
		return fmt.Sprintf("cluster %q is starting and waits for %s", s.Name, cmp.Or(report.Waiting, "its keeper"))
	}
	wrong := s.wrong()
	if report.Error != "" {
		wrong = append(wrong, report.Error)
	}
	for _, err := range errs {
		if err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("cluster %q is unhealthy: %s", s.Name, strings.Join(wrong, "; "))
}

// wrong lists unhealthy components, nodes and Deployments.
func (s *Status) wrong() []string {
	var wrong []string
	for _, c := range s.Components {
		if c.Problem != "" && c.Problem != healthUnknown { // the keeper's error is reported instead
			wrong = append(wrong, fmt.Sprintf("%s is %s (%s)", c.Name, c.State, c.Problem))
		}
	}
	for _, n := range s.Nodes {
		if n.Ready < n.All {
			wrong = append(wrong, fmt.Sprintf("%d of %d %s nodes are ready", n.Ready, n.All, n.Kind))
		}
	}
	for _, d := range s.Deployments {
		if d.Ready < d.All {
			wrong = append(wrong, fmt.Sprintf("%d of %d pods of %s are ready", d.Ready, d.All, d.Name))
		}
	}
	return wrong
}
