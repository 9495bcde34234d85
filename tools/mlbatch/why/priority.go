// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

const priorityClassLabel = "kueue.x-k8s.io/priority-class"

// readPriority looks for the priority of work that Kueue has not queued: that of a label, or else that of its pods.
func (r *gathering) readPriority(ctx context.Context) {
	if _, none := r.Absent["Workload"]; !none {
		return
	}
	kind, name := kueue.SchemeGroupVersion.WithKind("WorkloadPriorityClass"), r.labels()[priorityClassLabel]
	if name == "" && r.AppWrapper != nil {
		kind, name = schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), podPriority(r.AppWrapper)
	}
	if name == "" {
		return
	}
	class := &metav1.PartialObjectMetadata{}
	class.SetGroupVersionKind(kind)
	switch err := r.client.Get(ctx, client.ObjectKey{Name: name}, class); {
	case gone(err):
		r.Absent[kind.Kind] = name
	case err != nil:
		r.unread(err, kind.Kind+" "+name+", which it names")
	}
}

// podPriority is the first PriorityClass that a pod template of an AppWrapper names. Kueue takes it.
func podPriority(aw *v1beta2.AppWrapper) string {
	for _, c := range aw.Spec.Components {
		var template any
		if err := json.Unmarshal(c.Template.Raw, &template); err != nil {
			continue
		}
		if name := named(template, "priorityClassName"); name != "" {
			return name
		}
	}
	return ""
}

// named is the text of the first field of a name, at any depth.
func named(value any, field string) string {
	switch v := value.(type) {
	case map[string]any:
		if text, is := v[field].(string); is && text != "" {
			return text
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if text := named(v[key], field); text != "" {
				return text
			}
		}
	case []any:
		for _, item := range v {
			if text := named(item, field); text != "" {
				return text
			}
		}
	}
	return ""
}
