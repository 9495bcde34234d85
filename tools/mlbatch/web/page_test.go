// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/sameseed"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/web"
)

func TestMain(m *testing.M) { os.Exit(sameseed.Run(m)) }

// platform are the kinds of a cluster with the platform.
var platform = []schema.GroupVersionKind{
	v1beta2.GroupVersion.WithKind("AppWrapper"), v1alpha1.GroupVersion.WithKind("Run"), batchv1.SchemeGroupVersion.WithKind("Job"),
	kueue.SchemeGroupVersion.WithKind("Workload"), kueue.SchemeGroupVersion.WithKind("LocalQueue"), kueue.SchemeGroupVersion.WithKind("ClusterQueue"),
	kueue.SchemeGroupVersion.WithKind("Cohort"), kueue.SchemeGroupVersion.WithKind("ResourceFlavor"), kueue.SchemeGroupVersion.WithKind("WorkloadPriorityClass"),
	corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithKind("Event"),
	corev1.SchemeGroupVersion.WithKind("Namespace"), corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Service"),
	networkingv1.SchemeGroupVersion.WithKind("Ingress"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
}

// cluster is an API server with objects.
func cluster(t testing.TB, kinds []schema.GroupVersionKind, objects ...string) *fakeapiserver.Server {
	t.Helper()
	api := fakeapiserver.Start(kinds...)
	t.Cleanup(api.Stop)
	put(t, api, objects...)
	return api
}

func put(t testing.TB, api *fakeapiserver.Server, objects ...string) {
	t.Helper()
	for _, object := range objects {
		if err := api.Put([]byte(object)); err != nil {
			t.Fatal(err, object)
		}
	}
}

// wrapper is an AppWrapper of alice in namespace blue.
func wrapper(name string, more ...string) string {
	name = text(name)
	return `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"namespace":"blue","name":` + name +
		`,"labels":{"kueue.x-k8s.io/queue-name":"q","workload.codeflare.dev/user":"alice"}},"spec":{"suspend":true,"components":[]},"status":` +
		strings.Join(append(more, `{"phase":"Suspended"}`)[:1], "") + `}`
}

func text(s string) string {
	quoted, _ := json.Marshal(s)
	return string(quoted)
}

// quick is a pace at which tests need not wait.
var quick = web.Pace{
	Pace:  clusterstate.Pace{Doubt: 0, Poll: 50 * time.Millisecond, Idle: time.Hour},
	Least: time.Millisecond, Most: time.Hour, Failed: 50 * time.Millisecond, Rights: time.Hour, Slowest: time.Hour,
}

// site is a page that is served, before somebody has opened it.
type site struct {
	testing.TB
	origin, entrance string
	http.Client
	// folder is where everything is, once it was opened.
	folder string
}

// serve serves the page of a cluster.
func serve(t testing.TB, api *fakeapiserver.Server, pace web.Pace) *site {
	t.Helper()
	scheme, err := runs.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(api.Config(), client.Options{Scheme: scheme, Mapper: web.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	everything := func() (client.Client, error) {
		return client.New(api.Config(), client.Options{Scheme: scheme, Mapper: api.Mapper()})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := web.New(t.Context(), web.Source{Client: c, Everything: everything, Cluster: "test", Namespace: "blue"}, pace)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(t.Context(), listener) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	jar, _ := cookiejar.New(nil) // never fails
	return &site{TB: t, origin: "http://" + listener.Addr().String(), entrance: server.Entrance(), Client: http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// opened is the page after its user has opened the address.
func opened(t testing.TB, api *fakeapiserver.Server, pace web.Pace) *site {
	t.Helper()
	s := serve(t, api, pace)
	s.open()
	return s
}

var toFolder = regexp.MustCompile(`<a href="(/[A-Z2-7]+)/">`)

func (s *site) open() {
	s.Helper()
	code, body := s.ask(s.entrance)
	found := toFolder.FindStringSubmatch(body)
	if code != http.StatusOK || found == nil {
		s.Fatalf("%d: %s", code, body)
	}
	s.folder = found[1]
}

// ask asks for a path of the server, with headers as in "Origin: http://evil.example".
func (s *site) ask(path string, headers ...string) (code int, body string) {
	s.Helper()
	response := s.request(http.MethodGet, path, headers...)
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return response.StatusCode, string(read)
}

func (s *site) request(method, path string, headers ...string) *http.Response {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.origin+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	response, err := s.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	return response
}

// page is a page inside.
func (s *site) page(path string) string {
	s.Helper()
	code, body := s.ask(s.folder + path)
	if code != http.StatusOK {
		s.Fatalf("%s: %d: %s", path, code, body)
	}
	return body
}

// has checks that a page has words.
func (s *site) has(path string, words ...string) {
	s.Helper()
	body := s.page(path)
	for _, word := range words {
		if !strings.Contains(body, word) {
			s.Errorf("%s lacks %q:\n%s", path, word, body)
		}
	}
}

// live are the events of a page that is open, until the test ends.
func (s *site) live(path string) <-chan string {
	s.Helper()
	response := s.request(http.MethodGet, s.folder+"/live"+path)
	if response.StatusCode != http.StatusOK {
		s.Fatalf("%s: %d", path, response.StatusCode)
	}
	s.Cleanup(func() { response.Body.Close() })
	events := make(chan string, 100)
	go func() {
		defer close(events)
		var buffer strings.Builder
		part := make([]byte, 64<<10)
		for {
			n, err := response.Body.Read(part)
			buffer.Write(part[:n])
			for {
				event, rest, whole := strings.Cut(buffer.String(), "\n\n")
				if !whole {
					break
				}
				buffer.Reset()
				buffer.WriteString(rest)
				var main string
				if data, is := strings.CutPrefix(event, "event: main\ndata: "); is && json.Unmarshal([]byte(data), &main) == nil {
					events <- main
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return events
}

// shows waits until an event has a word, and returns it.
func (s *site) shows(events <-chan string, word string) string {
	s.Helper()
	late, last := time.After(patience.For(patience.Short)), ""
	for {
		select {
		case event, open := <-events:
			if last = event; !open {
				s.Fatal("the stream has ended")
			}
			if strings.Contains(event, word) {
				return event
			}
		case <-late:
			s.Fatalf("never shows %q, but\n%s", word, last)
		}
	}
}

// until waits until something is true.
func (s *site) until(is func() bool) {
	s.Helper()
	err := patience.PollFor(s.Context(), 10*time.Millisecond, patience.Short, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		s.Fatal(err)
	}
}

func numbered(n int, one func(i int) string) (all []string) {
	for i := range n {
		all = append(all, one(i))
	}
	return all
}

func name(i int) string { return fmt.Sprintf("train%d", i) }

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "blue", Name: name}
}
