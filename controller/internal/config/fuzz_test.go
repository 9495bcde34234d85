// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// FuzzParse checks that a valid file can be written and read again, with the same result and
// the same notes.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"{}", "null", "appwrapper:\n  faultTolerance:\n    retryLimit: 7\n    resetPause: 1h30m\n",
		"appwrapper: {autopilot: null, kueue: {serviceAccounts: null}, slackQueueName: s}\n",
		"appwrapper: {extraKinds: [{group: example.com, version: v1, kind: Custom, resource: customs}]}\n",
		"controllerManager: {metrics: {bindAddress: '0', secureServing: true}}\nwebhooksEnabled: false\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, notes, err := Parse(data)
		if err != nil {
			if err.Error() == "" {
				t.Error("the error is empty")
			}
			return
		}
		text, err := yaml.Marshal(c)
		if err != nil {
			t.Fatalf("cannot write it: %v", err)
		}
		again, notesAgain, err := Parse(text)
		if err != nil {
			t.Fatalf("cannot read it again: %v\n%s", err, text)
		}
		textAgain, err := yaml.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), string(textAgain)) + cmp.Diff(notes, notesAgain); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	})
}
