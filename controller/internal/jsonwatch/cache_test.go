// SPDX-License-Identifier: Apache-2.0

package jsonwatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/patience"
)

var jobKind = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}

func TestOnlyWhatIsJSONIsDecodedHere(t *testing.T) {
	for _, here := range []runtime.Object{&v1beta2.AppWrapper{}, &unstructured.Unstructured{}} {
		if !inJSON(here) {
			t.Errorf("%T", here)
		}
	}
	for _, usual := range []runtime.Object{&corev1.Pod{}, &corev1.Node{}, &metav1.PartialObjectMetadata{}} {
		if inJSON(usual) {
			t.Errorf("%T", usual)
		}
	}
}

// server answers watches with one object each, and ends them. It keeps the questions.
type server struct {
	sync.Mutex
	asked map[string]url.Values // by path
	times map[string]int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Lock()
	s.asked[r.URL.Path] = r.URL.Query()
	s.asked[r.URL.Path].Set("accept", r.Header.Get("Accept"))
	s.times[r.URL.Path]++
	times := s.times[r.URL.Path]
	s.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if times == 1 {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"ServiceUnavailable","code":503}`)
		return
	}
	kind := map[string]string{"/apis/workload.codeflare.dev/v1beta2/appwrappers": "AppWrapper", "/apis/batch/v1/jobs": "Job"}[r.URL.Path]
	version := map[string]string{"AppWrapper": "workload.codeflare.dev/v1beta2", "Job": "batch/v1"}[kind]
	_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"apiVersion":%q,"kind":%q,"metadata":{"name":"a","namespace":"n","resourceVersion":"1"},"status":{"phase":"Running"}}}
{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"2","annotations":{"k8s.io/initial-events-end":"true"}}}}
`, version, kind, version, kind)
	if times > 2 {
		_, _ = fmt.Fprintf(w, `{"type":"MODIFIED","object":{"apiVersion":%q,"kind":%q,"metadata":{"name":"a","namespace":"n","resourceVersion":"3"},"status":{"phase":"Succeeded"}}}`, version, kind)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// A cache outlives an API server that refuses a watch, and watches that end.
func TestACacheHasWhatItsWatchesSay(t *testing.T) {
	s := &server{asked: map[string]url.Values{}, times: map[string]int{}}
	c := startCache(t, s)
	key := client.ObjectKey{Namespace: "n", Name: "a"}
	err := patience.PollFor(t.Context(), time.Millisecond, patience.Short, func(ctx context.Context) (bool, error) {
		aw, job := &v1beta2.AppWrapper{}, &unstructured.Unstructured{}
		job.SetGroupVersionKind(jobKind)
		if err := errors.Join(c.Get(ctx, key, aw), c.Get(ctx, key, job)); err != nil {
			return false, err
		}
		phase, _, err := unstructured.NestedString(job.Object, "status", "phase")
		return phase == "Succeeded" && aw.Status.Phase == v1beta2.AppWrapperSucceeded, err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Lock()
	defer s.Unlock()
	for path, selector := range map[string]string{"/apis/workload.codeflare.dev/v1beta2/appwrappers": "", "/apis/batch/v1/jobs": "ours"} {
		if asked := s.asked[path]; asked.Get("watch") == "" || asked.Get("allowWatchBookmarks") == "" || asked.Get("labelSelector") != selector || !strings.HasPrefix(asked.Get("accept"), "application/json") {
			t.Errorf("%s was asked %v", path, asked)
		}
	}
}

func startCache(t *testing.T, s http.Handler) cache.Cache {
	t.Helper()
	api := httptest.NewServer(s)
	t.Cleanup(func() { api.CloseClientConnections(); api.Close() })
	scheme := runtime.NewScheme()
	if err := v1beta2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(jobKind, meta.RESTScopeNamespace)
	mapper.Add(v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind), meta.RESTScopeNamespace)
	ours, err := labels.Parse("ours")
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(&rest.Config{Host: api.URL}, cache.Options{
		HTTPClient: api.Client(), Scheme: scheme, Mapper: mapper, DefaultLabelSelector: ours,
		ByObject: map[client.Object]cache.ByObject{&v1beta2.AppWrapper{}: {Label: labels.Everything()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("the cache has not started")
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}
