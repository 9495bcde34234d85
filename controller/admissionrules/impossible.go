// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// cannotBe say why no cluster could create an object of this template, or why it would never get its
// pods. Quota would be reserved for it in vain. What an operator's own release wants is not among
// them: the cluster may have another one.
var cannotBe = []func(template *unstructured.Unstructured, path *field.Path) field.ErrorList{
	wrongTypes,
	wrongName,
	wrongLabels,
	suspended,
	faulty,
}

// cannotRun say why no pod of this template could run, or why nobody would create it.
var cannotRun = []func(kind kinds.Kind, pod located) field.ErrorList{
	wrongImages,
	wrongPodLabels,
	missingContainer,
	wrongPods,
	wrongUnreadPods,
}

// impossible lists why component i could never run.
func (d Decoded) impossible(i int, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	template := d.Templates[i]
	for _, rule := range cannotBe {
		problems = append(problems, rule(template, path)...)
	}
	kind := kinds.For(template.GroupVersionKind())
	for _, pod := range d.podTemplates(i) {
		for _, rule := range cannotRun {
			problems = append(problems, rule(kind, pod)...)
		}
	}
	return problems
}
