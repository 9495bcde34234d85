// SPDX-License-Identifier: Apache-2.0

package config

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (c *AppWrapper) validateCapacityProviders(path *field.Path) field.ErrorList {
	names := c.NodeHealth.CapacityProviders
	var problems field.ErrorList
	if len(names) > 0 && !c.Autopilot.MonitorNodes {
		problems = append(problems, field.Forbidden(path, "appwrapper.autopilot.monitorNodes is false, so no node is watched: set it to true, or remove the names"))
	}
	for i, name := range names {
		problems = append(problems, invalid(path.Index(i), name, validation.IsDNS1123Subdomain(name))...)
	}
	return problems
}
