// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// cluster is an API server with a few objects. Each watch waits for what is sent to changes. What is to be deleted is
// sent to deleted, and stays.
type cluster struct {
	*httptest.Server
	changes, deleted chan string
}

// The work of alice: what waits, runs, and has failed with last words.
const (
	train = `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"namespace":"blue","name":%q,"uid":%[1]q,"resourceVersion":"1","creationTimestamp":"2026-11-22T10:00:00Z",` +
		`"labels":{"kueue.x-k8s.io/queue-name":"default","workload.codeflare.dev/user":"alice"}},"spec":{"components":[]},"status":{"phase":%q,"phaseTransitionTime":"2099-11-22T10:00:00Z","lastAttempts":[{"began":"2026-11-22T10:00:00Z",` +
		`"ended":"2026-11-22T10:05:00Z","cause":"PodsFailed","pod":"train-0","rank":"0","node":"n1","exitCode":1,"lastWords":"Traceback (most recent call last):\n  torch.cuda.OutOfMemoryError: CUDA out of memory"}]}}`
	quotaOfTeam = `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ClusterQueue","metadata":{"name":"vision"},"spec":{"cohortName":"all","resourceGroups":[{"coveredResources":["nvidia.com/gpu"],` +
		`"flavors":[{"name":"h100","resources":[{"name":"nvidia.com/gpu","nominalQuota":"8"}]}]}]},"status":{"pendingWorkloads":2,"admittedWorkloads":3,"flavorsReservation":[{"name":"h100","resources":[{"name":"nvidia.com/gpu","total":"10","borrowed":"2"}]}]}}`
	sizesOfNode = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},"status":{"capacity":{"nvidia.com/gpu":"8"},"allocatable":{"nvidia.com/gpu":"8"},"conditions":[{"type":"Ready","status":"True"}]}}`
	someFlavor  = `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ResourceFlavor","metadata":{"name":"h100"},"spec":{}}`
)

// stored are the objects by the end of a path. All else is empty, but served.
var stored = map[string]string{
	"/appwrappers":     fmt.Sprintf(train, "waits", "Suspended") + "," + fmt.Sprintf(train, "lost", "Failed") + "," + fmt.Sprintf(train, strings.Repeat("long", 63), "Running"),
	"/clusterqueues":   quotaOfTeam,
	"/nodes":           sizesOfNode,
	"/resourceflavors": someFlavor,
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{changes: make(chan string), deleted: make(chan string, 10)}
	ended := make(chan struct{})
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/"):]; {
		case resource == "/selfsubjectreviews":
			fmt.Fprint(w, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":"alice"}}}`)
		case strings.HasSuffix(r.URL.Path, "/appwrappers/waits"):
			if r.Method == http.MethodDelete {
				c.deleted <- resource
			}
			fmt.Fprintf(w, train, "waits", "Suspended")
		case strings.Contains(r.URL.Path, "/runs/"):
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		case r.URL.Query().Get("watch") != "":
			flush := http.NewResponseController(w)
			_ = flush.Flush()
			changes := c.changes
			if resource != "/appwrappers" || r.URL.Query().Get("fieldSelector") != "" {
				changes = nil
			}
			for {
				select {
				case change := <-changes:
					fmt.Fprintln(w, change)
					_ = flush.Flush()
				case <-ended:
					return
				case <-r.Context().Done():
					return
				}
			}
		default:
			items := stored[resource]
			if name, is := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name="); is && !strings.Contains(items, `"name":"`+name+`"`) {
				items = ""
			}
			fmt.Fprintf(w, `{"metadata":{"resourceVersion":"1"},"items":[%s]}`, items) // of the kind that was asked for
		}
	}))
	t.Cleanup(func() {
		close(ended)
		c.Close()
	})
	return c
}

// mlbatch builds the program, and returns its file.
var mlbatch = sync.OnceValues(func() (program string, err error) {
	program = filepath.Join(folder, "mlbatch")
	build := exec.Command("go", "build", "-o", program, "./tools/mlbatch")
	build.Dir = "../../../.."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

// serveWeb runs mlbatch web for a cluster, and returns the address that it prints.
func serveWeb(t *testing.T, c *cluster) string {
	t.Helper()
	program, err := mlbatch()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: lab, contexts: [{name: lab, context: {cluster: c, namespace: blue}}], clusters: [{name: c, cluster: {server: "` + c.URL + `"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	web := exec.CommandContext(t.Context(), program, "web", "--kubeconfig", kubeconfig)
	out, err := web.StdoutPipe()
	if err == nil {
		err = web.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = web.Wait() }) // the context has ended
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// enter opens an address, and waits for the page behind it.
func (b *tab) enter(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
	b.until(`document.querySelector("main h1") !== null`)
}

// Every screen on a desk in light colours and on a phone in dark ones: readable, as wide as the screen, and without a
// word of the console, which would name each breach of the policy.
func TestEveryScreenOfWebIsFine(t *testing.T) {
	c := startCluster(t)
	for _, as := range []struct {
		width, height int64
		colours       string
	}{{1280, 900, "light"}, {360, 740, "dark"}} {
		b := open(t, as.width, as.height, as.colours)
		b.enter(serveWeb(t, c))
		home := eval[string](b, "location.href")
		for _, path := range []string{"", "?me=false", "team", "team?by=node", "cluster", "usage", "check", "audit", "job/blue/appwrapper/lost", "job/blue/appwrapper/none", "job/blue/appwrapper/waits/cancel"} {
			b.enter(home + path)
			got := b.see()
			if got.Texts < 10 {
				t.Errorf("%s: only %d texts were found", path, got.Texts)
			}
			for _, wrong := range append(append(got.Wider, got.Faint...), b.said()...) {
				t.Errorf("%s, %d wide: %s", path, as.width, wrong)
			}
			if unnamed := eval[int](b, `[...document.querySelectorAll("a, button, [role=img], section, nav")].filter((e) => !e.textContent.trim() && !e.ariaLabel).length`); unnamed > 0 {
				t.Errorf("%s: %d elements have no name", path, unnamed)
			}
			b.picture(strings.Trim(strings.NewReplacer("/", "-", "?", "-", "=", "-").Replace(path), "-"), as.colours)
		}
	}
}

// picture writes what there is to see into the folder that WEB_PICTURES names, if it does.
func (b *tab) picture(name, colours string) {
	b.t.Helper()
	folder := os.Getenv("WEB_PICTURES")
	if folder == "" {
		return
	}
	shot, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, strings.TrimPrefix("web-"+name, "-")+"-"+colours+".png"), shot, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// A change of the cluster is on the page without a reload, and the focus stays where it was.
func TestWebChangesWhileItIsOpen(t *testing.T) {
	c := startCluster(t)
	b := open(t, 1280, 900, "light")
	b.enter(serveWeb(t, c))
	b.until(`document.querySelector("tbody a").textContent !== ""`)
	eval[chromedp.Void](b, `{ window.same = true; [...document.querySelectorAll("tbody a")].find((a) => a.textContent === "waits").focus() }`)
	c.changes <- `{"type":"MODIFIED","object":` + strings.Replace(fmt.Sprintf(train, "waits", "Succeeded"), `"resourceVersion":"1"`, `"resourceVersion":"2"`, 1) + `}`
	b.until(`[...document.querySelectorAll("tr")].some((r) => r.textContent.includes("waits") && r.textContent.includes("Succeeded"))`)
	if !eval[bool](b, `window.same && document.activeElement.textContent === "waits"`) {
		t.Error("the page was loaded anew, or the focus is lost")
	}
	c.changes <- `{"type":"DELETED","object":` + fmt.Sprintf(train, "waits", "Succeeded") + `}`
	b.until(`![...document.querySelectorAll("tbody a")].some((a) => a.textContent === "waits")`)
	if said := b.said(); len(said) > 0 {
		t.Errorf("the console says %q", said)
	}
}

// A real browser sends the form of the page, and the command does what was confirmed.
func TestWebCancelsAfterAQuestion(t *testing.T) {
	c := startCluster(t)
	b := open(t, 1280, 900, "light")
	b.enter(serveWeb(t, c))
	b.enter(eval[string](b, "location.href") + "job/blue/appwrapper/waits")
	b.do(chromedp.Click(chromedp.CSS(`a[href$="/cancel"]`)))
	b.until(`document.querySelector("main form button") !== null`)
	if len(c.deleted) > 0 {
		t.Error("it was cancelled before it was confirmed")
	}
	b.do(chromedp.Click(chromedp.CSS("main form button")))
	b.until(`document.querySelector("main")?.textContent.includes("AppWrapper waits was deleted in namespace blue")`)
	if said := b.said(); len(said) > 0 || len(c.deleted) != 1 {
		t.Errorf("%d were deleted, and the console says %q", len(c.deleted), said)
	}
}

// With the keyboard alone, every screen is reached from the first one.
func TestWebNeedsNoMouse(t *testing.T) {
	b := open(t, 1280, 900, "light")
	b.enter(serveWeb(t, startCluster(t)))
	b.do(chromedp.KeyEvent(kb.Tab))
	if got := eval[string](b, `document.activeElement.className`); got != "skip" {
		t.Errorf("the first Tab goes to %q", got)
	}
	for _, screen := range []string{"team", "cluster", "usage", "check", "audit"} {
		for range 60 {
			b.do(chromedp.KeyEvent(kb.Tab))
			if eval[bool](b, `(document.activeElement.getAttribute("href") || "").endsWith("/`+screen+`")`) {
				break
			}
		}
		b.do(chromedp.KeyEvent(kb.Enter))
		b.until(`location.pathname.endsWith("/` + screen + `") && document.querySelector("nav a[aria-current=page]") !== null`)
	}
}

// Without scripts, the page is complete.
func TestWebIsCompleteWithoutScripts(t *testing.T) {
	b := open(t, 360, 740, "light")
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.do(chromedp.Navigate(serveWeb(t, startCluster(t))))
	b.do(chromedp.WaitVisible(chromedp.CSS("nav a[aria-current]")), chromedp.WaitVisible(chromedp.CSS("tbody a")), chromedp.WaitNotVisible(chromedp.CSS("#lost")))
}

// A page of another origin gets nothing, though the browser has the cookie.
func TestWebIsClosedToOtherPages(t *testing.T) {
	b := open(t, 1280, 900, "light")
	b.enter(serveWeb(t, startCluster(t)))
	home := eval[string](b, "location.href")
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>evil</title><iframe src="%[1]s"></iframe><script>
			window.got = "";
			const tell = (what) => (text) => { window.got += what + ":" + String(text).includes("mlbatch list") + " "; };
			Promise.allSettled([
				fetch(%[1]q, {credentials: "include"}).then((r) => r.text()).then(tell("fetch"), () => tell("fetch")("")),
				fetch(%[1]q, {credentials: "include", mode: "no-cors"}).then((r) => r.text()).then(tell("no-cors"), () => tell("no-cors")("")),
				new Promise((done) => { const s = new EventSource(%[2]q, {withCredentials: true}); s.onmessage = () => { tell("stream")("mlbatch list"); done(); }; s.onerror = () => { s.close(); tell("stream")(""); done(); }; }),
			]).then(() => { window.done = true; });
		</script>`, home, home+"live/")
	}))
	defer evil.Close() // on another port of this machine, which is the same site
	b.do(chromedp.Navigate(evil.URL))
	b.until(`window.done === true`)
	if got := eval[string](b, `window.got`); strings.Contains(got, "true") || strings.Count(got, "false") != 3 {
		t.Errorf("it got %s", got)
	}
	if frame := eval[string](b, `(() => { try { return document.querySelector("iframe").contentDocument?.body?.textContent ?? "" } catch (e) { return "" } })()`); strings.Contains(frame, "mlbatch list") {
		t.Errorf("the frame shows %s", frame)
	}
}
