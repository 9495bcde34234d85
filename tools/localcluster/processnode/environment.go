// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// environment returns the environment of a pod's container: the given variables, then those of
// the pod, in its order.
func environment(pod *corev1.Pod, given []string, s sources) ([]string, error) {
	container := pod.Spec.Containers[0]
	vars := slices.Clone(given)
	for _, e := range container.Env {
		value, err := expand(e.Value, vars), error(nil)
		if e.ValueFrom != nil {
			if value, err = valueFrom(pod, e.ValueFrom, s); err != nil {
				return nil, fmt.Errorf("cannot find the value of %s: %w", e.Name, err)
			}
		}
		vars = append(vars, e.Name+"="+value)
	}
	return vars, nil
}

func valueFrom(pod *corev1.Pod, from *corev1.EnvVarSource, s sources) (string, error) {
	switch {
	case from.FieldRef != nil:
		return field(pod, from.FieldRef.FieldPath)
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		return s.one("ConfigMap", ref.Name, ref.Key, ref.Optional)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		return s.one("Secret", ref.Name, ref.Key, ref.Optional)
	}
	return "", fmt.Errorf("this node does not support the source %v", from)
}

// field returns the value of a field in the downward API.
func field(pod *corev1.Pod, path string) (string, error) {
	if key, found := strings.CutPrefix(path, "metadata.labels['"); found {
		return pod.Labels[strings.TrimSuffix(key, "']")], nil
	}
	if key, found := strings.CutPrefix(path, "metadata.annotations['"); found {
		return pod.Annotations[strings.TrimSuffix(key, "']")], nil
	}
	known := map[string]string{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "metadata.uid": string(pod.UID),
		"spec.nodeName": pod.Spec.NodeName, "spec.serviceAccountName": pod.Spec.ServiceAccountName,
		"status.podIP": pod.Status.PodIP, "status.hostIP": pod.Status.HostIP,
	}
	value, found := known[path]
	if !found {
		return "", fmt.Errorf("this node does not support the field %s", path)
	}
	return value, nil
}

// expand replaces $(NAME) where NAME is a variable; $$ stands for $.
func expand(text string, vars []string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, after, closed := strings.Cut(strings.TrimPrefix(rest, "("), ")")
		value, known := lookUp(vars, name)
		switch {
		case strings.HasPrefix(rest, "$"):
			out.WriteString("$")
			text = rest[1:]
		case strings.HasPrefix(rest, "(") && closed && known:
			out.WriteString(value)
			text = after
		default:
			out.WriteString("$")
			text = rest
		}
	}
}

// lookUp finds the last variable of a name, which overrides earlier ones.
func lookUp(vars []string, name string) (value string, found bool) {
	for _, v := range slices.Backward(vars) {
		if key, value, _ := strings.Cut(v, "="); key == name {
			return value, true
		}
	}
	return "", false
}

func expandAll(texts, vars []string) []string {
	var out []string
	for _, text := range texts {
		out = append(out, expand(text, vars))
	}
	return out
}
