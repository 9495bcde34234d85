// SPDX-License-Identifier: Apache-2.0

// Package fakeapiserver is an API server in memory. Real clients, caches and watches use it
// over HTTP, and it is cheap compared with them. It has no schemas, no admission and no garbage
// collector; a test that needs the owner of an object plays it.
package fakeapiserver

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Change is one change of an object. Before is nil for a creation, After is nil for a removal.
type Change struct {
	Resource      string
	Before, After *Object
}

// Server is an API server in memory.
type Server struct {
	// Heard, if not nil, is called for every change.
	Heard func(Change)
	// Allows, if not nil, answers access reviews.
	Allows func(verb, resource string) bool
	// Refuses, if not nil, says what the user may not do. The verb is get, list, watch, create, patch or delete.
	Refuses func(verb, resource, namespace string) bool

	http   *httptest.Server
	paused atomic.Bool
	kinds  map[string]schema.GroupVersionKind // by resource
	mapper *meta.DefaultRESTMapper

	mu       sync.Mutex
	version  int64
	stored   map[string]map[types.NamespacedName]*Object // by resource
	watchers map[*watcher]bool
	requests []string
	// latest are the last changes, for watches that begin where a list has ended.
	latest []stored
}

// stored is a change at a version.
type stored struct {
	Change
	version int64
}

// mostLatest is how many changes are remembered.
const mostLatest = 1000

// inNoNamespace are the kinds without one.
var inNoNamespace = []string{"Node", "Namespace", "ClusterQueue", "Cohort", "ResourceFlavor", "PriorityClass", "WorkloadPriorityClass"}

// Start starts a server for these kinds. It allows everything in access reviews unless Allows says
// otherwise, and drops events.
func Start(kinds ...schema.GroupVersionKind) *Server {
	s := &Server{
		kinds: map[string]schema.GroupVersionKind{}, mapper: meta.NewDefaultRESTMapper(nil),
		stored: map[string]map[types.NamespacedName]*Object{}, watchers: map[*watcher]bool{},
	}
	for _, review := range []string{"SelfSubjectAccessReview", "SubjectAccessReview"} {
		s.mapper.Add(authorizationv1.SchemeGroupVersion.WithKind(review), meta.RESTScopeRoot)
	}
	for _, kind := range kinds {
		scope := meta.RESTScopeNamespace
		if slices.Contains(inNoNamespace, kind.Kind) {
			scope = meta.RESTScopeRoot
		}
		s.mapper.Add(kind, scope)
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		s.kinds[resource.Resource] = kind
		s.stored[resource.Resource] = map[types.NamespacedName]*Object{}
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Stop stops the server and all watches.
func (s *Server) Stop() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Pause ends all connections, and answers nobody until Resume.
func (s *Server) Pause() {
	s.paused.Store(true)
	s.http.CloseClientConnections()
}

// Resume answers again.
func (s *Server) Resume() { s.paused.Store(false) }

// Config configures clients of the server, which reads no protobuf. The dialer makes them keep as many connections as
// with a real server; without it they would keep two, and open a new one for most requests.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host: s.http.URL, QPS: -1, Dial: (&net.Dialer{}).DialContext, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	}
}

// Mapper maps the served kinds.
func (s *Server) Mapper() meta.RESTMapper { return s.mapper }

// Requests returns the verb and path of all requests since the last call.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

// Put stores an object, given as JSON, unchanged.
func (s *Server) Put(text []byte) error {
	object, err := parseObject(text)
	if err != nil {
		return err
	}
	resource, _ := meta.UnsafeGuessKindToResource(object.kind())
	for !s.replace(resource.Resource, s.Get(resource.Resource, object.key()), object) {
	}
	return nil
}

// Patch merges a patch into an object. It retries if another client is faster.
func (s *Server) Patch(resource string, key types.NamespacedName, patch string) error {
	for before := s.Get(resource, key); before != nil; before = s.Get(resource, key) {
		after, err := before.merge([]byte(patch), func(string) bool { return true })
		if err != nil || s.replace(resource, before, after) {
			return err
		}
	}
	return fmt.Errorf("there is no %s in %s", key, resource)
}

// Delete removes an object. If the object has finalizers, it sets the deletion timestamp
// instead.
func (s *Server) Delete(resource string, key types.NamespacedName) {
	for before := s.Get(resource, key); before != nil; before = s.Get(resource, key) {
		var after *Object
		if len(before.Finalizers) > 0 {
			now := metav1.Now()
			after = &Object{ObjectMeta: before.ObjectMeta, Fields: before.Fields}
			after.DeletionTimestamp = &now
		}
		if s.replace(resource, before, after) {
			return
		}
	}
}

// Get returns nil if there is no such object.
func (s *Server) Get(resource string, key types.NamespacedName) *Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored[resource][key]
}

// All returns the objects of a resource, in any order.
func (s *Server) All(resource string) []*Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Object
	for _, object := range s.stored[resource] {
		all = append(all, object)
	}
	return all
}

// replace stores an object, or removes one. It returns false if the object has changed since
// before.
func (s *Server) replace(resource string, before, after *Object) bool {
	if !s.commit(resource, before, after) {
		return false
	}
	if s.Heard != nil {
		s.Heard(Change{resource, before, after})
	}
	return true
}

// commit sets what an API server sets, stores the object and notifies watchers.
func (s *Server) commit(resource string, before, after *Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	object := after
	if after == nil {
		object = &Object{ObjectMeta: before.ObjectMeta, Fields: before.Fields}
	}
	key := object.key()
	if s.stored[resource][key] != before {
		return false
	}
	s.version++
	if object.UID == "" {
		object.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version))
		object.CreationTimestamp = metav1.Now()
	}
	object.ResourceVersion = fmt.Sprint(s.version)
	object.seal()
	s.stored[resource][key] = object
	if after == nil {
		delete(s.stored[resource], key)
	}
	s.latest = append(s.latest[max(0, len(s.latest)-mostLatest+1):], stored{Change{resource, before, after}, s.version})
	for w := range s.watchers {
		if w.resource == resource {
			w.tell(before, after, object)
		}
	}
	return true
}

// tell tells of a change, as far as it is about what is watched. The last version of an object that is gone is told.
func (w *watcher) tell(before, after, last *Object) {
	was, is := before != nil && w.which.has(before), after != nil && w.which.has(after)
	switch {
	case is && was:
		w.add(eventText("MODIFIED", last.text))
	case is:
		w.add(eventText("ADDED", last.text))
	case was:
		w.add(eventText("DELETED", last.text))
	}
}

func eventText(event string, object []byte) []byte {
	return slices.Concat([]byte(`{"type":"`+event+`","object":`), object, []byte("}\n"))
}

// watcher is one open watch. It never blocks writers.
type watcher struct {
	resource string
	which    selection
	mu       sync.Mutex
	pending  []byte
	wake     chan struct{}
}

func (w *watcher) add(text []byte) {
	w.mu.Lock()
	w.pending = append(w.pending, text...)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) take() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	pending := w.pending
	w.pending = nil
	return pending
}

// watch opens a watch. If initially is true, it starts with the existing objects, and else with the changes since a
// version, if there is one.
func (s *Server) watch(resource string, which selection, initially bool, since int64) *watcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &watcher{resource: resource, which: which, wake: make(chan struct{}, 1)}
	s.watchers[w] = true
	if !initially {
		for _, c := range s.latest {
			if since > 0 && c.version > since && c.Resource == resource {
				w.tell(c.Before, c.After, cmp.Or(c.After, c.Before))
			}
		}
		return w
	}
	for _, object := range s.stored[resource] {
		if which.has(object) {
			w.add(eventText("ADDED", object.text))
		}
	}
	version, kind := s.kinds[resource].ToAPIVersionAndKind()
	w.add(eventText("BOOKMARK", fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"%d","annotations":{%q:"true"}}}`,
		version, kind, s.version, metav1.InitialEventsAnnotationKey)))
	return w
}

func (s *Server) unwatch(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watchers, w)
}

// Watched returns the resources that have open watches.
func (s *Server) Watched() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var watched []string
	for w := range s.watchers {
		if !slices.Contains(watched, w.resource) {
			watched = append(watched, w.resource)
		}
	}
	return watched
}
