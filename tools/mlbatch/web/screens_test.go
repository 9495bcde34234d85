// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/fakeapiserver"
)

func TestEachScreenSaysWhatItsCommandSays(t *testing.T) {
	failed := `{"phase":"Failed","phaseTransitionTime":"2126-11-22T10:06:00Z","resettingCount":3,"lastAttempts":[{"began":"2126-11-22T10:00:00Z","ended":"2126-11-22T10:05:00Z","cause":"PodsFailed","pod":"p","rank":"1","exitCode":7,"lastWords":"CUDA out of memory\n<b>bold</b>"}]}`
	s := opened(t, cluster(t, platform, wrapper("train"), wrapper("lost", failed), queueOfTeam, flavor, node), quick)
	s.has("/", "<h1", "train", "lost", "Queued", `href="`+s.folder+`/job/blue/appwrapper/train"`, "mlbatch list --me")
	s.has("/job/blue/appwrapper/lost", "AppWrapper lost in namespace blue is Failed", "CUDA out of memory\n&lt;b&gt;bold&lt;/b&gt;", "exit code 7", "rank 1", "mlbatch why appwrapper/lost --namespace=blue")
	s.has("/job/blue/appwrapper/lost", ` to 2126-11-22T10:06:00Z</figcaption>`, `<title>attempt until PodsFailed for 5m</title>`)
	s.has("/team", "vision", "nvidia.com/gpu", `<svg class="strip"`, `aria-label="10 used of 8; 2 borrowed"`, "mlbatch top")
	s.has("/cluster", "mlbatch top --by=node", "n1", "mlbatch list --all-namespaces --state=Queued")
	s.has("/usage?by=user", "mlbatch usage --by=user", "There is nothing")
	s.has("/check", "mlbatch check")
	s.has("/audit", "no namespace has the label")
	if code, _ := s.ask(s.folder + "/none"); code != http.StatusNotFound {
		t.Errorf("a page that does not exist: %d", code)
	}
}

const (
	queueOfTeam = `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ClusterQueue","metadata":{"name":"vision"},"spec":{"cohortName":"all","resourceGroups":[{"coveredResources":["nvidia.com/gpu"],
		"flavors":[{"name":"a","resources":[{"name":"nvidia.com/gpu","nominalQuota":"8"}]}]}]},"status":{"flavorsReservation":[{"name":"a","resources":[{"name":"nvidia.com/gpu","total":"10","borrowed":"2"}]}],
		"conditions":[{"type":"Active","status":"True","reason":"Ready","lastTransitionTime":"2026-11-22T10:00:00Z","message":""}]}}`
	flavor = `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ResourceFlavor","metadata":{"name":"a"},"spec":{}}`
	node   = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},"status":{"capacity":{"nvidia.com/gpu":"8"},"allocatable":{"nvidia.com/gpu":"8"},"conditions":[{"type":"Ready","status":"True"}]}}`
)

// Nothing is loaded from elsewhere, and little is loaded at all.
func TestAFirstVisitLoadsLittleAndNothingFromElsewhere(t *testing.T) {
	api := cluster(t, platform, numbered(1000, func(i int) string { return wrapper(name(i)) })...)
	s := opened(t, api, quick)
	page := s.page("/")
	loaded := map[string]string{"the page": page}
	for _, file := range regexp.MustCompile(`(?:src|href)="([^"]+\.(?:css|js|svg))"`).FindAllStringSubmatch(page, -1) {
		_, loaded[file[1]] = s.ask(file[1])
	}
	if len(loaded) != 4 {
		t.Errorf("it loads %d files", len(loaded))
	}
	all := 0
	for what, body := range loaded {
		var packed bytes.Buffer
		out := gzip.NewWriter(&packed)
		fmt.Fprint(out, body)
		out.Close()
		t.Logf("%s has %d bytes, compressed %d", what, len(body), packed.Len())
		all += packed.Len()
		if strings.Contains(strings.ReplaceAll(body, "http://www.w3.org/2000/svg", ""), "http") || strings.Contains(body, "@import") {
			t.Errorf("%s names another server", what)
		}
	}
	if all > 60_000 {
		t.Errorf("a first visit loads %d bytes", all)
	}
}

// What changes on the cluster changes on the page, also what appears and goes.
func TestAPageThatIsOpenShowsChanges(t *testing.T) {
	api := cluster(t, platform, wrapper("train"))
	s := opened(t, api, quick)
	work, job := s.live("/"), s.live("/job/blue/appwrapper/train")
	s.shows(work, "Queued")
	s.shows(job, "is Suspended")
	if err := api.Patch("appwrappers", key("train"), `{"status":{"phase":"Succeeded"}}`); err != nil {
		t.Fatal(err)
	}
	s.shows(work, "Succeeded")
	s.shows(job, "is Succeeded")
	put(t, api, wrapper("another"))
	s.shows(work, "another")
	api.Delete("appwrappers", key("train"))
	s.shows(job, "there is no appwrapper train in namespace blue")
}

// However many tabs are open, each list is requested and watched once, and nothing while nothing happens.
func TestTenTabsAskAsMuchAsOne(t *testing.T) {
	asked := func(tabs int) (map[string]int, *fakeapiserver.Server, *site) {
		api := cluster(t, platform, wrapper("train"), queueOfTeam, flavor, node)
		s := opened(t, api, quick)
		for _, path := range []string{"/", "/team", "/job/blue/appwrapper/train", "/cluster", "/usage"} {
			s.has(path, "mlbatch")
			for range tabs {
				s.shows(s.live(path), "mlbatch")
			}
		}
		return fakeapiserver.Count(api.Requests()), api, s
	}
	one, _, _ := asked(1)
	ten, api, s := asked(10)
	for what, n := range ten {
		if n > one[what]+2 { // the next page may ask whether it may still list
			t.Errorf("%s: %d requests for ten tabs, %d for one", what, n, one[what])
		}
	}
	s.shows(s.live("/"), "train") // which may ask whether it is still allowed
	api.Requests()
	for range 10 {
		s.shows(s.live("/"), "train") // another ten
	}
	if requests := api.Requests(); len(requests) > 0 {
		t.Errorf("ten more tabs asked %q", requests)
	}
}

// Nobody looks any more: nothing is watched.
func TestWithoutATabNothingIsWatched(t *testing.T) {
	api, pace := cluster(t, platform, wrapper("train")), quick
	pace.Idle = 0
	s := opened(t, api, pace)
	s.has("/", "train")
	s.until(func() bool { return len(api.Watched()) == 0 })
}

// A right that is taken away is said at the next change, and what it let see is gone.
func TestARightThatIsTakenAwayIsGone(t *testing.T) {
	api := cluster(t, platform, wrapper("secret"))
	may := make(chan bool, 1)
	may <- true
	api.Refuses = func(_, resource, _ string) bool {
		now := <-may
		may <- now
		return !now && resource == "appwrappers"
	}
	s := opened(t, api, quick)
	work := s.live("/")
	s.shows(work, "secret")
	<-may
	may <- false
	put(t, api, wrapper("another"))
	if main := s.shows(work, "you may not list appwrappers"); strings.Contains(main, "secret") {
		t.Errorf("it still shows\n%s", main)
	}
	<-may
	may <- true
	put(t, api, flavor)
	s.page("/") // somebody looks
	s.has("/", "secret", "another")
}

// The API server is gone, and back: the page says it, and recovers by itself.
func TestAnAPIServerThatIsGoneAndBack(t *testing.T) {
	api := cluster(t, platform, wrapper("train"))
	s := opened(t, api, quick)
	work := s.live("/")
	s.shows(work, "train")
	api.Pause()
	s.shows(work, "cannot list appwrappers in namespace blue: check --kubeconfig and --context")
	put(t, api, wrapper("later"))
	api.Resume()
	s.shows(work, "later")
}
