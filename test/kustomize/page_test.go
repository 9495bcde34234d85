// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package kustomize_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/markdown"
	"github.com/mlbatch/mlbatch/test/patience"
)

// page is what an administrator finds on the page.
type page struct {
	// steps are the commands of each step, which begins with its number.
	steps map[string][]string
	// files are the values by the name in their first line.
	files map[string]string
}

var (
	begins = regexp.MustCompile(`(?m)^(\d)\. \*\*`)
	values = regexp.MustCompile("(?ms)^   ```yaml\n   # ([a-z.]+)\n(.*?)^   ```$")
)

func (s *site) read(name string) page {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.checkout, "docs", name))
	s.Must(err)
	p := page{steps: map[string][]string{}, files: map[string]string{}}
	_, steps, _ := strings.Cut(string(text), "\n## The steps\n")
	steps, _, _ = strings.Cut(steps, "\n## ")
	found := begins.FindAllStringSubmatchIndex(steps, -1)
	for i, at := range found {
		end := len(steps)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		p.steps[steps[at[2]:at[3]]] = markdown.Parse(steps[at[0]:end]).Shell
	}
	for _, block := range values.FindAllStringSubmatch(steps, -1) {
		p.files[block[1]] = strings.ReplaceAll(block[2], "\n   ", "\n")[len("   "):]
	}
	return p
}

// write writes the files of the page, with more teams that are as the page's.
func (s *site) write(p page, more ...string) {
	s.Helper()
	var teams map[string]any
	s.Must(yaml.Unmarshal([]byte(p.files["teams.yaml"]), &teams))
	list := teams["teams"].([]any)
	for _, name := range more {
		team := maps.Clone(list[0].(map[string]any))
		team["name"] = name
		list = append(list, team)
	}
	teams["teams"] = list
	text, err := yaml.Marshal(teams)
	s.Must(err)
	s.Must(os.WriteFile(filepath.Join(s.dir, "teams.yaml"), text, 0o600))
	s.Must(os.WriteFile(filepath.Join(s.dir, "platform.yaml"), []byte(p.files["platform.yaml"]), 0o600))
}

// localInstall are the charts of this checkout, and what is different on a local cluster.
var localInstall = "mlbatch install --charts=charts --profile=localcluster --timeout=" + patience.For(5*time.Minute).String() + " "

// take runs the commands of a step, as they are for a team.
func (s *site) take(p page, step, team string) []string {
	s.Helper()
	if len(p.steps[step]) == 0 {
		s.Fatalf("the page has no commands in step %s", step)
	}
	var said []string
	for _, line := range p.steps[step] {
		line = strings.NewReplacer("TEAM", team, "USER", "alice", "mlbatch install ", localInstall).Replace(line)
		said = append(said, s.run(line))
	}
	return said
}
