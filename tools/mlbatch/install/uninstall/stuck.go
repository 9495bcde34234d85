// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stuckObject is an object with finalizers that only the platform can remove.
type stuckObject struct {
	kind, name string
	going      bool
}

// getsStuck reports whether an object's deletion needs its operator. Queues and flavors have
// such finalizers too, but are retained unless they are already being deleted.
func getsStuck(kind schema.GroupKind, o client.Object) bool {
	if len(o.GetFinalizers()) == 0 {
		return false
	}
	return o.GetDeletionTimestamp() != nil || kind.Group != "kueue.x-k8s.io" || kind.Kind == "Workload"
}

// describeStuck returns a clause that counts the objects, or "" if there are none.
func describeStuck(all []stuckObject) string {
	if len(all) == 0 {
		return ""
	}
	slices.SortFunc(all, func(a, b stuckObject) int { return strings.Compare(a.kind+" "+a.name, b.kind+" "+b.name) })
	counts := map[string]int{}
	var kinds []string
	for _, s := range all {
		if counts[s.kind]++; counts[s.kind] == 1 {
			kinds = append(kinds, s.kind)
		}
	}
	for n, kind := range kinds {
		kinds[n] = fmt.Sprintf("%d %s", counts[kind], kind)
	}
	return fmt.Sprintf("only the platform can delete %s, such as %s %s", strings.Join(kinds, ", "), all[0].kind, all[0].name)
}

// adviceFor says what to do about stuck objects.
func adviceFor(all []stuckObject) string {
	if !slices.ContainsFunc(all, func(s stuckObject) bool { return !s.going }) {
		return "they are all being deleted: wait a few seconds and run the command again, or leave them behind with --force"
	}
	return "delete that work first, for example with kubectl delete appwrappers --all --all-namespaces, or leave it behind with --force"
}
