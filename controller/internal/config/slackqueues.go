// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// SlackQueues are the names of all slack queues. There are none while nodes are not watched.
func (c AppWrapper) SlackQueues() []string {
	if !c.Autopilot.MonitorNodes {
		return nil
	}
	return c.namedSlackQueues()
}

func (c AppWrapper) namedSlackQueues() []string {
	names := slices.Clone(c.SlackQueueNames)
	if c.SlackQueueName != "" {
		names = append(names, c.SlackQueueName)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// SlackRules are the rules by which nodes lack resources for slack queues.
func (c AppWrapper) SlackRules() nodehealth.Rules {
	return nodehealth.Rules{Labels: c.Autopilot.ResourceTaints, Listed: c.NodeHealth.Listed}
}

func (c AppWrapper) validateSlackQueues(path *field.Path) field.ErrorList {
	problems := validateQueueName(c.SlackQueueName, path.Child("slackQueueName"))
	for i, name := range c.SlackQueueNames {
		at := path.Child("slackQueueNames").Index(i)
		if name == "" {
			problems = append(problems, field.Required(at, "the name of a ClusterQueue"))
		}
		problems = append(problems, validateQueueName(name, at)...)
	}
	return problems
}

func validateQueueName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return nil
	}
	return invalid(at, name, validation.IsDNS1123Subdomain(name))
}

func (c AppWrapper) slackNotes() []string {
	names := c.namedSlackQueues()
	if c.Autopilot.MonitorNodes || len(names) == 0 {
		return nil
	}
	return []string{"the slack queues " + strings.Join(names, ", ") + " are not kept: appwrapper.autopilot.monitorNodes is false, so no node is watched"}
}
