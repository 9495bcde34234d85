// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	names "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func wrongTolerations(in located, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i, t := range in.pod.Spec.Tolerations {
		at := path.Child("tolerations").Index(i)
		problems = append(problems, supported(at.Child("operator"), t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt)...)
		problems = append(problems, supported(at.Child("effect"), t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
		exists := t.Operator == corev1.TolerationOpExists
		switch {
		case exists && t.Value != "":
			problems = append(problems, field.Invalid(at.Child("value"), t.Value, "leave it out: the operator is Exists"))
		case !exists && t.Key == "":
			problems = append(problems, field.Invalid(at.Child("operator"), t.Operator, "must be Exists if there is no key"))
		case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
			problems = append(problems, field.Invalid(at.Child("effect"), t.Effect, "must be NoExecute if there are tolerationSeconds"))
		case t.Key != "":
			problems = append(problems, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
		}
	}
	return problems
}

func wrongAffinity(in located, path *field.Path) field.ErrorList {
	affinity := in.pod.Spec.Affinity
	if affinity == nil {
		return nil
	}
	var problems field.ErrorList
	path = path.Child("affinity")
	if node := affinity.NodeAffinity; node != nil {
		problems = append(problems, wrongNodeAffinity(node, path.Child("nodeAffinity"))...)
	}
	if pods := affinity.PodAffinity; pods != nil {
		problems = append(problems, wrongPodAffinity(pods.RequiredDuringSchedulingIgnoredDuringExecution, pods.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity"))...)
	}
	if pods := affinity.PodAntiAffinity; pods != nil {
		problems = append(problems, wrongPodAffinity(pods.RequiredDuringSchedulingIgnoredDuringExecution, pods.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity"))...)
	}
	return problems
}

const (
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

func wrongNodeAffinity(affinity *corev1.NodeAffinity, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if selector := affinity.RequiredDuringSchedulingIgnoredDuringExecution; selector != nil {
		at := path.Child(required, "nodeSelectorTerms")
		if len(selector.NodeSelectorTerms) == 0 {
			problems = append(problems, field.Required(at, "which nodes?"))
		}
		for i := range selector.NodeSelectorTerms {
			problems = append(problems, wrongTerm(&selector.NodeSelectorTerms[i], at.Index(i))...)
		}
	}
	for i, term := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		at := path.Child(preferred).Index(i)
		problems = append(problems, wrongWeight(term.Weight, at)...)
		problems = append(problems, wrongTerm(&term.Preference, at.Child("preference"))...)
	}
	return problems
}

func wrongWeight(weight int32, path *field.Path) field.ErrorList {
	return invalid(path.Child("weight"), weight, names.IsInRange(int(weight), 1, 100))
}

func wrongTerm(term *corev1.NodeSelectorTerm, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i, r := range term.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		problems = append(problems, metav1validation.ValidateLabelName(r.Key, at.Child("key"))...)
		if least, most, known := valuesOf(r.Operator); !known {
			problems = append(problems, field.NotSupported(at.Child("operator"), r.Operator, []string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}))
		} else if n := len(r.Values); n < least || n > most {
			problems = append(problems, field.Invalid(at.Child("values"), n, fmt.Sprintf("is no number of values for the operator %s", r.Operator)))
		}
	}
	return problems
}

// valuesOf is how many values an operator may have.
func valuesOf(operator corev1.NodeSelectorOperator) (least, most int, known bool) {
	switch operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		return 1, 1 << 30, true
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		return 0, 0, true
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		return 1, 1, true
	}
	return 0, 0, false
}

func wrongPodAffinity(must []corev1.PodAffinityTerm, should []corev1.WeightedPodAffinityTerm, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i := range must {
		problems = append(problems, wrongPodTerm(&must[i], path.Child(required).Index(i))...)
	}
	for i := range should {
		at := path.Child(preferred).Index(i)
		problems = append(problems, wrongWeight(should[i].Weight, at)...)
		problems = append(problems, wrongPodTerm(&should[i].PodAffinityTerm, at.Child("podAffinityTerm"))...)
	}
	return problems
}

func wrongPodTerm(term *corev1.PodAffinityTerm, path *field.Path) field.ErrorList {
	problems := field.ErrorList{}
	if at := path.Child("topologyKey"); term.TopologyKey == "" {
		problems = append(problems, field.Required(at, "which label of nodes, such as kubernetes.io/hostname?"))
	} else {
		problems = append(problems, metav1validation.ValidateLabelName(term.TopologyKey, at)...)
	}
	options := metav1validation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: true}
	return append(problems, metav1validation.ValidateLabelSelector(term.LabelSelector, options, path.Child("labelSelector"))...)
}
