// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/wording"
)

// kindsOfPlaces are what a place has, and what commands read beside it.
var kindsOfPlaces = []schema.GroupVersionKind{
	v1beta2.GroupVersion.WithKind("AppWrapper"), v1alpha1.GroupVersion.WithKind("Run"), corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithKind("Pod"),
	corev1.SchemeGroupVersion.WithKind("Event"), corev1.SchemeGroupVersion.WithKind("Namespace"), corev1.SchemeGroupVersion.WithKind("ConfigMap"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
	kueue.SchemeGroupVersion.WithKind("Workload"), kueue.SchemeGroupVersion.WithKind("LocalQueue"), kueue.SchemeGroupVersion.WithKind("ClusterQueue"),
	kueue.SchemeGroupVersion.WithKind("Cohort"), kueue.SchemeGroupVersion.WithKind("ResourceFlavor"),
}

// askedByPages are the command lines whose answers a page has.
var askedByPages = []string{
	"list", "list --me", "list --all-namespaces", "list --state=queued --state=running", "top", "top --by=team", "top --by=queue", "top --by=node", "top --by=flavor",
	"usage", "usage --by=user", "usage --by=cause --since=24h", "usage --namespace=blue", "check", "why w0", "status w0", "why appwrapper/w1", "list --namespace=red", "top --by=nothing", "list --state=none",
}

// What a page says for programs is what the command prints, whatever is on the cluster, and whatever its user may read.
func TestAPageSaysWhatTheCommandPrints(t *testing.T) {
	home(t)
	rapid.Check(t, func(r *rapid.T) {
		api := fakeapiserver.Start(kindsOfPlaces...)
		defer api.Stop()
		drawPlace(r).put(r, api)
		refused := map[string]bool{}
		for _, kind := range kindsOfPlaces {
			refused[strings.ToLower(kind.Kind)+"s"] = rapid.IntRange(0, 9).Draw(r, kind.Kind+" may be read") == 0
		}
		own := rapid.Bool().Draw(r, "only the own namespace")
		api.Refuses = func(_, resource, namespace string) bool {
			return refused[resource] || own && namespace == "" && (resource == "appwrappers" || resource == "workloads" || resource == "pods" || resource == "localqueues" || resource == "nodes")
		}
		kubeconfig := kubeconfigOf(t, api.Config().Host)
		visitor := openPage(t, kubeconfig)
		defer visitor.leave()
		for range 3 {
			line := rapid.SampledFrom(askedByPages).Draw(r, "line")
			visitor.compare(r, line, kubeconfig)
		}
	})
}

func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, namespace: blue}}], clusters: [{name: c, cluster: {server: "` + server + `"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// put stores a place, with queues of blue and with what makes work of it.
func (p place) put(t *rapid.T, api *fakeapiserver.Server) {
	store := func(of schema.GroupVersion, kind string, object any) {
		var fields map[string]any
		text, err := json.Marshal(object)
		if err == nil {
			err = json.Unmarshal(text, &fields)
		}
		fields["apiVersion"], fields["kind"] = of.String(), kind
		if err == nil {
			text, err = json.Marshal(fields)
		}
		if err == nil {
			err = api.Put(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range p.nodes {
		store(corev1.SchemeGroupVersion, "Node", o)
	}
	for _, o := range p.pods {
		store(corev1.SchemeGroupVersion, "Pod", o)
	}
	for _, o := range p.queues {
		store(kueue.SchemeGroupVersion, "ClusterQueue", o)
		store(kueue.SchemeGroupVersion, "LocalQueue", kueue.LocalQueue{
			ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: o.Name}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(o.Name)},
		})
	}
	for _, o := range p.cohorts {
		store(kueue.SchemeGroupVersion, "Cohort", o)
	}
	for _, o := range p.flavors {
		store(kueue.SchemeGroupVersion, "ResourceFlavor", o)
	}
	for _, o := range p.workloads {
		store(kueue.SchemeGroupVersion, "Workload", o)
	}
	for _, o := range p.work {
		store(v1beta2.GroupVersion, "AppWrapper", drawState(t, o))
	}
	for _, name := range []string{"kueue-controller-manager", "appwrapper-controller-manager"} {
		store(appsv1.SchemeGroupVersion, "Deployment", appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "mlbatch-system", Name: name}})
	}
	for _, name := range []string{"blue", "red"} {
		store(corev1.SchemeGroupVersion, "Namespace", corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"mlbatch-team-namespace": "true"}}})
	}
}

// drawState gives an AppWrapper an author, a queue, a phase and a past.
func drawState(t *rapid.T, aw v1beta2.AppWrapper) v1beta2.AppWrapper {
	aw.Namespace = rapid.SampledFrom([]string{"blue", "blue", "red"}).Draw(t, "namespace")
	aw.CreationTimestamp = metav1.NewTime(theTime)
	aw.Labels = map[string]string{
		v1beta2.UserLabel:      rapid.SampledFrom([]string{"alice", "bob"}).Draw(t, "author"),
		v1beta2.QueueNameLabel: rapid.SampledFrom([]string{"q0", "q1", "none"}).Draw(t, "queue"),
	}
	aw.Status.Phase = rapid.SampledFrom([]v1beta2.AppWrapperPhase{
		"", v1beta2.AppWrapperSuspended, v1beta2.AppWrapperResuming, v1beta2.AppWrapperRunning, v1beta2.AppWrapperResetting, v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperFailed,
	}).Draw(t, "phase")
	aw.Status.Retries = rapid.Int32Range(0, 3).Draw(t, "retries")
	if rapid.Bool().Draw(t, "used") {
		aw.Status.Usage = &v1beta2.AppWrapperUsage{UsefulSeconds: rapid.Int64Range(0, 9999).Draw(t, "useful")}
	}
	return aw
}

// visitor has opened a page.
type visitor struct {
	http.Client
	folder string // with the origin
	leave  func()
}

var folderOfPage = regexp.MustCompile(`<a href="(/[A-Z2-7]+)/">`)

// openPage runs mlbatch web, and opens what it prints.
func openPage(t *testing.T, kubeconfig string, args ...string) visitor {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	out, printed := io.Pipe()
	ended := make(chan error, 1)
	progress := &strings.Builder{}
	go func() {
		err := program().Run(ctx, append([]string{"web", "--kubeconfig=" + kubeconfig}, args...), printed, progress)
		printed.CloseWithError(io.EOF)
		ended <- err
	}()
	output := bufio.NewReader(out)
	line, err := output.ReadString('\n')
	if err != nil {
		t.Fatal(err, <-ended)
	}
	address, err := url.Parse(strings.TrimSpace(line))
	if err != nil || address.Hostname() != "127.0.0.1" {
		t.Fatalf("it prints %q, %v", line, err)
	}
	jar, _ := cookiejar.New(nil) // never fails
	v := visitor{Client: http.Client{Jar: jar}, leave: func() {
		interrupt()
		more, _ := io.ReadAll(output)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if log := string(more) + progress.String(); log != "open this address, which works once; interrupt mlbatch (Ctrl-C) to end the page\n" {
			t.Errorf("it also prints %q", log) // where a token, an address or a name might be
		}
	}}
	_, body := v.get(t, address.String())
	folder := folderOfPage.FindStringSubmatch(body)
	if folder == nil {
		t.Fatal(body)
	}
	v.folder = "http://" + address.Host + folder[1]
	return v
}

func (v visitor) get(t interface{ Fatal(...any) }, address string) (code int, body string) {
	response, err := v.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// compare asks the page before and after the command, because time passes. Only what the page says twice counts.
func (v visitor) compare(t *rapid.T, line, kubeconfig string) {
	words := strings.Fields(line)
	query := url.Values{}
	for _, word := range words[1:] {
		if flag, is := strings.CutPrefix(word, "--"); is {
			name, value, _ := strings.Cut(flag+"=true", "=")
			query.Add(name, strings.TrimSuffix(value, "=true"))
			continue
		}
		query.Set("name", word)
	}
	address := v.folder + "/api/" + words[0] + "?" + query.Encode()
	for range 20 {
		code, before := v.get(t, address)
		var out strings.Builder
		err := program().Run(context.Background(), append(words, "-o", "json", "--kubeconfig="+kubeconfig), &out, io.Discard)
		want, wanted := out.String(), http.StatusOK
		if err != nil && !errors.Is(err, somethingFound) {
			first, _, _ := strings.Cut(err.Error(), ": did you mean")
			first, _, _ = strings.Cut(first, ": is the namespace right?")
			first, _, _ = strings.Cut(first, ": 'mlbatch list' lists what there is")
			want, wanted = first+"\n", http.StatusBadGateway
		}
		if _, after := v.get(t, address); after != before {
			continue // a second has passed
		}
		if code != wanted || before != want {
			t.Errorf("mlbatch %s: the page says %d\n%s\nand the command (%v)\n%s", line, code, before, err, want)
		}
		return
	}
	t.Errorf("mlbatch %s: the page never says the same twice", line)
}

func TestWebSaysWhatItCannotDo(t *testing.T) {
	for line, want := range map[string]string{
		"web --kubeconfig=/no/such/file": "cannot find the cluster: check --kubeconfig and --context",
		"web --port=99999":               `invalid argument "99999" for "--port" flag`,
		"web now":                        `unknown command "now" for "mlbatch web"`,
	} {
		home(t)
		out, progress, err := command(t, strings.Fields(line)...)
		wording.OneSentence(t, out+progress, err, want)
	}
}

// With --as, everything is asked as another user.
func TestWebAsksAsAnotherUser(t *testing.T) {
	home(t)
	kubeconfig, asBob := impersonated(t)
	v := openPage(t, kubeconfig, "--as=bob")
	v.get(t, v.folder+"/team")
	v.leave()
	asBob("web")
}

// So it is with every command that knows clusters.
func TestCommandsAskAsAnotherUser(t *testing.T) {
	home(t)
	for _, line := range []string{"list", "top", "why a", "check", "components", "version", "run list", "wait a", "audit", "usage"} {
		kubeconfig, asBob := impersonated(t)
		_, _, _ = command(t, append(strings.Fields(line), "--as=bob", "--as-group=x", "--kubeconfig="+kubeconfig)...)
		asBob(line)
	}
}

// impersonated returns a cluster that has nothing, and a test that all its requests came as bob.
func impersonated(t *testing.T) (kubeconfig string, asBob func(who string)) {
	t.Helper()
	users := make(chan string, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		users <- r.Header.Get("Impersonate-User")
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	return kubeconfigOf(t, server.URL), func(who string) {
		t.Helper()
		close(users)
		if len(users) == 0 {
			t.Errorf("%s: nothing was asked", who)
		}
		for user := range users {
			if user != "bob" {
				t.Errorf("%s: asked as %q", who, user)
			}
		}
	}
}

// Credentials that have expired are said, and those of a new login count without a new start.
func TestWebReadsTheKubeconfigAgain(t *testing.T) {
	home(t)
	pause := again
	again = 0
	t.Cleanup(func() { again = pause })
	// A token is only sent over TLS.
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer new" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"metadata":{"resourceVersion":"1"},"items":[],"status":{"userInfo":{"username":"alice"}}}`)
	}))
	t.Cleanup(server.Close)
	kubeconfig := kubeconfigOf(t, server.URL)
	logIn := func(token string) {
		text := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u, namespace: blue}}], users: [{name: u, user: {token: ` + token + `}}], clusters: [{name: c, cluster: {insecure-skip-tls-verify: true, server: "` + server.URL + `"}}]}`
		if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	logIn("old")
	v := openPage(t, kubeconfig)
	defer v.leave()
	if _, page := v.get(t, v.folder+"/?me=false"); !strings.Contains(page, "the cluster does not accept your credentials: log in again") {
		t.Errorf("got %s", page)
	}
	open, err := v.Get(v.folder + "/live/?me=false")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Body.Close()
	events := bufio.NewScanner(open.Body)
	events.Buffer(nil, 1<<20)
	shows := func(words string) {
		for events.Scan() {
			if strings.Contains(events.Text(), words) {
				return
			}
		}
		t.Fatalf("an open page never shows %q: %v", words, events.Err())
	}
	shows("log in again")
	logIn("new")
	shows("There is no work")
	patience.Await(t, "the page shows the work", func(context.Context) error {
		if code, body := v.get(t, v.folder+"/api/list?me=true"); code != http.StatusOK {
			return errors.New(body)
		}
		return nil
	})
}

func TestTheFileThatABrowserOpensIsTheUsersAlone(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file, err := writeAddress("http://127.0.0.1:1/open?token=a&b")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `url=http://127.0.0.1:1/open?token=a&amp;b"`) {
		t.Errorf("%s, %v", text, err)
	}
	for _, path := range []string{file, filepath.Dir(file)} {
		if about, err := os.Stat(path); err != nil || about.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may read %s: %v, %v", path, about, err)
		}
	}
}

// Other users see the arguments of programs.
func TestTheTokenIsNoArgumentOfTheBrowser(t *testing.T) {
	home(t)
	folder := t.TempDir()
	t.Setenv("DISPLAY", ":0")
	t.Setenv("PATH", folder)
	arguments := filepath.Join(folder, "arguments")
	for _, opener := range []string{"xdg-open", "open"} {
		if err := os.WriteFile(filepath.Join(folder, opener), []byte("#!/bin/sh\necho \"$0 $*\" >"+arguments+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	forget := show(t.Context(), "http://127.0.0.1:1/open?token=secret")
	patience.Await(t, "the browser is started", func(context.Context) error {
		text, err := os.ReadFile(arguments)
		if err == nil && !strings.HasSuffix(string(text), "open.html\n") {
			return fmt.Errorf("got %q", text)
		}
		if strings.Contains(string(text), "secret") || strings.Contains(string(text), "http:") {
			t.Errorf("everybody sees %s", text)
		}
		return err
	})
	forget()
	text, _ := os.ReadFile(arguments)
	file := strings.Fields(string(text))[1]
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", file, err)
	}
}
