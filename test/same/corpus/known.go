// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	_ "embed" // the objects
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed known.yaml
var known []byte

// disturb is the annotation of an object that says what somebody does meanwhile.
const disturb = "same.mlbatch.dev/disturb"

// Known are objects with which something has been wrong, and a plain one.
func Known() (all []Case, err error) {
	objects, err := decode(known)
	for _, o := range objects {
		c := Case{Name: o.GetName(), Known: true, Object: o, Disturb: o.GetAnnotations()[disturb]}
		o.SetAnnotations(nil)
		all = append(all, c)
	}
	return all, err
}

// decode reads the documents of a file.
func decode(text []byte) (all []*unstructured.Unstructured, err error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var raw runtime.RawExtension
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw.Raw, &o.Object); err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}
