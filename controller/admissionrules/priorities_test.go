// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"
)

func TestPodsHaveAPriorityOfTheirTeam(t *testing.T) {
	for name, tc := range map[string]struct{ class, allowed, refused string }{
		"one of the team's":        {"high-priority", "low-priority,high-priority", ""},
		"none":                     {"", "low-priority", ""},
		"any, where none is named": {"system-node-critical", "", ""},
		"one of the system": {"system-node-critical", "low-priority,high-priority",
			"this team's pods may not have the priorityClassName system-node-critical: choose one of low-priority, high-priority, or leave it out"},
		"a part of a name": {"low", "low-priority", "this team's pods may not have the priorityClassName low: choose one of low-priority, or leave it out"},
	} {
		t.Run(name, func(t *testing.T) {
			aw := appWrapper(t, component(strings.Replace(job, "containers:", "priorityClassName: '"+tc.class+"', containers:", 1)))
			problems := Decode(aw).ValidateIn(Namespace{Annotations: map[string]string{"mlbatch-priorities": tc.allowed}})
			if tc.refused == "" && len(problems) > 0 {
				t.Errorf("unexpected: %v", problems)
			}
			if tc.refused != "" && (len(problems) != 1 || problems[0].Detail != tc.refused || problems[0].Field != "spec.components[0].template.spec.template") {
				t.Errorf("got %v", problems)
			}
		})
	}
}
