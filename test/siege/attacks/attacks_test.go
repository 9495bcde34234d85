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
		object        string
	}{
		"a deletion that orphans":      {rule: "orphan", without: "lifecycle", accepted: []grammar.Call{more, orphan}, want: []string{"delete with --cascade=orphan"}},
		"with that policy in force":    {rule: "orphan", without: "started", accepted: []grammar.Call{orphan}},
		"something else comes of it":   {rule: "misplaced", without: "lifecycle", accepted: []grammar.Call{orphan}},
		"nobody has accepted the call": {rule: "orphan", without: "lifecycle", accepted: []grammar.Call{more}},
		"pods that Kueue has not counted": {
			rule: "held", without: "started", accepted: []grammar.Call{more}, want: []string{"more replicas of a running PyTorchJob"},
		},
		"one call may be two, if an AppWrapper has them": {
			rule: "over-reservation", without: "started", accepted: []grammar.Call{more}, object: "AppWrapper siege-1/e3-a",
			want: []string{"more replicas of a running PyTorchJob", grown},
		},
		"a field that a creation lacks": {rule: "no-quota", without: "growth", accepted: []grammar.Call{{Verb: grammar.Create, About: "no spec.runPolicy"}}, want: []string{"a PyTorchJob that leaves pods behind"}},
		"a finalizer that is not one's own": {
			rule: referee.Stays, without: "lifecycle", accepted: []grammar.Call{{Verb: grammar.Patch, About: "metadata.finalizers=[orphan]"}},
		},
	} {
		if diff := cmp.Diff(c.want, Found(referee.Finding{Rule: c.rule, Object: c.object}, c.without, c.accepted)); diff != "" {
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
