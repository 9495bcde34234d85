// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"cmp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/test/golden"
)

// gallery has an AppWrapper in each phase, as the reconciler leaves it.
type gallery map[v1beta2.AppWrapperPhase]*v1beta2.AppWrapper

// settle lets the world settle, and records the AppWrapper before each write and at the end.
func (g gallery) settle(w *world) {
	w.Helper()
	w.noted = func() {
		if aw := w.get(); g[aw.Status.Phase] == nil {
			g[aw.Status.Phase] = aw
		}
	}
	w.settle()
	w.noted()
}

// failing has a failed Job, with or without a retry left.
func (g gallery) failing(t *testing.T, annotations map[string]string) *world {
	t.Helper()
	aw := given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build()
	aw.Annotations = annotations
	w := newWorld(t, aw)
	g.settle(w)
	w.add(pod("j-1", corev1.PodRunning))
	g.settle(w)
	w.setJobCondition("j", "Failed")
	g.settle(w)
	return w
}

// The test of the kube-state-metrics configuration in
// tools/artifacts/components/kube-state-metrics reads these.
func TestAppWrappersOfEachPhase(t *testing.T) {
	g := gallery{}
	g.settle(newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Build()))
	g.failing(t, map[string]string{v1beta2.RetryLimitAnnotation: "0"})
	w := g.failing(t, nil)
	if err := w.api.Delete(t.Context(), pod("j-1", "")); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Hour)
	g.settle(w)
	w.now = w.now.Add(time.Hour)
	g.settle(w)
	w.setJobCondition("j", "Complete")
	g.settle(w)
	w = runningWorld(t)
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true })
	g.settle(w)
	if err := w.api.Delete(t.Context(), w.get()); err != nil {
		t.Fatal(err)
	}
	g.settle(w)

	var documents strings.Builder
	for _, phase := range phaseNames {
		if phase == noPhase {
			phase = ""
		}
		aw := g[v1beta2.AppWrapperPhase(phase)]
		if aw == nil {
			t.Fatalf("no AppWrapper is %q", phase)
		}
		aw.TypeMeta = metav1.TypeMeta{APIVersion: v1beta2.GroupVersion.String(), Kind: v1beta2.AppWrapperKind}
		aw.ObjectMeta = metav1.ObjectMeta{Namespace: aw.Namespace, Name: cmp.Or(strings.ToLower(phase), "new")}
		aw.Spec = v1beta2.AppWrapperSpec{Components: []v1beta2.AppWrapperComponent{}}
		text, err := yaml.Marshal(aw)
		if err != nil {
			t.Fatal(err)
		}
		documents.WriteString("---\n" + string(text))
	}
	golden.Compare(t, "testdata/phases.golden.yaml", []byte(documents.String()))
}
