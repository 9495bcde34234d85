// SPDX-License-Identifier: Apache-2.0

// Package pack answers: which AppWrapper wraps these objects, and if none does, why? It is pure.
package pack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/manifests"
)

// Options are what the author decides.
type Options struct {
	// Name is that of the AppWrapper; the default is that of the first object that makes pods.
	Name string
	// Namespace is that of the AppWrapper; the default is that of the objects, if they have one.
	Namespace string
	Queue     string
	// Priority is a PriorityClass for all pods.
	Priority string
	// Labels and Annotations are those of the AppWrapper, besides the label of the queue.
	Labels, Annotations map[string]string
	// PodSets are those of kinds that MLBatch does not know.
	PodSets []PodSet
	// PodGroup lets all pods start together or none.
	PodGroup bool
}

// Refusal says why nothing can be written. File, Kind and Name are empty if it is about all objects.
type Refusal struct {
	File, Kind, Name, Reason string
}

func (r Refusal) String() string {
	if r.Kind == "" {
		return r.Reason
	}
	return fmt.Sprintf("%s: %s/%s: %s", r.File, r.Kind, r.Name, r.Reason)
}

// Packed is an AppWrapper, or the reasons why there is none.
type Packed struct {
	AppWrapper *v1beta2.AppWrapper
	// Notes are what the author should know.
	Notes    []string
	Refusals []Refusal
}

// part is an object, and what is wrapped of it.
type part struct {
	manifests.Document
	declared, podSets []v1beta2.AppWrapperPodSet
	template          *unstructured.Unstructured
	refused           bool
}

// packer packs the objects of one AppWrapper.
type packer struct {
	Options
	parts    []*part
	notes    []string
	refusals []Refusal
}

// Pack packs objects in their order, and leaves them unchanged.
func Pack(documents []manifests.Document, options Options) Packed {
	p := &packer{Options: options}
	p.checkOptions()
	for _, d := range documents {
		p.parts = append(p.parts, &part{Document: d, template: withoutState(d.Object)})
	}
	p.chooseNamespace()
	p.declare()
	for _, part := range p.parts {
		p.judge(part)
	}
	p.refuseTwins()
	p.chooseName()
	p.setPriorities()
	p.group()
	p.admit()
	if len(p.refusals) > 0 {
		return Packed{Refusals: p.refusals}
	}
	return Packed{AppWrapper: p.appWrapper(p.parts), Notes: p.notes}
}

// refuse notes a reason why part cannot be wrapped.
func (p *packer) refuse(part *part, format string, args ...any) {
	part.refused = true
	reason := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ") // several errors may be one
	p.refusals = append(p.refusals, Refusal{part.File, part.Object.GetKind(), nameOf(part.Object), reason})
}

// refuseAll notes a reason that is about no object in particular.
func (p *packer) refuseAll(format string, args ...any) {
	p.refusals = append(p.refusals, Refusal{Reason: fmt.Sprintf(format, args...)})
}

func nameOf(object *unstructured.Unstructured) string {
	return cmp.Or(object.GetName(), object.GetGenerateName())
}

// chooseNamespace takes that of the first object that has one, unless the author names one.
func (p *packer) chooseNamespace() {
	for _, part := range p.parts {
		p.Namespace = cmp.Or(p.Namespace, part.Object.GetNamespace())
	}
}

// judge finds the pod sets of an object, or why it cannot be wrapped.
func (p *packer) judge(part *part) {
	for _, rule := range rules {
		if reason := rule(p, part); reason != "" {
			p.refuse(part, "%s", reason)
			return
		}
	}
	podSets, err := admissionrules.PodSets(part.declared, part.template)
	if err != nil {
		p.refuse(part, "%v", err)
		return
	}
	part.podSets = podSets
	p.notes = append(p.notes, notesOn(part)...)
}

func (p *packer) refuseTwins() {
	seen := map[string]*part{}
	for _, part := range p.parts {
		key := part.Object.GroupVersionKind().GroupKind().String() + "/" + part.Object.GetName()
		if first := seen[key]; first != nil && part.Object.GetName() != "" {
			p.refuse(part, "it is there twice: %s has it, too", first.File)
		}
		seen[key] = part
	}
}

// appWrapper wraps what is left of some objects.
func (p *packer) appWrapper(parts []*part) *v1beta2.AppWrapper {
	aw := &v1beta2.AppWrapper{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta2.GroupVersion.String(), Kind: v1beta2.AppWrapperKind},
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, Annotations: p.Annotations},
	}
	if p.Queue != "" {
		aw.Labels = map[string]string{v1beta2.QueueNameLabel: p.Queue}
	}
	for name, value := range p.Labels {
		if name != v1beta2.QueueNameLabel {
			metav1.SetMetaDataLabel(&aw.ObjectMeta, name, value)
		}
	}
	for _, part := range parts {
		raw, err := json.Marshal(part.template.Object)
		if err != nil {
			p.refuse(part, "it cannot be written as JSON: %v", err)
		}
		aw.Spec.Components = append(aw.Spec.Components, v1beta2.AppWrapperComponent{
			DeclaredPodSets: part.declared, Template: runtime.RawExtension{Raw: raw},
		})
	}
	return aw
}
