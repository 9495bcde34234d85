// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
	"github.com/mlbatch/mlbatch/test/given"
)

// FuzzWhatIsAdmitted checks that an admitted AppWrapper can be deployed, as far as our code is
// concerned, and remains valid for admission.
func FuzzWhatIsAdmitted(f *testing.F) {
	custom := map[string]any{"apiVersion": "example.com/v1", "kind": "Custom", "metadata": map[string]any{"generateName": "c-"},
		"spec": map[string]any{"pods": []any{map[string]any{"spec": map[string]any{}}}}}
	job := func(metadata, ofPods map[string]any) *given.ComponentBuilder {
		return given.Component(map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}, "metadata": ofPods}}})
	}
	labelled := map[string]any{"labels": map[string]any{v1beta2.AppWrapperLabel: "b"}}
	for _, component := range []*given.ComponentBuilder{
		job(ownedByReplicaSet(), nil), job(map[string]any{"name": "j"}, labelled), given.Job("j", 2), given.Job("j", 1).Declaring("template.spec.template", 1),
		given.Component(custom).Declaring("template.spec.pods[0]", 3),
	} {
		aw := given.AppWrapper("a").With(component, given.ConfigMap("c")).Build()
		aw.Annotations = map[string]string{v1beta2.RetryLimitAnnotation: "1", "kueue.x-k8s.io/queue-name": "q"}
		text, err := json.Marshal(aw)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		aw := &v1beta2.AppWrapper{}
		if json.Unmarshal(text, aw) != nil || !storable(aw) {
			return
		}
		admissionrules.WarningsOnCreate(aw)
		admissionrules.DeclarePodSets(aw)
		declared := aw.DeepCopy()
		admissionrules.DeclarePodSets(aw)
		if diff := cmp.Diff(declared, aw); diff != "" {
			t.Errorf("pod sets are declared once more (-once +twice):\n%s", diff)
		}
		if len(admissionrules.ValidateCreate(aw, admissionrules.DefaultLimits)) > 0 {
			return
		}
		if problems := admissionrules.ValidateUpdate(aw, aw.DeepCopy()); len(problems) > 0 {
			t.Errorf("an update that changes nothing is refused: %v", problems)
		}
		wantDeployable(t, aw)
	})
}

// storable reports whether the API server itself accepts the object. A new object has no
// status.
func storable(aw *v1beta2.AppWrapper) bool {
	aw.Status = v1beta2.AppWrapperStatus{}
	aw.UID = "uid"
	return len(validation.IsDNS1123Subdomain(aw.Name)) == 0 && len(validation.IsDNS1123Label(aw.Namespace)) == 0
}

func wantDeployable(t *testing.T, aw *v1beta2.AppWrapper) {
	t.Helper()
	s := lifecycle.Snapshot{Suspend: aw.Spec.Suspend, HasFinalizer: true}
	for i := range aw.Spec.Components {
		template, err := admissionrules.Template(&aw.Spec.Components[i])
		if err != nil {
			t.Fatal(err)
		}
		podSets, problem := plan(aw, i, template)
		s.Components = append(s.Components, lifecycle.Component{PodSets: podSets, Problem: problem})
		aw.Status.ComponentStatus = append(aw.Status.ComponentStatus, v1beta2.AppWrapperComponentStatus{PodSets: podSets})
		aw.Spec.Components[i].PodSetInfos = nil // Kueue's
	}
	want := v1beta2.AppWrapperResuming
	if aw.Spec.Suspend {
		want = v1beta2.AppWrapperSuspended
	}
	if phase := lifecycle.Decide(s, time.Unix(0, 0)).Status.Phase; phase != want {
		t.Errorf("after the first reconcile, the phase is %q, want %q", phase, want)
	}
	for i := range aw.Spec.Components {
		object, err := assemble(aw, i, podtemplate.Edit{SchedulerName: "gang"})
		if err != nil {
			t.Fatalf("component %d cannot be created: %v", i, err)
		}
		if object.GetNamespace() != aw.Namespace || object.GetName() == "" {
			t.Errorf("component %d becomes %q in %q", i, object.GetName(), object.GetNamespace())
		}
	}
}
