// SPDX-License-Identifier: Apache-2.0

package jsonwatch

import (
	gojson "encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/json"
)

// events are those of a watch, as in {"type":"ADDED","object":{…}}. They are decoded like objects everywhere in
// Kubernetes: names of fields are compared exactly, and what has no field is ignored.
type events struct {
	body  io.ReadCloser
	json  json.Decoder
	fresh func() object
}

func newEvents(body io.ReadCloser, fresh func() object) *events {
	return &events{body, json.NewDecoderCaseSensitivePreserveInts(body), fresh}
}

// Close implements watch.Decoder.
func (e *events) Close() { _ = e.body.Close() } // nothing was written

// Decode implements watch.Decoder. The type of an event says what its object is, and API servers send it first.
func (e *events) Decode() (watch.EventType, runtime.Object, error) {
	var kind watch.EventType
	if err := e.expect(gojson.Delim('{')); err != nil {
		return "", nil, err // which is io.EOF if the watch has ended
	}
	if err := e.expect("type"); err != nil {
		return "", nil, unfinished(err)
	}
	if err := e.json.Decode(&kind); err != nil {
		return "", nil, unfinished(err)
	}
	if err := e.expect("object"); err != nil {
		return "", nil, unfinished(err)
	}
	into := e.fresh()
	if kind == watch.Error {
		into = typed{&metav1.Status{}}
	}
	if err := e.json.Decode(into.fields()); err != nil {
		return "", nil, unfinished(err)
	}
	if err := e.expect(gojson.Delim('}')); err != nil {
		return "", nil, unfinished(err)
	}
	return kind, into.decoded(), nil
}

// expect reads these tokens.
func (e *events) expect(tokens ...gojson.Token) error {
	for _, want := range tokens {
		got, err := e.json.Token()
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("the event has %v in place of %v", got, want)
		}
	}
	return nil
}

// unfinished is an error in the middle of an event, where no watch ends.
func unfinished(err error) error {
	if err == io.EOF { //nolint:errorlint // as readers return it
		return io.ErrUnexpectedEOF
	}
	return err
}

// object is what the object of an event is decoded into.
type object interface {
	// fields are those to decode.
	fields() any
	// decoded is what they make.
	decoded() runtime.Object
}

type typed struct{ runtime.Object }

func (t typed) fields() any             { return t.Object }
func (t typed) decoded() runtime.Object { return t.Object }

// slim is what is left of an unstructured object.
type slim struct {
	metav1.TypeMeta
	Metadata struct {
		metav1.ObjectMeta
		ManagedFields skipped `json:"managedFields"`
	} `json:"metadata"`
	Status map[string]any `json:"status"`
}

func (s *slim) fields() any { return s }

func (s *slim) decoded() runtime.Object {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(s.GroupVersionKind())
	if metadata, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.Metadata.ObjectMeta); err == nil { // it was JSON
		u.Object["metadata"] = metadata
	}
	if s.Status != nil {
		u.Object["status"] = s.Status
	}
	return u
}

// skipped is not decoded.
type skipped struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (skipped) UnmarshalJSON([]byte) error { return nil }
