// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
)

// Limits are those of the platform's chart, whose Kueue takes more pod sets than older ones. With another Kueue, its
// webhook refuses more.
var Limits = admissionrules.Limits{Components: admissionrules.DefaultLimits.Components, PodSets: 18}

// admit notes what the webhook would say, with the objects that it is about. Of the AppWrapper as
// a whole it says nothing before all objects can be wrapped.
func (p *packer) admit() {
	parts := slices.DeleteFunc(slices.Clone(p.parts), func(part *part) bool { return part.refused })
	decoded := admissionrules.Decode(p.appWrapper(parts))
	var whole field.ErrorList
	for _, problem := range decoded.ValidateCreate(Limits) {
		part, path := component(parts, problem.Field)
		if part == nil {
			whole = append(whole, problem)
			continue
		}
		p.refuse(part, "%s: %s", path, problem.ErrorBody())
	}
	if len(p.refusals) > 0 {
		return
	}
	p.judgeAll(whole)
	for _, warning := range decoded.WarningsOnCreate() {
		if part, rest := component(parts, warning); part != nil {
			warning = fmt.Sprintf("%s: %s/%s: %s", part.File, part.Object.GetKind(), nameOf(part.Object), rest)
		}
		p.notes = append(p.notes, warning)
	}
}

// judgeAll refuses all objects for what is wrong with the AppWrapper. Without an object or pods
// there is more than that, and these reasons suffice.
func (p *packer) judgeAll(wrong field.ErrorList) {
	podSets := 0
	for _, part := range p.parts {
		podSets += len(part.podSets)
	}
	switch {
	case len(p.parts) == 0:
		p.refuseAll("there is no object in the manifests")
	case podSets == 0 && len(p.parts) <= Limits.Components:
		p.refuseAll("no object makes pods that MLBatch knows of: add the Job, Pod or other work that these are for, or say with --pod-set what makes them")
	default:
		for _, problem := range wrong {
			p.refuseAll("the AppWrapper would be refused: %s: %s", problem.Field, problem.ErrorBody())
		}
	}
}

// component returns the object whose component a path begins with, and the rest of the path.
func component(parts []*part, path string) (*part, string) {
	var index int
	if _, err := fmt.Sscanf(path, "spec.components[%d]", &index); err != nil || index >= len(parts) {
		return nil, path
	}
	rest := strings.TrimPrefix(path, fmt.Sprintf("spec.components[%d].", index))
	return parts[index], strings.TrimPrefix(rest, "template.")
}
