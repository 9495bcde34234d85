// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package siege_test

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/dynamic"

	"github.com/mlbatch/mlbatch/test/siege/referee"
)

// attacker is somebody whose rights the siege has.
type attacker struct {
	// role is where the grammar finds kinds. Everybody but a member and a pod is given it in all teams.
	role   string
	user   string
	given  bool
	groups []string
	// powerless may do nothing at all.
	powerless bool
	known     []referee.Known
}

const memberRole = "mlbatch-edit"

var attackers = map[string]attacker{
	"member": {role: memberRole, user: "mallory"},
	"edit":   {role: "edit", user: "edith", given: true, known: referee.OfEditors},
	"admin":  {role: "admin", user: "adam", given: true, known: referee.OfEditors},
	"pod":    {role: memberRole, groups: []string{"system:serviceaccounts"}, powerless: true},
}

// arm gives the attacker its rights in all teams.
func (w *world) arm() {
	w.Helper()
	for i := range teams {
		user := w.who.user
		if w.who.powerless {
			user = "system:serviceaccount:" + team(i) + ":default"
		}
		w.acts[team(i)] = dynamic.NewForConfigOrDie(w.as(user, w.who.groups...))
		if !w.who.given {
			continue
		}
		b := &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.who.role}}
		b.Name, b.Namespace = "siege", team(i)
		b.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
		if err := w.admin.Create(w.Context(), b); err != nil {
			w.Fatal(err)
		}
	}
}
