// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/siege/grammar"
	"github.com/mlbatch/mlbatch/test/siege/referee"
)

func TestAnAttackIsItsCallAndWhatComesOfIt(t *testing.T) {
	orphan := grammar.Call{Verb: grammar.Delete, Propagation: "Orphan"}
	more := grammar.Call{Verb: grammar.Patch, Resource: "pytorchjobs.kubeflow.org", About: "spec.pytorchReplicaSpecs.Worker.replicas=90"}
	for name, c := range map[string]struct {
		rule, without string
		accepted      []grammar.Call
		want          []string
	}{
		"a deletion that orphans":       {"orphan", "lifecycle", []grammar.Call{more, orphan}, []string{"delete with --cascade=orphan"}},
		"with that policy in force":     {"orphan", "started", []grammar.Call{orphan}, nil},
		"something else comes of it":    {"misplaced", "lifecycle", []grammar.Call{orphan}, nil},
		"nobody has accepted the call":  {"orphan", "lifecycle", []grammar.Call{more}, nil},
		"one call may be two":           {"held", "started", []grammar.Call{more}, []string{"more replicas of a running PyTorchJob", "more pods of what an AppWrapper has created"}},
		"a field that a creation lacks": {"no-quota", "growth", []grammar.Call{{Verb: grammar.Create, About: "no spec.runPolicy"}}, []string{"a PyTorchJob that leaves pods behind"}},
		"a finalizer that is not one's own": {
			referee.Stays, "lifecycle", []grammar.Call{{Verb: grammar.Patch, About: "metadata.finalizers=[orphan]"}}, nil,
		},
	} {
		if diff := cmp.Diff(c.want, Found(c.rule, c.without, c.accepted)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Each is refused by a policy of the chart, so that the siege can disable it.
func TestEveryAttackHasADefence(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range All {
		file := filepath.Join("..", "..", "..", "charts", "mlbatch", "templates", "policies", a.Without+".yaml")
		if _, err := os.Stat(file); err != nil && a.Without != Webhook {
			t.Errorf("%s: %v", a.Name, err)
		}
		if seen[a.Name] {
			t.Errorf("%s is there twice", a.Name)
		}
		seen[a.Name] = true
	}
	counted := 0
	for _, defence := range Defences() {
		counted += len(Of(defence))
	}
	if counted != len(All) {
		t.Errorf("%q refuse %d of %d", Defences(), counted, len(All))
	}
}
