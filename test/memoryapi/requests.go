// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

// request is what a path asks for.
type request struct {
	*http.Request
	resource string
	key      types.NamespacedName
	status   bool
}

// parse understands /api/v1/… and /apis/GROUP/VERSION/….
func parse(r *http.Request) request {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	skip := 3
	if parts[0] == "api" {
		skip = 2
	}
	parts = slices.Concat(parts[min(skip, len(parts)):], []string{"", "", "", "", ""})
	q := request{Request: r}
	if parts[0] == "namespaces" && parts[2] != "" {
		q.key.Namespace = parts[1]
		parts = parts[2:]
	}
	q.resource, q.key.Name, q.status = parts[0], parts[1], parts[2] == "status"
	return q
}

func (q request) group() schema.GroupResource { return schema.GroupResource{Resource: q.resource} }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	q := parse(r)
	if _, served := s.kinds[q.resource]; !served {
		s.succeed(w, q)
		return
	}
	if r.Method == http.MethodGet && q.key.Name == "" {
		s.serveAll(w, q)
		return
	}
	object, err := s.answerOne(q)
	if err != nil {
		status := &apierrors.StatusError{}
		if !errors.As(err, &status) {
			status = apierrors.NewBadRequest(err.Error())
		}
		answer(w, int(status.ErrStatus.Code), status.ErrStatus)
		return
	}
	write(w, http.StatusOK, s.text(object))
}

// text is made once for what is stored.
func (s *Server) text(object Object) []byte {
	s.mu.Lock()
	text := s.texts[object]
	s.mu.Unlock()
	if text == nil { // it has been replaced or removed meanwhile
		text = textOf(object)
	}
	return text
}

// succeed lets events pass, and reviews of rights.
func (s *Server) succeed(w http.ResponseWriter, q request) {
	kind := map[string]string{
		"events": "Event", "selfsubjectaccessreviews": "SelfSubjectAccessReview",
	}[q.resource]
	version := strings.TrimPrefix(strings.Join(strings.Split(q.URL.Path, "/")[1:4], "/"), "apis/")
	answer(w, http.StatusCreated, map[string]any{"apiVersion": version, "kind": kind, "status": map[string]any{"allowed": true}})
}

func answer(w http.ResponseWriter, code int, object any) {
	text, _ := json.Marshal(object) // all of it came as JSON
	write(w, code, text)
}

func write(w http.ResponseWriter, code int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text) // who asks may have gone
}

func (s *Server) serveAll(w http.ResponseWriter, q request) {
	if q.URL.Query().Get("watch") != "" {
		s.serveWatch(w, q)
		return
	}
	selector, err := labels.Parse(q.URL.Query().Get("labelSelector"))
	if err != nil {
		answer(w, http.StatusBadRequest, apierrors.NewBadRequest(err.Error()).ErrStatus)
		return
	}
	items := []any{}
	for _, object := range s.All(q.resource) {
		if (q.key.Namespace == "" || object.GetNamespace() == q.key.Namespace) && selector.Matches(labelled{object}) {
			items = append(items, object.Object)
		}
	}
	kind := s.kinds[q.resource]
	answer(w, http.StatusOK, map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind + "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": items,
	})
}

// labelled are an object's labels. To copy them would take most of the time of a list.
type labelled struct{ Object }

// Lookup is what a selector asks.
func (l labelled) Lookup(key string) (value string, exists bool) {
	value, exists, _ = unstructured.NestedString(l.Object.Object, "metadata", "labels", key)
	return value, exists
}

// Get is empty where there is no such label.
func (l labelled) Get(key string) string {
	value, _ := l.Lookup(key)
	return value
}

// Has tells whether there is such a label.
func (l labelled) Has(key string) bool {
	_, exists := l.Lookup(key)
	return exists
}

func (s *Server) serveWatch(w http.ResponseWriter, q request) {
	w.Header().Set("Content-Type", "application/json")
	watch := s.watch(q.resource, q.URL.Query().Get("sendInitialEvents") == "true")
	defer s.unwatch(watch)
	flush := http.NewResponseController(w)
	for {
		for _, text := range watch.take() {
			if _, err := w.Write(text); err != nil {
				return
			}
		}
		_ = flush.Flush()
		select {
		case <-watch.wake:
		case <-q.Context().Done():
			return
		}
	}
}

// answerOne answers what concerns one object.
func (s *Server) answerOne(q request) (Object, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	switch q.Method {
	case http.MethodPost:
		return s.create(q, body)
	case http.MethodPatch:
		return s.patch(q, body)
	case http.MethodDelete:
		return s.delete(q)
	}
	return s.find(q)
}

func (s *Server) find(q request) (Object, error) {
	if object := s.Get(q.resource, q.key); object != nil {
		return object, nil
	}
	return nil, apierrors.NewNotFound(q.group(), q.key.Name)
}

func (s *Server) create(q request, body []byte) (Object, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	object.SetNamespace(q.key.Namespace)
	if !s.replace(q.resource, nil, object) {
		return nil, apierrors.NewAlreadyExists(q.group(), object.GetName())
	}
	return object, nil
}

// patch knows merge patches, of the status or of all else.
func (s *Server) patch(q request, change []byte) (Object, error) {
	before, err := s.find(q)
	if err != nil {
		return nil, err
	}
	after, err := merge(before, change)
	if err != nil {
		return nil, err
	}
	if before.Object["status"] != nil && !q.status {
		after.Object["status"] = before.Object["status"]
	}
	stored := after
	if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 {
		stored = nil
	}
	if after.GetResourceVersion() != before.GetResourceVersion() || !s.replace(q.resource, before, stored) {
		return nil, apierrors.NewConflict(q.group(), q.key.Name, errors.New("it has changed"))
	}
	return after, nil
}

func merge(before Object, change []byte) (Object, error) {
	changes := map[string]any{}
	if err := json.Unmarshal(change, &changes); err != nil {
		return nil, err
	}
	after := before.DeepCopy()
	Merge(after.Object, changes)
	return after, nil
}

// Merge changes the document as RFC 7386 says. Libraries do it on text, which takes most
// of the time of a server that does nothing else.
func Merge(document, change map[string]any) {
	for key, value := range change {
		inner, isMap := value.(map[string]any)
		old, wasMap := document[key].(map[string]any)
		switch {
		case value == nil:
			delete(document, key)
		case isMap && wasMap:
			Merge(old, inner)
		default:
			document[key] = value
		}
	}
}

func (s *Server) delete(q request) (Object, error) {
	before, err := s.find(q)
	if err != nil {
		return nil, err
	}
	s.Delete(q.resource, q.key)
	return before, nil
}
