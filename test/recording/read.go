// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// Now is when every scene plays.
var Now = time.Date(2026, 11, 22, 10, 30, 0, 0, time.UTC)

// Scene has what are no objects of a cluster, or are not those of the work.
type Scene struct {
	Kind     string            `json:"kind"`
	Absent   map[string]string `json:"absent,omitempty"`
	Unread   []string          `json:"unread,omitempty"`
	Position *explain.Position `json:"position,omitempty"`
	Children []explain.Child   `json:"children,omitempty"`
	// Placed are pods of others.
	Placed []corev1.Pod `json:"placed"`
}

// Read makes objects of a file with many documents.
func Read(in []byte) (explain.Objects, error) {
	o := explain.Objects{Now: Now}
	for _, doc := range bytes.Split(in, []byte("---\n")) {
		if err := Add(&o, doc, yaml.UnmarshalStrict); err != nil {
			return o, err
		}
	}
	return o, nil
}

// Add adds the object of a document, or the parts of a Scene.
func Add(o *explain.Objects, doc []byte, unmarshal func([]byte, any, ...yaml.JSONOpt) error) error {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return fmt.Errorf("%w in\n%s", err, doc)
	}
	into, keep := target(o, head.Kind)
	if err := unmarshal(doc, into); err != nil {
		return fmt.Errorf("%w in\n%s", err, doc)
	}
	keep()
	return nil
}

// target is what a document is read into, and what has to be done then.
func target(o *explain.Objects, kind string) (any, func()) {
	switch kind {
	case "AppWrapper":
		return one(&o.AppWrapper)
	case "Run":
		return one(&o.Run)
	case "Workload":
		return one(&o.Workload)
	case "LocalQueue":
		return one(&o.LocalQueue)
	case "ResourceFlavor":
		return one(&o.Flavor)
	case "Scene":
		s := &Scene{}
		return s, func() {
			o.Absent, o.Unread, o.Position, o.Children, o.Placed = s.Absent, s.Unread, s.Position, s.Children, s.Placed
		}
	}
	return another(o, kind)
}

// another is target for objects of which there are several, and for bare jobs.
func another(o *explain.Objects, kind string) (any, func()) {
	switch kind {
	case "ClusterQueue":
		return oneOf(&o.ClusterQueues)
	case "Cohort":
		return oneOf(&o.Cohorts)
	case "Pod":
		return oneOf(&o.Pods)
	case "Node":
		return oneOf(&o.Nodes)
	case "Event":
		return oneOf(&o.Events)
	}
	o.Job = &unstructured.Unstructured{}
	return &o.Job.Object, func() {}
}

func one[T any](into **T) (any, func()) {
	*into = new(T)
	return *into, func() {}
}

func oneOf[T any](into *[]T) (any, func()) {
	next := new(T)
	return next, func() { *into = append(*into, *next) }
}
