// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// door is a field that may open a team's pods to the outside, or hand out an identity. why is
// what the policy mlbatch-exposure says.
type door struct {
	path  []string
	opens func(value any) bool
	why   string
}

// doors are those of the kinds that the policy judges, in all their versions.
var doors = map[schema.GroupKind][]door{
	{Kind: "Service"}: serviceDoors("spec"),
	{Kind: "Secret"}: {{[]string{"type"}, oneOf(string(corev1.SecretTypeServiceAccountToken)),
		"a Secret in a team namespace cannot have the type kubernetes.io/service-account-token, whose token never expires: " +
			"use a projected serviceAccountToken volume in the pod"}},
	{Group: "ray.io", Kind: "RayCluster"}: headDoors("spec"),
	{Group: "ray.io", Kind: "RayJob"}:     headDoors("spec", "rayClusterSpec"),
	{Group: "ray.io", Kind: "RayService"}: slices.Concat(headDoors("spec", "rayClusterConfig"), serviceDoors("spec", "serveService", "spec")),
}

// toOutside are the types of Services that are open to the outside.
var toOutside = []any{string(corev1.ServiceTypeLoadBalancer), string(corev1.ServiceTypeNodePort)}

// serviceDoors are those of a Service with its spec at this path.
func serviceDoors(spec ...string) []door {
	return []door{
		{below(spec, "type"), oneOf(toOutside...),
			"a Service in a team namespace cannot have the type LoadBalancer or NodePort, which opens it to the outside: " +
				"use ClusterIP and kubectl port-forward, or ask an administrator for access"},
		{below(spec, "externalIPs"), notEmpty,
			"a Service in a team namespace cannot have externalIPs, which would take over the traffic of others: remove them"},
	}
}

// headDoors are those of a Ray cluster with its spec at this path.
func headDoors(spec ...string) []door {
	head := below(spec, "headGroupSpec")
	return append(serviceDoors(below(head, "headService", "spec")...),
		door{below(head, "enableIngress"), oneOf(true),
			"a Ray cluster in a team namespace cannot have enableIngress, which opens its dashboard to the outside: " +
				"remove it and use kubectl port-forward"},
		door{below(head, "serviceType"), oneOf(toOutside...),
			"a Ray cluster in a team namespace cannot have the serviceType LoadBalancer or NodePort, which opens it to the outside: " +
				"remove it and use kubectl port-forward"},
	)
}

// exposed lists the doors that a wrapped object would open in the namespace.
func exposed(namespace Namespace, template *unstructured.Unstructured, path *field.Path) field.ErrorList {
	if !namespace.Policies.Exposure || namespace.Labels[teamLabel] != "true" {
		return nil
	}
	var problems field.ErrorList
	for _, d := range doors[template.GroupVersionKind().GroupKind()] {
		if value, found, err := unstructured.NestedFieldNoCopy(template.Object, d.path...); err == nil && found && d.opens(value) {
			problems = append(problems, field.Forbidden(path.Child(d.path[0], d.path[1:]...), d.why))
		}
	}
	return problems
}

func below(path []string, fields ...string) []string { return slices.Concat(path, fields) }

func oneOf(open ...any) func(any) bool {
	return func(value any) bool { return slices.Contains(open, value) }
}

func notEmpty(value any) bool {
	list, is := value.([]any)
	return is && len(list) > 0
}
