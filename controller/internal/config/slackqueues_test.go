// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
	"testing"
)

func TestSlackQueues(t *testing.T) {
	for what, row := range map[string]struct {
		file string
		want []string
	}{
		"none":                   {"", nil},
		"that of earlier files":  {"appwrapper: {slackQueueName: slack-cluster-queue}", []string{"slack-cluster-queue"}},
		"several":                {"appwrapper: {slackQueueNames: [b, a]}", []string{"a", "b"}},
		"both, each once":        {"appwrapper: {slackQueueName: b, slackQueueNames: [b, a]}", []string{"a", "b"}},
		"none without a monitor": {"appwrapper: {slackQueueName: b, autopilot: {monitorNodes: false}}", nil},
		"a null":                 {"appwrapper: {slackQueueName: null, slackQueueNames: null}", nil},
	} {
		c, _, err := Parse([]byte(row.file))
		if got := c.AppWrapper.SlackQueues(); err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}

func TestSlackQueuesThatNobodyKeepsAreNoted(t *testing.T) {
	_, notes, err := Parse([]byte("appwrapper: {slackQueueName: b, slackQueueNames: [a], autopilot: {monitorNodes: false}}"))
	if err != nil || len(notes) != 1 || !strings.HasPrefix(notes[0], "the slack queues a, b are not kept: appwrapper.autopilot.monitorNodes is false") {
		t.Errorf("%q, %v", notes, err)
	}
	if _, notes, err = Parse([]byte("appwrapper: {slackQueueName: b}")); err != nil || len(notes) > 0 {
		t.Errorf("%q, %v", notes, err)
	}
}

// The rules about nodes that work leaves at once are only some of those about nodes for new work.
func TestTheRulesForSlackQueues(t *testing.T) {
	c, _, err := Parse([]byte("appwrapper: {nodeHealth: {taints: [{key: broken, resources: ['*'], effect: NoExecute}]}}"))
	rules := c.AppWrapper.SlackRules()
	if err != nil || len(rules.Labels["nvidia.com/gpu"]) != 4 || len(rules.Taints) != 1 {
		t.Errorf("%+v, %v", rules, err)
	}
}
