// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

type object = map[string]any

func TestApply(t *testing.T) {
	seconds := int64(30)
	cases := map[string]struct {
		template object
		edit     Edit
		want     object
	}{
		"nothing to add changes nothing": {
			template: object{"spec": object{}},
			want:     object{"spec": object{}},
		},
		"metadata is made where there is none": {
			template: object{"spec": object{}},
			edit: Edit{
				Info:   v1beta2.AppWrapperPodSetInfo{Annotations: map[string]string{"a": "1"}, Labels: map[string]string{"b": "2"}},
				Labels: map[string]string{"c": "3"},
			},
			want: object{
				"metadata": object{"annotations": object{"a": "1"}, "labels": object{"b": "2", "c": "3"}},
				"spec":     object{},
			},
		},
		"the end of the log is the message of a container that fails, where the author says nothing": {
			template: object{"spec": object{
				"initContainers": []any{object{"name": "i"}},
				"containers":     []any{object{"name": "a"}, object{"name": "b", "terminationMessagePolicy": "File"}},
			}},
			edit: Edit{LastWords: true},
			want: object{"spec": object{
				"initContainers": []any{object{"name": "i", "terminationMessagePolicy": "FallbackToLogsOnError"}},
				"containers": []any{object{"name": "a", "terminationMessagePolicy": "FallbackToLogsOnError"},
					object{"name": "b", "terminationMessagePolicy": "File"}},
			}},
		},
		"what is there stays beside what is added": {
			template: object{
				"metadata": object{"name": "kept", "labels": object{"x": "0"}},
				"spec":     object{"nodeSelector": object{"zone": "a"}},
			},
			edit: Edit{Info: v1beta2.AppWrapperPodSetInfo{Labels: map[string]string{"b": "2"}, NodeSelector: map[string]string{"pool": "gpu"}}},
			want: object{
				"metadata": object{"name": "kept", "labels": object{"x": "0", "b": "2"}},
				"spec":     object{"nodeSelector": object{"zone": "a", "pool": "gpu"}},
			},
		},
		"the same value twice is no conflict": {
			template: object{"metadata": object{"labels": object{"b": "2"}}, "spec": object{"nodeSelector": object{"pool": "gpu"}}},
			edit:     Edit{Info: v1beta2.AppWrapperPodSetInfo{Labels: map[string]string{"b": "2"}, NodeSelector: map[string]string{"pool": "gpu"}}},
			want:     object{"metadata": object{"labels": object{"b": "2"}}, "spec": object{"nodeSelector": object{"pool": "gpu"}}},
		},
		"fields that are null are filled": {
			template: object{"metadata": nil, "spec": object{"tolerations": nil, "nodeSelector": nil}},
			edit: Edit{
				Info:   v1beta2.AppWrapperPodSetInfo{NodeSelector: map[string]string{"pool": "gpu"}, Tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}},
				Labels: map[string]string{"c": "3"},
			},
			want: object{
				"metadata": object{"labels": object{"c": "3"}},
				"spec":     object{"nodeSelector": object{"pool": "gpu"}, "tolerations": []any{object{"key": "k", "operator": "Exists"}}},
			},
		},
		"tolerations are appended even if they are there": {
			template: object{"spec": object{"tolerations": []any{object{"key": "k", "operator": "Exists"}}}},
			edit: Edit{Info: v1beta2.AppWrapperPodSetInfo{Tolerations: []corev1.Toleration{
				{Key: "k", Operator: corev1.TolerationOpExists},
				{Key: "l", Value: "v", Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
			}}},
			want: object{"spec": object{"tolerations": []any{
				object{"key": "k", "operator": "Exists"},
				object{"key": "k", "operator": "Exists"},
				object{"key": "l", "value": "v", "effect": "NoExecute", "tolerationSeconds": int64(30)},
			}}},
		},
		"scheduling gates are appended unless they are there": {
			template: object{"spec": object{"schedulingGates": []any{object{"name": "a"}}}},
			edit:     Edit{Info: v1beta2.AppWrapperPodSetInfo{SchedulingGates: []corev1.PodSchedulingGate{{Name: "a"}, {Name: "b"}}}},
			want:     object{"spec": object{"schedulingGates": []any{object{"name": "a"}, object{"name": "b"}}}},
		},
		"the scheduler is named where none is": {
			template: object{"spec": object{}},
			edit:     Edit{SchedulerName: "gang"},
			want:     object{"spec": object{"schedulerName": "gang"}},
		},
		"a scheduler that is named stays": {
			template: object{"spec": object{"schedulerName": "own"}},
			edit:     Edit{SchedulerName: "gang"},
			want:     object{"spec": object{"schedulerName": "own"}},
		},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			got := runtime.DeepCopyJSON(c.template)
			if err := Apply(got, c.edit); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyRefusesConflicts(t *testing.T) {
	other := map[string]string{"k": "new"}
	labelled := object{"metadata": object{"labels": object{"k": "old"}}, "spec": object{}}
	cases := map[string]struct {
		template object
		edit     Edit
		want     string
	}{
		"a label of Kueue":            {template: labelled, edit: Edit{Info: v1beta2.AppWrapperPodSetInfo{Labels: other}}, want: `label "k" is "old" in the pod template and cannot become "new"`},
		"a label of ours":             {template: labelled, edit: Edit{Labels: other}, want: `label "k" is "old" in the pod template and cannot become "new"`},
		"an annotation":               {template: object{"metadata": object{"annotations": object{"k": "old"}}}, edit: Edit{Info: v1beta2.AppWrapperPodSetInfo{Annotations: other}}, want: `annotation "k" is "old" in the pod template and cannot become "new"`},
		"a node selector":             {template: object{"spec": object{"nodeSelector": object{"k": "old"}}}, edit: Edit{Info: v1beta2.AppWrapperPodSetInfo{NodeSelector: other}}, want: `node selector "k" is "old" in the pod template and cannot become "new"`},
		"labels of a wrong type":      {template: object{"metadata": object{"labels": "text"}}, edit: Edit{Labels: other}, want: "metadata: labels is not an object"},
		"tolerations of a wrong type": {template: object{"spec": object{"tolerations": "text"}}, edit: Edit{Info: v1beta2.AppWrapperPodSetInfo{Tolerations: []corev1.Toleration{{}}}}, want: "spec: tolerations is not a list"},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			got := "no error"
			if err := Apply(runtime.DeepCopyJSON(c.template), c.edit); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
