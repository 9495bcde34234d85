// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Each says in place what is missing, and stays usable.
func TestClustersThatLackSomething(t *testing.T) {
	nodes := []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithKind("Pod")}
	for name, row := range map[string]struct {
		kinds   []schema.GroupVersionKind
		refuses func(verb, resource, namespace string) bool
		want    map[string]string
	}{
		"no platform": {kinds: nodes, want: map[string]string{
			"/": "the cluster does not serve appwrappers", "/team": "the cluster does not serve clusterqueues", "/usage": "the cluster does not serve appwrappers",
			"/check": "the cluster does not have the platform", "/cluster": "does not serve clusterqueues", "/audit": "role=\"alert\"", "/job/blue/appwrapper/a": "role=\"alert\"",
		}},
		"an old Kueue, which serves another version": {kinds: append(nodes, v1beta2.GroupVersion.WithKind("AppWrapper")), want: map[string]string{
			"/": "the cluster does not serve workloads", "/team": "the cluster does not serve clusterqueues", "/job/blue/appwrapper/train": "the cluster does not serve the Workloads",
		}},
		"no right to anything": {kinds: platform, refuses: func(string, string, string) bool { return true }, want: map[string]string{
			"/": "you may not create selfsubjectreviews", "/?me=false": "you may not list appwrappers in namespace blue", "/team": "you may not list localqueues",
			"/usage": "you may not list appwrappers", "/check": "you may not list nodes", "/audit": "you may not list namespaces", "/cluster": "you may not list nodes",
			"/job/blue/appwrapper/train": "you may not get appwrappers in namespace blue",
		}},
		"the rights of a member": {kinds: platform, refuses: func(_, resource, namespace string) bool { return namespace == "" && resource != "selfsubjectreviews" }, want: map[string]string{
			"/": "train", "/team": "these are the queues of namespace blue", "/usage": "these are those of namespace blue", "/job/blue/appwrapper/train": "is Suspended",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			api := cluster(t, row.kinds)
			if row.refuses != nil || len(row.kinds) == 3 {
				put(t, api, wrapper("train"))
			}
			api.Refuses = row.refuses
			s := opened(t, api, quick)
			for path, want := range row.want {
				s.has(path, want, "<nav", "</html>")
			}
		})
	}
}

// A namespace goes while its page is open.
func TestANamespaceThatGoes(t *testing.T) {
	api := cluster(t, platform, wrapper("train"))
	s := opened(t, api, quick)
	work := s.live("/")
	s.shows(work, "train")
	api.Delete("appwrappers", key("train"))
	s.shows(work, "There is no work")
}

// Five thousand jobs are shown in pages.
func TestManyJobsAreShownInPages(t *testing.T) {
	s := opened(t, cluster(t, platform, numbered(5000, func(i int) string { return wrapper(name(i)) })...), quick)
	first := s.page("/")
	if n := strings.Count(first, `<tr id="`); n != 200 || len(first) > 300_000 {
		t.Errorf("%d rows, %d bytes", n, len(first))
	}
	s.has("/", "200 of 5000", "from=200")
	if last := s.page("/?me=true&from=4900"); strings.Count(last, `<tr id="`) != 100 || !strings.Contains(last, "from=4700") || strings.Contains(last, `rel="next"`) {
		t.Errorf("the last page has %d rows", strings.Count(last, `<tr id="`))
	}
	for _, from := range []string{"-1", "99999", "many", "9999999999999999999"} {
		s.has("/?me=true&from="+from, "200 of 5000")
	}
}

// Names may be long, be written from right to left, and have nothing to break at.
func TestLongAndForeignNames(t *testing.T) {
	long := strings.Repeat("a", 253)
	arabic := "تدريب-نموذج"
	s := opened(t, cluster(t, platform, wrapper(long), wrapper("train", `{"phase":"Failed","lastAttempts":[{"began":"2026-11-22T10:00:00Z","ended":"2026-11-22T10:05:00Z","cause":"PodsFailed","pod":"p","exitCode":1,"lastWords":`+text(arabic)+`}]}`)), quick)
	s.has("/", "<bdi>"+long+"</bdi>")
	s.has("/job/blue/appwrapper/"+long, "AppWrapper "+long+" in namespace blue is Suspended")
	s.has("/job/blue/appwrapper/train", `dir="auto">`+arabic)
	s.has("/job/blue/appwrapper/"+strings.Repeat("b", 2000), "there is no appwrapper")
	s.has("/page.css", "overflow-wrap: anywhere")
}
