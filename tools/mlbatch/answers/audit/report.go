// SPDX-License-Identifier: Apache-2.0

package audit

import "time"

// Report is what programs get.
type Report struct {
	// Revision is that of the API server at which everything was read.
	Revision   string    `json:"revision"`
	Time       time.Time `json:"time"`
	Namespaces []string  `json:"namespaces"`
	// LookedAt counts objects.
	LookedAt map[string]int `json:"lookedAt"`
	Items    []Finding      `json:"items"`
}

// Reported is the report of what was found at a moment.
func Reported(m Moment, found []Finding) Report {
	return Report{
		Revision: m.Revision, Time: m.Time, Namespaces: m.Namespaces, Items: append([]Finding{}, found...),
		LookedAt: map[string]int{
			"pods": len(m.Pods), "appWrappers": len(m.AppWrappers), "services": len(m.Services),
			"workloads": len(m.Workloads), "clusterQueues": len(m.Queues), "nodes": len(m.Nodes),
		},
	}
}
