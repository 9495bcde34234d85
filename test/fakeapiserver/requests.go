// SPDX-License-Identifier: Apache-2.0

package fakeapiserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

// request is a parsed request: the resource and the object that its path names.
type request struct {
	*http.Request
	resource string
	key      types.NamespacedName
	status   bool
}

// parse supports /api/v1/… and /apis/GROUP/VERSION/….
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
	if s.paused.Load() {
		panic(http.ErrAbortHandler) // which closes the connection
	}
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	q := parse(r)
	if s.Refuses != nil && s.Refuses(q.verb(), q.resource, q.key.Namespace) {
		refuse(w, apierrors.NewForbidden(q.group(), q.key.Name, errors.New("you have no such right")))
		return
	}
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
		refuse(w, err)
		return
	}
	if q.onlyMetadata() {
		write(w, "application/vnd.kubernetes.protobuf", http.StatusOK, object.metadataAlone())
		return
	}
	write(w, "application/json", http.StatusOK, object.text)
}

// verb is what rights are about.
func (q request) verb() string {
	switch {
	case q.Method != http.MethodGet:
		return map[string]string{http.MethodPost: "create", http.MethodPatch: "patch", http.MethodDelete: "delete"}[q.Method]
	case q.URL.Query().Get("watch") != "":
		return "watch"
	case q.key.Name == "":
		return "list"
	}
	return "get"
}

// onlyMetadata reports whether the client asks for metadata in protobuf, as all Kubernetes
// clients do.
func (q request) onlyMetadata() bool {
	return strings.HasPrefix(q.Header.Get("Accept"), "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
}

// succeed accepts events, and answers reviews. Everybody is alice. What is not served cannot be read.
func (s *Server) succeed(w http.ResponseWriter, q request) {
	if q.Method == http.MethodGet {
		http.NotFound(w, q.Request)
		return
	}
	kind := map[string]string{
		"events": "Event", "selfsubjectaccessreviews": "SelfSubjectAccessReview", "subjectaccessreviews": "SubjectAccessReview",
		"selfsubjectreviews": "SelfSubjectReview",
	}[q.resource]
	if q.resource == "selfsubjectrulesreviews" {
		answer(w, http.StatusCreated, s.rules(q))
		return
	}
	version := strings.TrimPrefix(strings.Join(strings.Split(q.URL.Path, "/")[1:4], "/"), "apis/")
	answer(w, http.StatusCreated, map[string]any{"apiVersion": version, "kind": kind, "status": map[string]any{
		"allowed": s.allows(q), "userInfo": map[string]any{"username": "alice"},
	}})
}

func refuse(w http.ResponseWriter, err error) {
	status := &apierrors.StatusError{}
	if !errors.As(err, &status) {
		status = apierrors.NewBadRequest(err.Error())
	}
	said := status.ErrStatus
	said.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	answer(w, int(said.Code), said)
}

func answer(w http.ResponseWriter, code int, object any) {
	text, _ := json.Marshal(object) // cannot fail: it was decoded from JSON
	write(w, "application/json", code, text)
}

func write(w http.ResponseWriter, contentType string, code int, text []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text))) // not chunked
	w.WriteHeader(code)
	_, _ = w.Write(text) // the client may be gone
}

func (s *Server) serveAll(w http.ResponseWriter, q request) {
	if q.URL.Query().Get("watch") != "" {
		s.serveWatch(w, q)
		return
	}
	which, err := q.selection()
	if err != nil {
		refuse(w, err)
		return
	}
	items, version := s.selected(q.resource, which)
	kind := s.kinds[q.resource]
	head := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"%d"},"items":[`, kind.GroupVersion(), kind.Kind+"List", max(1, version))
	write(w, "application/json", http.StatusOK, slices.Concat([]byte(head), bytes.Join(items, []byte(",")), []byte("]}")))
}

func (s *Server) serveWatch(w http.ResponseWriter, q request) {
	which, err := q.selection()
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	since, _ := strconv.ParseInt(q.URL.Query().Get("resourceVersion"), 10, 64)
	watch := s.watch(q.resource, which, q.URL.Query().Get("sendInitialEvents") == "true", since)
	defer s.unwatch(watch)
	flush := http.NewResponseController(w)
	for {
		if _, err := w.Write(watch.take()); err != nil {
			return
		}
		_ = flush.Flush()
		select {
		case <-watch.wake:
		case <-q.Context().Done():
			return
		}
	}
}

// answerOne answers a request for one object.
func (s *Server) answerOne(q request) (*Object, error) {
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
		return s.delete(q, body)
	}
	return s.find(q)
}

func (s *Server) find(q request) (*Object, error) {
	if object := s.Get(q.resource, q.key); object != nil {
		return object, nil
	}
	return nil, apierrors.NewNotFound(q.group(), q.key.Name)
}

func (s *Server) create(q request, body []byte) (*Object, error) {
	object, err := parseObject(body)
	if err != nil {
		return nil, err
	}
	object.Namespace = q.key.Namespace
	if !s.replace(q.resource, nil, object) {
		return nil, apierrors.NewAlreadyExists(q.group(), object.Name)
	}
	return object, nil
}

// change is the object after a merge patch, of its status or of everything else, or after a JSON
// patch, which may change both.
func (q request) change(before *Object, patch []byte) (*Object, error) {
	if q.Header.Get("Content-Type") != string(types.JSONPatchType) {
		return before.merge(patch, func(field string) bool { return q.status == (field == "status") })
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	text, err := operations.Apply(before.text)
	if err != nil {
		return nil, err
	}
	return parseObject(text)
}

// patch stores what a patch changes.
func (s *Server) patch(q request, change []byte) (*Object, error) {
	if q.Header.Get("Content-Type") == string(types.ApplyPatchType) {
		return s.apply(q, change)
	}
	before, err := s.find(q)
	if err != nil {
		return nil, err
	}
	after, err := q.change(before, change)
	if err != nil {
		return nil, err
	}
	stored := after
	if after.DeletionTimestamp != nil && len(after.Finalizers) == 0 {
		stored = nil
	}
	if after.ResourceVersion != before.ResourceVersion || !s.replace(q.resource, before, stored) {
		return nil, apierrors.NewConflict(q.group(), q.key.Name, errors.New("it has changed"))
	}
	if stored == nil {
		return before, nil
	}
	return after, nil
}

// apply creates what does not exist. Whatever does exist has another owner.
func (s *Server) apply(q request, body []byte) (*Object, error) {
	if before, _ := s.find(q); before != nil {
		return nil, apierrors.NewConflict(q.group(), q.key.Name, errors.New("another manager owns its fields"))
	}
	return s.create(q, body)
}

func (s *Server) delete(q request, body []byte) (*Object, error) {
	before, err := s.find(q)
	if err != nil {
		return nil, err
	}
	var options metav1.DeleteOptions
	_ = json.Unmarshal(body, &options) // who reads metadata alone sends protobuf, and no preconditions
	if only := options.Preconditions; only != nil && only.ResourceVersion != nil && *only.ResourceVersion != before.ResourceVersion {
		return nil, apierrors.NewConflict(q.group(), q.key.Name, errors.New("it has changed"))
	}
	s.Delete(q.resource, q.key)
	return before, nil
}
