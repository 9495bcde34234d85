// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/web"
)

// patient is a pace at which only rights are looked at.
var patient = web.Pace{
	Pace:  clusterstate.Pace{Doubt: time.Hour, Poll: time.Hour, Idle: time.Hour},
	Least: time.Millisecond, Most: time.Hour, Failed: time.Hour, Rights: 20 * time.Millisecond, Slowest: time.Hour,
}

var (
	withRoles = append(slices.Clone(platform), rbacv1.SchemeGroupVersion.WithKind("Role"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"))
	binding = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"namespace":"blue","name":"members"}}`
)

func ofRoles(resource string) bool {
	return strings.HasPrefix(resource, "role") || strings.HasPrefix(resource, "clusterrole")
}

// While nothing else changes, what the user may not see any more leaves pages that are open, and comes back with the
// right. An administrator's roles are watched; others are not allowed to read them.
func TestARightThatIsTakenAwayLeavesAnOpenPage(t *testing.T) {
	for _, administrator := range []bool{false, true} {
		api := cluster(t, withRoles, wrapper("secret"), binding)
		var taken atomic.Bool
		api.Refuses = func(_, resource, _ string) bool {
			return taken.Load() && resource == "appwrappers" || !administrator && ofRoles(resource)
		}
		s := opened(t, api, patient)
		pages := []<-chan string{s.live("/"), s.live("/?me=false"), s.live("/job/blue/appwrapper/secret")}
		for _, page := range pages {
			s.shows(page, "secret")
		}
		s.settles(api, administrator)
		taken.Store(true)
		if administrator {
			put(t, api, strings.Replace(binding, "members", "others", 1))
		}
		for _, page := range pages[:2] {
			if main := s.shows(page, "you may not list appwrappers"); strings.Contains(main, "secret") {
				t.Errorf("it still shows\n%s", main)
			}
		}
		s.shows(pages[2], "you may not")
		taken.Store(false)
		if administrator {
			put(t, api, strings.Replace(binding, "members", "all", 1))
		}
		for _, page := range pages {
			s.shows(page, "secret")
		}
	}
}

// Ten tabs of which nothing changes cost an administrator nothing, and others one small question at a time.
func TestTabsOfWhichNothingChangesAskNothing(t *testing.T) {
	for _, administrator := range []bool{true, false} {
		api := cluster(t, withRoles, wrapper("train"), queueOfTeam, flavor, node)
		api.Refuses = func(_, resource, _ string) bool { return !administrator && ofRoles(resource) }
		s := opened(t, api, patient)
		for range 2 {
			for _, path := range []string{"/", "/team", "/job/blue/appwrapper/train", "/cluster", "/usage"} {
				s.shows(s.live(path), "mlbatch")
			}
		}
		s.settles(api, administrator)
		const looks = 20
		time.Sleep(looks * patient.Rights)
		asked := fakeapiserver.Count(api.Requests())
		reviews := asked["POST selfsubjectrulesreviews"]
		if delete(asked, "POST selfsubjectrulesreviews"); len(asked) > 0 || administrator && reviews > 0 || reviews > looks {
			t.Errorf("an administrator: %v: %d reviews, %v", administrator, reviews, asked)
		}
	}
}

// settles waits until rights are known, and everything was asked for again.
func (s *site) settles(api *fakeapiserver.Server, administrator bool) {
	s.Helper()
	reviews := 0
	s.until(func() bool {
		reviews += fakeapiserver.Count(api.Requests())["POST selfsubjectrulesreviews"]
		return reviews > 1 || administrator && len(slices.DeleteFunc(api.Watched(), func(resource string) bool { return !ofRoles(resource) })) == 4
	})
	s.until(func() bool {
		api.Requests()
		time.Sleep(5 * patient.Rights)
		asked := fakeapiserver.Count(api.Requests())
		delete(asked, "POST selfsubjectrulesreviews")
		return len(asked) == 0
	})
}
