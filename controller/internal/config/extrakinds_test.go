// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

func TestExtraKindsAreRefusedByName(t *testing.T) {
	const rocket = "{group: example.com, version: v1, kind: Rocket, resource: rockets}"
	for name, tc := range map[string]struct{ kinds, says string }{
		"without a group":              {"{version: v1, kind: Rocket, resource: rockets}", "appwrapper.extraKinds[0].group"},
		"without a version":            {"{group: example.com, kind: Rocket, resource: rockets}", "appwrapper.extraKinds[0].version"},
		"without a kind":               {"{group: example.com, version: v1, resource: rockets}", "appwrapper.extraKinds[0].kind"},
		"without a resource":           {"{group: example.com, version: v1, kind: Rocket}", "appwrapper.extraKinds[0].resource"},
		"with a key too many":          {"{group: example.com, version: v1, kind: Rocket, resource: rockets, plural: rockets}", "appwrapper.extraKinds[0].plural"},
		"with every group":             {"{group: '*', version: v1, kind: Rocket, resource: rockets}", "appwrapper.extraKinds[0].group"},
		"with every resource":          {"{group: example.com, version: v1, kind: Rocket, resource: '*'}", "appwrapper.extraKinds[0].resource"},
		"that the controller knows":    {"{group: batch, version: v1, kind: Job, resource: jobs}", "appwrapper.extraKinds[0]: Invalid value: \"batch/v1, Kind=Job\": the controller knows this kind"},
		"that it knows in a version":   {"{group: ray.io, version: v1alpha1, kind: RayJob, resource: rayjobs}", "the controller knows this kind"},
		"twice":                        {rocket + ", " + rocket, "appwrapper.extraKinds[1]: Duplicate value"},
		"that are everybody's secrets": {"{group: '', version: v1, kind: Secret, resource: secrets}", "appwrapper.extraKinds[0].resource: Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Parse([]byte("appwrapper: {extraKinds: [" + tc.kinds + "]}"))
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("says %v, want %s", err, tc.says)
			}
		})
	}
}
