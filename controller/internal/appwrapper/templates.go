// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// said is what a cached AppWrapper has of its templates. They are large, and the API server sends them along with
// every change of anything else.
type said struct {
	// generation is that of the spec, and podSets are those of the status, with which they were counted.
	generation int64
	podSets    [][]v1beta2.AppWrapperPodSet

	heads []runtime.RawExtension
	// notes are annotations that nobody else can set.
	notes map[string]string
}

// saidKept is how many AppWrappers may change at the same time without their templates being read again and again.
const saidKept = 500

// whatTemplatesSay reads the templates, unless they were read before and nothing has changed that counts.
func (in *interner) whatTemplatesSay(aw *v1beta2.AppWrapper) said {
	if known, ok := in.templates.Get(aw.UID); ok && known.(said).still(aw) {
		return known.(said)
	}
	heads := headsOf(aw)
	s := said{generation: aw.Generation, podSets: podSetsOf(aw), heads: heads, notes: in.notesOn(aw, heads)}
	if aw.UID != "" && aw.Generation > 0 {
		in.templates.Add(aw.UID, s)
	}
	return s
}

func (s said) still(aw *v1beta2.AppWrapper) bool {
	return s.generation == aw.Generation && len(s.heads) == len(aw.Spec.Components) && slices.EqualFunc(s.podSets, podSetsOf(aw), func(before, now []v1beta2.AppWrapperPodSet) bool {
		return slices.EqualFunc(before, now, func(p, q v1beta2.AppWrapperPodSet) bool { return p.Path == q.Path && p.Count() == q.Count() })
	})
}

func podSetsOf(aw *v1beta2.AppWrapper) [][]v1beta2.AppWrapperPodSet {
	all := make([][]v1beta2.AppWrapperPodSet, len(aw.Status.ComponentStatus))
	for i := range all {
		all[i] = aw.Status.ComponentStatus[i].PodSets
	}
	return all
}

func headsOf(aw *v1beta2.AppWrapper) []runtime.RawExtension {
	heads := make([]runtime.RawExtension, len(aw.Spec.Components))
	for i := range heads {
		heads[i] = aw.Spec.Components[i].Template
		if head, err := headOf(heads[i].Raw); err == nil { // else a look will tell what is wrong with it
			heads[i].Raw = head
		}
	}
	return heads
}

// notesOn an AppWrapper are what its templates say, or what it has of that already if nothing but heads is left of
// them.
func (in *interner) notesOn(aw *v1beta2.AppWrapper, heads []runtime.RawExtension) map[string]string {
	notes := map[string]string{}
	if slices.EqualFunc(aw.Spec.Components, heads, func(c v1beta2.AppWrapperComponent, head runtime.RawExtension) bool {
		return bytes.Equal(c.Template.Raw, head.Raw)
	}) {
		maps.Copy(notes, aw.Annotations)
		maps.DeleteFunc(notes, func(key, _ string) bool { return !isNote(key) })
		return notes
	}
	maps.DeleteFunc(aw.Annotations, func(key, _ string) bool { return isNote(key) })
	decoded := admissionrules.Decode(aw)
	if decoded.Undercounted() {
		notes[undercountedAnnotation] = "true"
	}
	for key, said := range map[string]string{
		turnsAnnotation: perPath(decoded.Templates, kinds.Kind.Turns), endsAnnotation: perPath(decoded.Templates, kinds.Kind.Ends),
	} {
		if said != "" {
			notes[key] = intern(in, said)
		}
	}
	if declared := declaredDevices(aw, decoded.Templates); len(declared) > 0 {
		if text, err := json.Marshal(declared); err == nil {
			notes[declaredDevicesAnnotation] = intern(in, string(text))
		}
	}
	return notes
}

func isNote(key string) bool {
	return key == declaredDevicesAnnotation || key == undercountedAnnotation || key == turnsAnnotation || key == endsAnnotation
}

// annotate leaves of the annotations what is read.
func (s said) annotate(aw *v1beta2.AppWrapper) {
	maps.DeleteFunc(aw.Annotations, func(key, _ string) bool { return isNote(key) || !strings.HasPrefix(key, v1beta2.AnnotationPrefix) })
	if aw.Annotations == nil && len(s.notes) > 0 {
		aw.Annotations = map[string]string{}
	}
	maps.Copy(aw.Annotations, s.notes)
}
