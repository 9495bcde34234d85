// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

const prefix = v1beta2.AnnotationPrefix

func TestAnnotationsWithoutEffectAreNamedOnCreate(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations, component, template, podSet map[string]string
		want                                     []string
	}{
		"a misspelt one, with what was meant": {
			annotations: map[string]string{prefix + "delectionOnFailureGracePeriodDuration": "1h"},
			want: []string{"metadata.annotations[" + prefix + "delectionOnFailureGracePeriodDuration] is unknown and has no effect: " +
				"did you mean deletionOnFailureGracePeriodDuration?"},
		},
		"one in another case": {
			annotations: map[string]string{prefix + "retrylimit": "1"},
			want:        []string{"metadata.annotations[" + prefix + "retrylimit] is unknown and has no effect: did you mean retryLimit?"},
		},
		"one on what is wrapped": {
			template: map[string]string{prefix + "retryLimit": "1", "example.com/a": "b"},
			want: []string{"spec.components[0].template.metadata.annotations[" + prefix + "retryLimit] has no effect here: " +
				"annotations belong in metadata of the AppWrapper"},
		},
		"one on a component": {
			component: map[string]string{prefix + "retryLimit": "1", "example.com/a": "b"},
			want: []string{"spec.components[0].annotations[" + prefix + "retryLimit] has no effect here: " +
				"annotations belong in metadata of the AppWrapper"},
		},
		"a misspelt one of a pod set": {
			podSet: map[string]string{prefix + "tas-pod-index-lable": "l", v1beta2.PodSetAnnotationTASSubGroupCount: "2"},
			want: []string{"spec.components[0].podSets[0].annotations[" + prefix + "tas-pod-index-lable] is unknown and has no effect: " +
				"did you mean tas-pod-index-label?"},
		},
		"none that is known": {annotations: map[string]string{
			v1beta2.AdmissionGracePeriodDurationAnnotation: "1m",
			v1beta2.WarmupGracePeriodDurationAnnotation:    "1m",
			v1beta2.FailureGracePeriodDurationAnnotation:   "1m",
			v1beta2.RetryPausePeriodDurationAnnotation:     "1m",
			v1beta2.RetryLimitAnnotation:                   "1",
			v1beta2.ForcefulDeletionGracePeriodAnnotation:  "1m",
			v1beta2.DeletionOnFailureGracePeriodAnnotation: "1m",
			v1beta2.SuccessTTLAnnotation:                   "1m",
			v1beta2.TerminalExitCodesAnnotation:            "1",
			v1beta2.RetryableExitCodesAnnotation:           "2",
		}},
		"none of others": {annotations: map[string]string{"example.com/retryLimits": "1", "workload.codeflare.dev.mlbatch/pytorchGeneratorVersion": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			aw := appWrapper(t, declared("[{path: template.spec.template, replicas: 2}]", job))
			aw.Annotations = tc.annotations
			aw.Spec.Components[0].Annotations = tc.component
			aw.Spec.Components[0].Template.Raw = annotated(t, job, tc.template)
			aw.Spec.Components[0].DeclaredPodSets[0].Annotations = tc.podSet
			if diff := cmp.Diff(tc.want, WarningsOnCreate(aw)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestChangedAnnotationsWithoutEffectAreNamedOnUpdate(t *testing.T) {
	before := appWrapper(t, component(job))
	before.Annotations = map[string]string{prefix + "old": "x", v1beta2.RetryLimitAnnotation: "many"}
	after := before.DeepCopy()
	if got := WarningsOnUpdate(before, after); len(got) > 0 {
		t.Errorf("unchanged annotations are validated again: %q", got)
	}
	after.Annotations[prefix+"retryLimits"] = "1"
	after.Annotations[v1beta2.SuccessTTLAnnotation] = "soon"
	want := []string{
		"metadata.annotations[" + prefix + "retryLimits] is unknown and has no effect: did you mean retryLimit?",
		"metadata.annotations[" + v1beta2.SuccessTTLAnnotation + `]: Invalid value: "soon": is not a duration such as "90s", "1h30m" or "7d"` +
			"; the default is used",
	}
	if diff := cmp.Diff(want, WarningsOnUpdate(before, after)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// annotated is a wrapped object with annotations.
func annotated(t *testing.T, object string, annotations map[string]string) []byte {
	t.Helper()
	template := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(object), &template.Object); err != nil {
		t.Fatal(err)
	}
	template.SetAnnotations(annotations)
	raw, err := template.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
