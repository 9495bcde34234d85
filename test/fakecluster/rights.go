// SPDX-License-Identifier: Apache-2.0

package fakecluster

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
)

// users are what they may do. Only the administrator may do everything.
var users = map[string]func(authorizationv1.ResourceAttributes) bool{
	"an administrator":              Everything,
	"who may do all that is needed": func(a authorizationv1.ResourceAttributes) bool { return a.Verb != "*" },
	"who may only look":             func(a authorizationv1.ResourceAttributes) bool { return a.Verb == "get" || a.Verb == "list" },
	"whose rights are in one namespace": func(a authorizationv1.ResourceAttributes) bool {
		return a.Verb != "*" && a.Namespace == "mlbatch-system"
	},
	"who may not update definitions": mayNotUpdate("customresourcedefinitions"),
	"who may not update queues":      mayNotUpdate("clusterqueues"),
}

func mayNotUpdate(resource string) func(authorizationv1.ResourceAttributes) bool {
	return func(a authorizationv1.ResourceAttributes) bool {
		return a.Verb != "*" && (a.Verb != "update" || a.Resource != resource)
	}
}

// Denied fails the test unless each user is denied these of the needed rights, and no others.
func Denied(t *testing.T, needed func(access.API) access.Rights, want map[string][]string) {
	t.Helper()
	if diff := cmp.Diff(slices.Sorted(maps.Keys(users)), slices.Sorted(maps.Keys(want))); diff != "" {
		t.Fatalf("these are not the users of fakecluster (-users +want):\n%s", diff)
	}
	for name, may := range users {
		t.Run(name, func(t *testing.T) {
			api := API(User(may))
			got, err := needed(api).Denied(t.Context(), api)
			if diff := cmp.Diff(want[name], got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}
