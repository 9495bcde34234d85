// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

var someObjects = []string{
	`{"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}`,
	`{"spec": {"groups": [{"template": {"spec": {}}}, [{"spec": null}], "text"]}}`,
	`{"": {"a": [[], [0]]}, "a]": 1, "metadata": {"labels": {"a": "b"}}}`,
}

// FuzzFind checks that Find returns everything in an object at its path, and refuses every
// other path.
func FuzzFind(f *testing.F) {
	for _, text := range someObjects {
		f.Add(text, "template.spec.groups[0].template")
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			return
		}
		all := map[string]any{}
		walk(all, root, object)
		for path, want := range all {
			got, err := lookup(object, path)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("at %q there is %v, but %v is found (%v)", path, want, got, err)
			}
		}
		if template, err := Find(object, path); err == nil && template["spec"] == nil {
			t.Errorf("at %q there is no spec", path)
		}
	})
}

// walk collects the values in a value by path, as far as a path can express them.
func walk(all map[string]any, path string, value any) {
	all[path] = value
	switch v := value.(type) {
	case map[string]any:
		for key, held := range v {
			if !strings.ContainsAny(key, ".[") {
				walk(all, path+"."+key, held)
			}
		}
	case []any:
		for i, item := range v {
			walk(all, fmt.Sprintf("%s[%d]", path, i), item)
		}
	}
}

// FuzzApply checks that an edit removes nothing, and that repeating it adds nothing but
// tolerations.
func FuzzApply(f *testing.F) {
	for _, text := range someObjects {
		f.Add(text, `{"labels": {"a": "b"}, "nodeSelector": {"c": "d"}, "schedulingGates": [{"name": "g"}]}`, "a", "b", "gang")
	}
	f.Fuzz(func(t *testing.T, text, information, label, value, scheduler string) {
		var template map[string]any
		edit := Edit{Labels: map[string]string{label: value}, SchedulerName: scheduler}
		if json.Unmarshal([]byte(text), &template) != nil || template == nil || json.Unmarshal([]byte(information), &edit.Info) != nil {
			return
		}
		once := runtime.DeepCopyJSON(template)
		if Apply(once, edit) != nil {
			return
		}
		wantKept(t, "", template, once)
		edit.Info.Tolerations = nil
		twice := runtime.DeepCopyJSON(once)
		if err := Apply(twice, edit); err != nil {
			t.Fatalf("the second time: %v", err)
		}
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Errorf("the second time changes something (-once +twice):\n%s", diff)
		}
		wantAdded(t, once, edit.Info)
	})
}

// wantKept fails unless everything is still there, except an empty schedulerName.
func wantKept(t *testing.T, path string, before, after any) {
	t.Helper()
	switch b := before.(type) {
	case nil:
	case map[string]any:
		a, _ := after.(map[string]any)
		for key, value := range b {
			if key != "schedulerName" {
				wantKept(t, path+"."+key, value, a[key])
			}
		}
	case []any:
		a, _ := after.([]any)
		if len(a) < len(b) || len(b) > 0 && !reflect.DeepEqual(a[:len(b)], b) {
			t.Errorf("at %q was %v and is %v", path, before, after)
		}
	default:
		if !reflect.DeepEqual(before, after) {
			t.Errorf("at %q was %v and is %v", path, before, after)
		}
	}
}

func wantAdded(t *testing.T, template map[string]any, info v1beta2.AppWrapperPodSetInfo) {
	t.Helper()
	metadata, _ := template["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	for key, value := range info.Labels {
		if labels[key] != value {
			t.Errorf("the label %q is %v", key, labels[key])
		}
	}
}
