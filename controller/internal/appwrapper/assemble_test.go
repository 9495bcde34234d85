// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/test/golden"
)

func TestAssemble(t *testing.T) {
	c := config.Default().AppWrapper
	c.SchedulerName = "scheduler-plugins-scheduler"
	golden.Pairs(t, "testdata/assemble", func(t *testing.T, in []byte) []byte {
		aw := &v1beta2.AppWrapper{}
		if err := yaml.UnmarshalStrict(in, aw); err != nil {
			t.Fatal(err)
		}
		var documents []string
		for i := range aw.Spec.Components {
			object, err := assemble(aw, i, forAllPods(c))
			if err != nil {
				t.Fatal(err)
			}
			text, err := yaml.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			documents = append(documents, string(text))
		}
		return []byte(strings.Join(documents, "---\n"))
	})
}

func TestAssembleRefusesWhatNobodyMayOverrule(t *testing.T) {
	infos := v1beta2.AppWrapperPodSetInfo{Labels: map[string]string{v1beta2.AppWrapperLabel: "other"}}
	for name, tc := range map[string]struct {
		component *given.ComponentBuilder
		metadata  map[string]any
		message   string
	}{
		"another namespace":         {given.ConfigMap("c"), map[string]any{"name": "c", "namespace": "other"}, `namespace "other"`},
		"another controller":        {given.ConfigMap("c"), ownedByReplicaSet(), "ReplicaSet r"},
		"a label that Kueue denies": {given.Job("j", 1).Declaring("template.spec.template", 1).Admitted(infos), nil, v1beta2.AppWrapperLabel},
		"a path that leads nowhere": {given.Job("j", 1).Declaring("template.spec.nowhere", 1), nil, `"nowhere"`},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.metadata != nil {
				tc.component = given.Component(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": tc.metadata})
			}
			aw := given.AppWrapper("a").With(tc.component).InPhase(v1beta2.AppWrapperResuming).Build()
			if _, err := assemble(aw, 0, podtemplate.Edit{}); err == nil || !strings.Contains(err.Error(), tc.message) {
				t.Errorf("want an error about %s, got %v", tc.message, err)
			}
		})
	}
}

func ownedByReplicaSet() map[string]any {
	return map[string]any{"name": "c", "ownerReferences": []any{map[string]any{
		"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": true,
	}}}
}
