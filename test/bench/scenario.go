// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Scenario is lives that begin at once or one after the other. The file's name is its name.
type Scenario struct {
	Name string `json:"-"`
	// Says is the scenario in a sentence.
	Says string `json:"says"`
	// Bare lives are Jobs without an AppWrapper.
	Bare bool `json:"bare,omitempty"`
	// Runs: each life is a Run with its AppWrapper.
	Runs bool `json:"runs,omitempty"`
	// Queued lives go through a queue of Kueue that has quota for all.
	Queued bool `json:"queued,omitempty"`
	// Number of lives.
	Number int `json:"number"`
	// Pods of each life; 1 by default.
	Pods int32 `json:"pods,omitempty"`
	// PerSecond is how many begin each second; 0 for all at once.
	PerSecond float64 `json:"perSecond,omitempty"`
	// RunFor is how long pods run; 1s by default.
	RunFor metav1.Duration `json:"runFor,omitempty"`
}

//go:embed scenarios/*.yaml
var files embed.FS

// Scenarios returns all of them, in the order of their names.
func Scenarios() ([]Scenario, error) {
	names, err := fs.Glob(files, "scenarios/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []Scenario
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		s, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.Name = strings.TrimSuffix(path.Base(name), ".yaml")
		all = append(all, s)
	}
	return all, nil
}

// ofOneShape: as many lives, with as many pods, begin as fast.
func (s Scenario) ofOneShape(other Scenario) bool {
	return s.Number == other.Number && s.Pods == other.Pods && s.PerSecond == other.PerSecond
}

// plain lives are AppWrappers alone, in no queue.
func (s Scenario) plain() bool { return !s.Bare && !s.Runs && !s.Queued }

func parse(text []byte) (Scenario, error) {
	s := Scenario{Pods: 1, RunFor: metav1.Duration{Duration: time.Second}}
	if err := yaml.UnmarshalStrict(text, &s); err != nil {
		return s, err
	}
	return s, s.check()
}

func (s Scenario) check() error {
	switch {
	case s.Says == "":
		return fmt.Errorf("says is missing")
	case s.Number <= 0 || s.Pods <= 0:
		return fmt.Errorf("number and pods must be positive")
	case s.PerSecond < 0:
		return fmt.Errorf("perSecond must not be negative")
	case s.Bare && s.Queued:
		return fmt.Errorf("bare Jobs have no queue: Kueue does not manage them here")
	case s.Runs && !s.simple():
		return fmt.Errorf("runs are of one pod, in no queue, and begin at once")
	}
	return nil
}

// simple lives have one pod, no queue, and begin at once.
func (s Scenario) simple() bool { return !s.Bare && !s.Queued && s.Pods == 1 && s.PerSecond == 0 }
