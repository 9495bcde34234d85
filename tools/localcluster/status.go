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

// Status is how a cluster is.
type Status struct {
	Name string `json:"name"`
	// Problem says in a sentence why the cluster cannot be used as it should; it
	// is empty if the cluster is well.
	Problem    string `json:"problem,omitempty"`
	Mode       Mode   `json:"mode,omitempty"`
	Address    string `json:"address,omitempty"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Logs       string `json:"logs,omitempty"`
	// Components are the programs of its plan.
	Components []Component `json:"components,omitempty"`
	// Nodes and Deployments are what the API server says, if it answers.
	Nodes       []Nodes      `json:"nodes,omitempty"`
	Deployments []Deployment `json:"deployments,omitempty"`
	Use         *Use         `json:"use,omitempty"`
}

// Component is a program that the keeper runs.
type Component struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	State   State  `json:"state"`
	// Problem is what its probe says, or why it has ended.
	Problem  string `json:"problem,omitempty"`
	Restarts int    `json:"restarts"`
	PID      int    `json:"pid,omitempty"`
	// UpSeconds is the age of its process, CPUSeconds what that has computed.
	UpSeconds   float64 `json:"upSeconds,omitempty"`
	CPUSeconds  float64 `json:"cpuSeconds,omitempty"`
	MemoryBytes uint64  `json:"memoryBytes,omitempty"`
}

// State is what a component does.
type State string

// Running has a process, Restarting has none any more, and Waiting none yet.
const (
	Running    State = "running"
	Restarting State = "restarting"
	Waiting    State = "waiting"
)

// Nodes are those of one kind.
type Nodes struct {
	Kind  string `json:"kind"` // real or simulated
	Ready int    `json:"ready"`
	All   int    `json:"all"`
}

// Deployment is one of the cluster's own or of the platform's.
type Deployment struct {
	Name   string   `json:"name"` // with its namespace
	Ready  int32    `json:"ready"`
	All    int32    `json:"all"`
	Images []string `json:"images"`
}

// Use is what all processes of the cluster take, those of pods too, and its
// folder. CPUSeconds counts those that have ended.
type Use struct {
	Processes   int     `json:"processes"`
	CPUSeconds  float64 `json:"cpuSeconds"`
	MemoryBytes uint64  `json:"memoryBytes"`
	DiskBytes   uint64  `json:"diskBytes"`
}

// Status looks at the cluster, whatever becomes of it meanwhile: it tells what it
// finds and changes nothing. Deployments are looked for in the given namespaces.
func (c *Cluster) Status(ctx context.Context, namespaces ...string) Status {
	s := Status{Name: c.config.Name}
	keeper, alive := c.host.proc.keeperOf(c.Dir())
	if !alive {
		s.Problem = c.notRunning().Error()
		return s
	}
	var planned plan.Plan
	var report plan.Status
	// Either may be missing for a moment: then nothing has been started yet.
	_ = plan.Read(c.Dir(), plan.File, &planned)
	_ = plan.Read(c.Dir(), plan.StatusFile, &report)

	s.Mode, s.Kubeconfig, s.Logs = c.Mode(), c.KubeconfigPath(), c.LogDir()
	s.Address = fmt.Sprintf("https://127.0.0.1:%d", keeper.Port)
	members := family(c.host.proc.all(), keeper.PID)
	health, silence := c.health()
	s.Components = statusOfPrograms(planned, report, health, members, c.host.proc.uptime())
	s.Use = use(members)
	s.Use.DiskBytes = diskUsed(c.Dir())
	unknown := c.observe(ctx, &s, keeper, namespaces)
	s.Problem = s.problem(report, silence, unknown)
	return s
}

// healthTimeout is longer than a keeper needs to try a probe.
const healthTimeout = 5 * time.Second

// health asks the keeper to try all probes.
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

// untried is the problem of components whose probes nobody could try.
const untried = "not known"

// statusOfPrograms joins what is planned with what is there.
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
				c.Problem = untried
			}
		case report.Ready || report.Restarts[program.Name] > 0:
			c.State, c.Problem = Restarting, cmp.Or(report.Failing[program.Name], "has no process")
		}
		all = append(all, c)
	}
	return all
}

// versionOf is the version of the module that a program was built from.
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

// problem sums up what is not as it should be, and what could not be seen.
func (s *Status) problem(report plan.Status, unseen ...error) string {
	if !report.Ready && report.Error == "" {
		return fmt.Sprintf("cluster %q is coming up and waits for %s", s.Name, cmp.Or(report.Waiting, "its keeper"))
	}
	wrong := s.wrong()
	if report.Error != "" {
		wrong = append(wrong, report.Error)
	}
	for _, err := range unseen {
		if err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("cluster %q is not well: %s", s.Name, strings.Join(wrong, "; "))
}

// wrong is what is not as it should be among what was seen.
func (s *Status) wrong() []string {
	var wrong []string
	for _, c := range s.Components {
		if c.Problem != "" && c.Problem != untried { // that has a cause of its own
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
