// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/test/stories"
)

// A transcript of a story shows on the left when something happened, then who did it,
// then what it was.
type transcript struct {
	world *world
	text  strings.Builder
	at    string // the last time written
}

func TestStories(t *testing.T) {
	var files []string
	for _, story := range stories.All() {
		file := filepath.Join("testdata", "stories", story.Name+".golden")
		files = append(files, file)
		t.Run(story.Name, func(t *testing.T) {
			golden.Compare(t, file, []byte(transcribe(t, story)))
		})
	}
	golden.Only(t, filepath.Join("testdata", "stories", "*.golden"), files)
}

func transcribe(t *testing.T, story stories.Story) string {
	t.Helper()
	defaults := lifecycle.StandardDefaults()
	defaults.MigrationLimit = story.MigrationLimit
	policy, problems := lifecycle.ParsePolicy(story.Annotations, defaults)
	if len(problems) > 0 {
		t.Fatalf("a story has invalid annotations: %v", problems)
	}
	s := &transcript{world: newWorld(policy, resourcesOf(story.Components)...)}
	s.world.notes = s.note
	s.world.broken = func(promise string) { t.Errorf("broken: %s", promise) }
	s.note("user", "creates an AppWrapper of "+describe(story.Components))
	if story.AtOnce {
		s.note("", "that need not wait for quota")
		s.world.atOnce()
	}
	s.world.settle()
	story.Live(s.world)
	return s.text.String()
}

func resourcesOf(components []stories.Component) []*resource {
	resources := make([]*resource, len(components))
	for i, c := range components {
		resources[i] = &resource{
			kind: c.Kind, name: c.Name, replicas: c.Pods, reportsEnd: c.Kind == "Job" || c.Kind == "PyTorchJob",
			replaces: c.Replaces, stubborn: c.Held,
		}
		if c.Refusal != nil {
			resources[i].refusal = new(lifecycle.Refusal(*c.Refusal))
		}
	}
	return resources
}

func describe(components []stories.Component) string {
	parts := make([]string, len(components))
	for i, c := range components {
		parts[i] = fmt.Sprintf("%s %q with %d pods", c.Kind, c.Name, c.Pods)
	}
	return strings.Join(parts, " and ")
}

func (s *transcript) note(who, what string) {
	at := s.world.now.Sub(s.world.born).String()
	if at == s.at {
		at = ""
	} else {
		s.text.WriteString("\n")
		s.at = at
	}
	if who == "time" {
		who, what = "controller", "looks again"
	}
	s.text.WriteString(strings.TrimRight(fmt.Sprintf("%-10s %-10s %s", at, who, what), " ") + "\n")
}

// noteStatus writes down how a status differs from the one before it.
func (w *world) noteStatus(before, after v1beta2.AppWrapperStatus) {
	move := fmt.Sprintf("%s → %s", name(before.Phase), name(after.Phase))
	if before.Phase == after.Phase {
		move = "saves the status in " + name(after.Phase)
	}
	w.notes("controller", move)
	if before.Retries != after.Retries {
		w.notes("", fmt.Sprintf("  resettingCount %d", after.Retries))
	}
	if before.Preemptions != after.Preemptions {
		w.notes("", fmt.Sprintf("  preemptions %d", after.Preemptions))
	}
	w.noteConditions("", before.Conditions, after.Conditions)
	w.noteUsage(before.Usage, after.Usage)
	for i, c := range after.ComponentStatus {
		var old []metav1.Condition
		if i < len(before.ComponentStatus) {
			old = before.ComponentStatus[i].Conditions
		}
		w.noteConditions(w.resources[i].name+": ", old, c.Conditions)
	}
}

// noteUsage notes the classes that have grown.
func (w *world) noteUsage(before, after *v1beta2.AppWrapperUsage) {
	if before == nil {
		before = &v1beta2.AppWrapperUsage{}
	}
	for _, class := range ledger.Classes() {
		if after == nil {
			return
		}
		if more := *ledger.In(after, class) - *ledger.In(before, class); more != 0 {
			w.notes("", fmt.Sprintf("  usage %s %+ds", class, more))
		}
	}
}

func (w *world) noteConditions(whose string, before, after []metav1.Condition) {
	known := map[string]metav1.Condition{}
	for _, c := range before {
		known[c.Type] = c
	}
	for _, c := range after {
		old := known[c.Type]
		delete(known, c.Type)
		if old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
			continue
		}
		w.notes("", strings.TrimRight(fmt.Sprintf("  %s%s %s %s  %s", whose, c.Type, c.Status, c.Reason, c.Message), " "))
	}
	for _, c := range before {
		if _, removed := known[c.Type]; removed {
			w.notes("", fmt.Sprintf("  %s%s forgotten", whose, c.Type))
		}
	}
}

func name(phase v1beta2.AppWrapperPhase) string {
	if phase == v1beta2.AppWrapperEmpty {
		return "(new)"
	}
	return string(phase)
}
