// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// Text is the file of a scene, below a comment. It has only what explain can read, and nothing that differs from one
// recording to the next one.
func Text(comment string, o explain.Objects) ([]byte, error) {
	about(&o)
	docs, err := documents(o)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for i, doc := range docs {
		text, err := yaml.Marshal(doc)
		if err != nil {
			return nil, fmt.Errorf("cannot write a document of the scene: %w", err)
		}
		if i > 0 {
			all.WriteString("---\n")
		}
		all.Write(text)
	}
	return fmt.Appendf(nil, "# %s\n%s", comment, stable(all.String(), o)), nil
}

// documents are the objects without what explain does not read.
func documents(o explain.Objects) ([]map[string]any, error) {
	w := writer{}
	scene := &Scene{Kind: "Scene", Absent: o.Absent, Unread: o.Unread, Position: o.Position, Children: o.Children, Placed: o.Placed}
	if len(o.Absent)+len(o.Unread)+len(o.Children) > 0 || o.Placed != nil || o.Position != nil {
		w.add("", "Scene", scene)
	}
	add(&w, "workload.codeflare.dev/v1beta2", "AppWrapper", o.AppWrapper)
	add(&w, "codeflare.dev/v1alpha1", "Run", o.Run)
	if o.Job != nil {
		w.add(o.Job.GetAPIVersion(), o.Job.GetKind(), o.Job.Object)
	}
	add(&w, kueueVersion, "Workload", o.Workload)
	add(&w, kueueVersion, "LocalQueue", o.LocalQueue)
	addAll(&w, kueueVersion, "ClusterQueue", o.ClusterQueues)
	addAll(&w, kueueVersion, "Cohort", o.Cohorts)
	add(&w, kueueVersion, "ResourceFlavor", o.Flavor)
	addAll(&w, "v1", "Pod", o.Pods)
	addAll(&w, "v1", "Event", o.Events)
	addAll(&w, "v1", "Node", o.Nodes)
	return w.docs, w.err
}

const kueueVersion = "kueue.x-k8s.io/v1beta2"

type writer struct {
	docs []map[string]any
	err  error
}

func add[T any](w *writer, version, kind string, object *T) {
	if object != nil {
		w.add(version, kind, object)
	}
}

func addAll[T any](w *writer, version, kind string, objects []T) {
	for i := range objects {
		w.add(version, kind, &objects[i])
	}
}

func (w *writer) add(version, kind string, object any) {
	data, err := json.Marshal(object)
	doc := map[string]any{}
	if err == nil {
		err = json.Unmarshal(data, &doc)
	}
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("cannot write %s: %w", kind, err)
	}
	doc["kind"] = kind
	if version != "" {
		doc["apiVersion"] = version
	}
	strip(doc)
	w.docs = append(w.docs, doc)
}

// unread are fields that explain does not read, wherever they are.
var unread = []string{
	"managedFields", "resourceVersion", "generation", "observedGeneration", "generateName", "selfLink",
	"podIP", "podIPs", "hostIP", "hostIPs", "containerID", "imageID", "qosClass", "allocatedResources", "volumeMounts", "volumes", "env", "envFrom",
	"terminationMessagePath", "terminationMessagePolicy", "dnsPolicy", "securityContext", "serviceAccount", "serviceAccountName",
	"enableServiceLinks", "preemptionPolicy", "imagePullPolicy", "imagePullSecrets", "command", "args", "ports", "readinessProbe", "livenessProbe", "startupProbe",
	"addresses", "nodeInfo", "images", "daemonEndpoints", "capacity", "podCIDR", "podCIDRs", "lastHeartbeatTime", "lastProbeTime",
	"flavorsUsage", "eventTime", "reportingComponent", "reportingInstance", "source", "series", "action", "related",
}

// emptied are fields that have to be there, and of which explain reads nothing.
var emptied = map[string]any{"components": []any{}, "template": map[string]any{"spec": map[string]any{"containers": []any{}}}}

// noted are annotations that explain does not read.
var noted = []string{"kubectl.kubernetes.io/last-applied-configuration", "kwok.x-k8s.io/node", "node.alpha.kubernetes.io/ttl"}

// strip removes what explain does not read.
func strip(value any) {
	switch v := value.(type) {
	case map[string]any:
		stripMap(v)
	case []any:
		for _, item := range v {
			strip(item)
		}
	}
}

func stripMap(object map[string]any) {
	for key, value := range object {
		empty, is := emptied[key]
		switch {
		case key == "placed" && value != nil: // no pod on any node is something else than that nobody knows
			strip(value)
		case slices.Contains(unread, key), slices.Contains(noted, key), isEmpty(value):
			delete(object, key)
		case is:
			object[key] = empty
		default:
			strip(value)
		}
	}
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
