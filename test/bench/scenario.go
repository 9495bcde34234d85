// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"embed"
	"errors"
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
	// Suspended lives are all created before the first begins.
	Suspended bool `json:"suspended,omitempty"`
	// Queued lives go through a queue of Kueue that has quota for all.
	Queued bool `json:"queued,omitempty"`
	// Failing: the first pod of each life fails as soon as it runs. Nothing pauses before the retry.
	Failing bool `json:"failing,omitempty"`
	// Number of lives.
	Number int `json:"number"`
	// Pods of each life; 1 by default.
	Pods int32 `json:"pods,omitempty"`
	// PerSecond is how many begin each second; 0 for all at once.
	PerSecond float64 `json:"perSecond,omitempty"`
	// RunFor is how long pods run; 1s by default.
	RunFor metav1.Duration `json:"runFor,omitempty"`
}

//go:embed scenarios/*.yaml compared/*.yaml
var files embed.FS

// Scenarios are those of the report, in the order of their names.
func Scenarios() ([]Scenario, error) { return in("scenarios") }

// Compared are those of the comparison, whose lives are AppWrappers of two controllers, or bare Jobs.
func Compared() ([]Scenario, error) { return in("compared") }

func in(folder string) ([]Scenario, error) {
	names, err := fs.Glob(files, folder+"/*.yaml")
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

// alone: Jobs that have neither an AppWrapper nor a queue.
func (s Scenario) alone() bool { return s.Bare && !s.Queued }

// plain lives are AppWrappers alone, in no queue.
func (s Scenario) plain() bool { return !s.Bare && !s.Runs && !s.Queued && !s.Failing }

func parse(text []byte) (Scenario, error) {
	s := Scenario{Pods: 1, RunFor: metav1.Duration{Duration: time.Second}}
	if err := yaml.UnmarshalStrict(text, &s); err != nil {
		return s, err
	}
	return s, s.check()
}

// rules are what is wrong with a scenario.
var rules = []struct {
	says   string
	broken func(Scenario) bool
}{
	{"says is missing", func(s Scenario) bool { return s.Says == "" }},
	{"number and pods must be positive", func(s Scenario) bool { return s.Number <= 0 || s.Pods <= 0 }},
	{"perSecond must not be negative", func(s Scenario) bool { return s.PerSecond < 0 }},
	{"suspended lives are in no queue: the test starts them", func(s Scenario) bool { return s.Suspended && (s.Queued || s.Runs) }},
	{"those that fail are AppWrappers of one pod", func(s Scenario) bool { return s.Failing && (s.Bare || s.Runs || s.Pods > 1) }},
	{"runs are of one pod, in no queue, and begin at once", func(s Scenario) bool { return s.Runs && !s.simple() }},
}

func (s Scenario) check() error {
	for _, rule := range rules {
		if rule.broken(s) {
			return errors.New(rule.says)
		}
	}
	return nil
}

// simple lives have one pod, no queue, and begin at once.
func (s Scenario) simple() bool { return !s.Bare && !s.Queued && s.Pods == 1 && s.PerSecond == 0 }
