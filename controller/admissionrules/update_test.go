// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"bytes"
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

func TestUpdateForbidsOnlyWhatWasPromisedToKueue(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1beta2.AppWrapper)
		wrong  string
	}{
		"suspend may change": {func(a *v1beta2.AppWrapper) { a.Spec.Suspend = true }, ""},
		"Kueue may add to the pod templates": {func(a *v1beta2.AppWrapper) {
			a.Spec.Components[0].PodSetInfos = make([]v1beta2.AppWrapperPodSetInfo, 1)
		}, ""},
		"component annotations may change": {func(a *v1beta2.AppWrapper) { a.Spec.Components[0].Annotations = map[string]string{"a": "b"} }, ""},
		"pod-set annotations may change": {func(a *v1beta2.AppWrapper) {
			a.Spec.Components[0].DeclaredPodSets[0].Annotations = map[string]string{"a": "b"}
		}, ""},
		"one replica may be spelled out": {func(a *v1beta2.AppWrapper) { a.Spec.Components[0].DeclaredPodSets[0].Replicas = ptr.To(int32(1)) }, ""},
		"other labels may change":        {func(a *v1beta2.AppWrapper) { a.Labels["team"] = "blue" }, ""},
		"a finalizer may go":             {func(a *v1beta2.AppWrapper) { a.Finalizers = nil }, ""},
		"the order of keys in a template": {func(a *v1beta2.AppWrapper) {
			a.Spec.Components[0].Template.Raw = []byte(`{"kind":"Custom","seed":9007199254740993,"apiVersion":"example.com/v1"}`)
		}, ""},
		"a template is immutable": {func(a *v1beta2.AppWrapper) {
			a.Spec.Components[0].Template.Raw = []byte(`{"apiVersion":"example.com/v1","kind":"Other"}`)
		}, "spec.components[0].template"},
		"a large number cannot become its neighbour": {func(a *v1beta2.AppWrapper) {
			a.Spec.Components[0].Template.Raw = []byte(`{"apiVersion":"example.com/v1","kind":"Custom","seed":9007199254740992}`)
		}, "spec.components[0].template"},
		"a template cannot become garbage":      {func(a *v1beta2.AppWrapper) { a.Spec.Components[0].Template.Raw = []byte(`{`) }, "spec.components[0].template"},
		"the number of components is immutable": {func(a *v1beta2.AppWrapper) { a.Spec.Components = nil }, "spec.components"},
		"the number of pod sets is immutable":   {func(a *v1beta2.AppWrapper) { a.Spec.Components[0].DeclaredPodSets = nil }, "spec.components[0].podSets"},
		"replicas are immutable":                {func(a *v1beta2.AppWrapper) { a.Spec.Components[0].DeclaredPodSets[0].Replicas = ptr.To(int32(2)) }, "spec.components[0].podSets[0].replicas"},
		"a path is immutable":                   {func(a *v1beta2.AppWrapper) { a.Spec.Components[0].DeclaredPodSets[0].Path = "template" }, "spec.components[0].podSets[0].path"},
		"the user is immutable":                 {func(a *v1beta2.AppWrapper) { delete(a.Labels, v1beta2.UserLabel) }, "metadata.labels[" + v1beta2.UserLabel + "]"},
		"the user's id is immutable":            {func(a *v1beta2.AppWrapper) { a.Labels[v1beta2.UserIDLabel] = "0" }, "metadata.labels[" + v1beta2.UserIDLabel + "]"},
		"the managing controller is immutable":  {func(a *v1beta2.AppWrapper) { a.Spec.ManagedBy = ptr.To("kueue.x-k8s.io/multikueue") }, "spec.managedBy"},
	} {
		t.Run(name, func(t *testing.T) {
			before := stored()
			after := before.DeepCopy()
			tc.change(after)
			expectField(t, ValidateUpdate(before, after), tc.wrong)
		})
	}
}

// Of a name that it cannot use, Kueue makes no Workload, and says so nowhere.
func TestANameIsJudgedWhenItComesIntoAQueue(t *testing.T) {
	for name, wrong := range map[string]string{
		long(61): "", long(62): "metadata.name", long(63): "metadata.name", "a.b": "metadata.name",
	} {
		before := appWrapper(t, component(job))
		before.Name = name
		after := before.DeepCopy()
		after.Labels = map[string]string{v1beta2.QueueNameLabel: "q"}
		expectField(t, ValidateUpdate(before, after), wrong)
		expectField(t, ValidateUpdate(after, after.DeepCopy()), "") // stored already
		moved := after.DeepCopy()
		moved.Labels[v1beta2.QueueNameLabel] = "another"
		expectField(t, ValidateUpdate(after, moved), "")
	}
}

// Kueue starts work with a merge patch, which replaces the list of components.
func TestKueueMayStartWhatHasNullsInItsTemplate(t *testing.T) {
	before := stored()
	before.Spec.Components[0].Template.Raw = []byte(`{"kind":"Custom","spec":{"template":{"metadata":{"creationTimestamp":null},"list":[{"a":null,"b":1}]}},"status":null}`)
	started := before.DeepCopy()
	started.Spec.Components[0].PodSetInfos = make([]v1beta2.AppWrapperPodSetInfo, 1)
	patch, err := client.MergeFrom(before).Data(started)
	if err != nil {
		t.Fatal(err)
	}
	old, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := jsonpatch.MergePatch(old, patch) // as the API server does
	if err != nil {
		t.Fatal(err)
	}
	after := &v1beta2.AppWrapper{}
	if err := json.Unmarshal(patched, after); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(after.Spec.Components[0].Template.Raw, []byte("null")) {
		t.Errorf("the patch has left nulls: %s", patched)
	}
	expectField(t, ValidateUpdate(before, after), "")
	after.Spec.Components[0].Template.Raw = []byte(`{"kind":"Custom","spec":{"template":{"metadata":{},"list":[{}]}}}`)
	expectField(t, ValidateUpdate(before, after), "spec.components[0].template")
}

// stored is an AppWrapper that today's rules would not admit: its template has no name and its
// path does not exist.
func stored() *v1beta2.AppWrapper {
	aw := &v1beta2.AppWrapper{}
	aw.Labels = map[string]string{v1beta2.UserLabel: "ada", v1beta2.UserIDLabel: "u-1"}
	aw.Finalizers = []string{v1beta2.AppWrapperFinalizer}
	component := v1beta2.AppWrapperComponent{DeclaredPodSets: []v1beta2.AppWrapperPodSet{{Path: "template.nowhere"}}}
	component.Template.Raw = []byte(`{"apiVersion":"example.com/v1","kind":"Custom","seed":9007199254740993}`)
	aw.Spec.Components = []v1beta2.AppWrapperComponent{component}
	return aw
}
