// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/mlbatch/mlbatch/test/counted/variation"
)

// Kind is a resource whose objects can be created, alone or in an AppWrapper.
type Kind struct {
	Resource string // with its group
	// Base is an object that nobody refuses. If it is work, it gets pods. Its name is Episode with an ending.
	Base map[string]any
	// Spec is the schema of the spec, and Schemas has what it refers to.
	Spec    map[string]any
	Schemas variation.Schemas
}

// Right is what a role lets its holder do with a resource.
type Right struct {
	Resource       string // with its group
	Create, Delete bool
}

// Rights are the resources that a role lets its holder create or delete. Subresources are left out: what is created
// there runs in pods that have quota.
func Rights(rules []rbacv1.PolicyRule) (all []Right) {
	for _, rule := range rules {
		create, remove := slices.Contains(rule.Verbs, "create"), slices.Contains(rule.Verbs, "delete")
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if (create || remove) && !strings.Contains(resource, "/") {
					all = append(all, Right{strings.TrimSuffix(resource+"."+group, "."), create, remove})
				}
			}
		}
	}
	return all
}
