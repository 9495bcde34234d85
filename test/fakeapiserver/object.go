// SPDX-License-Identifier: Apache-2.0

package fakeapiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// Object is a stored object, which is replaced and never modified. The server decodes only its
// metadata, so that nothing else needs to be decoded, copied and encoded again.
type Object struct {
	metav1.ObjectMeta
	// Fields are all other fields, as JSON.
	Fields map[string]json.RawMessage

	// text is the whole object as JSON, for answers and watches.
	text []byte
}

func parseObject(text []byte) (*Object, error) {
	o := &Object{}
	if err := json.Unmarshal(text, &o.Fields); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(o.Fields["metadata"], &o.ObjectMeta); err != nil {
		return nil, fmt.Errorf("cannot read the metadata: %w", err)
	}
	delete(o.Fields, "metadata")
	return o, nil
}

func (o *Object) key() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// kind is empty if the object lacks apiVersion and kind.
func (o *Object) kind() schema.GroupVersionKind {
	var version, kind string
	_ = json.Unmarshal(o.Fields["apiVersion"], &version)
	_ = json.Unmarshal(o.Fields["kind"], &kind)
	return schema.FromAPIVersionAndKind(version, kind)
}

// seal encodes the object when it is complete.
func (o *Object) seal() {
	var text bytes.Buffer
	text.WriteString(`{"metadata":`)
	metadata, _ := json.Marshal(&o.ObjectMeta) // cannot fail: it was decoded from JSON
	text.Write(metadata)
	for name, value := range o.Fields {
		fmt.Fprintf(&text, ",%q:%s", name, value)
	}
	text.WriteByte('}')
	o.text = text.Bytes()
}

// metadataAlone returns the answer for a client that reads only metadata.
func (o *Object) metadataAlone() []byte {
	var text bytes.Buffer
	partial := &metav1.PartialObjectMetadata{ObjectMeta: o.ObjectMeta}
	partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	_ = protobuf.NewSerializer(nil, nil).Encode(partial, &text) // cannot fail: the type has a protobuf encoding
	return text.Bytes()
}

// merge returns the object with the part of a merge patch whose fields may change.
func (o *Object) merge(patch []byte, may func(field string) bool) (*Object, error) {
	changes := map[string]json.RawMessage{}
	if err := json.Unmarshal(patch, &changes); err != nil {
		return nil, err
	}
	after := &Object{ObjectMeta: o.ObjectMeta, Fields: maps.Clone(o.Fields)}
	for name, change := range changes {
		var err error
		switch {
		case name == "metadata":
			err = after.mergeMetadata(change)
		case may(name):
			err = after.mergeField(name, change)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot patch %s: %w", name, err)
		}
	}
	return after, nil
}

// mergeMetadata supports the changes that our controller makes, and refuses all others.
func (o *Object) mergeMetadata(change json.RawMessage) error {
	merged := struct {
		ResourceVersion string             `json:"resourceVersion"`
		Finalizers      []string           `json:"finalizers"`
		Annotations     map[string]*string `json:"annotations"`
	}{o.ResourceVersion, slices.Clone(o.Finalizers), nil}
	decoder := json.NewDecoder(bytes.NewReader(change))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&merged); err != nil {
		return err
	}
	o.ResourceVersion, o.Finalizers, o.Annotations = merged.ResourceVersion, merged.Finalizers, maps.Clone(o.Annotations)
	for key, value := range merged.Annotations {
		if value == nil {
			delete(o.Annotations, key)
			continue
		}
		if o.Annotations == nil {
			o.Annotations = map[string]string{}
		}
		o.Annotations[key] = *value
	}
	return nil
}

func (o *Object) mergeField(name string, change json.RawMessage) error {
	var before, changes any
	if document := o.Fields[name]; document != nil {
		if err := kjson.Unmarshal(document, &before); err != nil {
			return err
		}
	}
	if err := kjson.Unmarshal(change, &changes); err != nil {
		return err
	}
	field := map[string]any{name: before}
	Merge(field, map[string]any{name: changes})
	text, err := json.Marshal(field[name])
	if err == nil {
		o.Fields[name] = text
	}
	return err
}

// Merge applies a merge patch to a document, as defined in RFC 7386.
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
