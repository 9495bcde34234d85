// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// one returns a pod with one container, after the change.
func one(change func(*corev1.Pod, *corev1.Container)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "operator-1", Namespace: "system", UID: "u-1",
			Labels: map[string]string{"app": "operator"}, Annotations: map[string]string{"note": "x"},
		},
		Spec: corev1.PodSpec{
			NodeName: "node", ServiceAccountName: "operator", RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{Name: "manager", Image: "example.org/operator:1"}},
		},
		Status: corev1.PodStatus{PodIP: "10.200.0.10", HostIP: "10.200.0.1"},
	}
	change(pod, &pod.Spec.Containers[0])
	return pod
}

// stored provides one ConfigMap and one Secret.
var stored = sources{
	read: func(kind, name string) (map[string][]byte, error) {
		switch kind + " " + name {
		case "ConfigMap settings":
			return map[string][]byte{"level": []byte("2"), "mode": []byte("fast")}, nil
		case "Secret cert":
			return map[string][]byte{"tls.crt": []byte("certificate"), "tls.key": []byte("key")}, nil
		}
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
	},
	token: func(p *corev1.ServiceAccountTokenProjection) (string, error) { return "token for " + p.Audience, nil },
}

func TestExpand(t *testing.T) {
	vars := []string{"A=1", "B=two words", "A=3", "EMPTY="}
	for text, want := range map[string]string{
		"":                "",
		"plain":           "plain",
		"--a=$(A)":        "--a=3", // the last one overrides
		"$(B), $(A)":      "two words, 3",
		"$(EMPTY)":        "",
		"$(UNKNOWN)":      "$(UNKNOWN)",
		"$$(A)":           "$(A)",
		"$A":              "$A",
		"$(A":             "$(A",
		"100$":            "100$",
		"$(A)$$(B)$(B)$X": "3$(B)two words$X",
	} {
		if got := expand(text, vars); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestTheEnvironmentKeepsThePodsOrder(t *testing.T) {
	fieldRef := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	pod := one(func(_ *corev1.Pod, c *corev1.Container) {
		c.Env = []corev1.EnvVar{
			{Name: "NAMESPACE", ValueFrom: fieldRef("metadata.namespace")},
			{Name: "IP", ValueFrom: fieldRef("status.podIP")},
			{Name: "APP", ValueFrom: fieldRef("metadata.labels['app']")},
			{Name: "NOTE", ValueFrom: fieldRef("metadata.annotations['note']")},
			{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "cert"}, Key: "tls.key"}}},
			{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "level"}}},
			{Name: "NONE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Key: "x", Optional: ptr.To(true)}}},
			{Name: "ADDRESS", Value: "$(IP):$(LEVEL) at $(HOST)"},
		}
	})
	got, err := environment(pod, []string{"HOST=h"}, stored)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"HOST=h", "NAMESPACE=system", "IP=10.200.0.10", "APP=operator", "NOTE=x",
		"KEY=key", "LEVEL=2", "NONE=", "ADDRESS=10.200.0.10:2 at h",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAMissingValueKeepsThePodWaiting(t *testing.T) {
	settings := corev1.LocalObjectReference{Name: "settings"}
	for name, from := range map[string]*corev1.EnvVarSource{
		"cannot find the value of X: ConfigMap settings has no key none": {ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: settings, Key: "none"}},
		`cannot find the value of X: Secret "settings" not found`:        {SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: settings, Key: "level"}},
		"cannot find the value of X: this node does not support the field spec.hostname": {
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.hostname"}},
	} {
		pod := one(func(_ *corev1.Pod, c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "X", ValueFrom: from}} })
		_, err := environment(pod, nil, stored)
		if err == nil || err.Error() != name {
			t.Errorf("got %v, want %s", err, name)
		}
	}
	broken := sources{read: func(string, string) (map[string][]byte, error) { return nil, errors.New("no answer") }}
	if _, err := broken.content("Secret", "x", ptr.To(true)); err == nil {
		t.Error("what is optional and cannot be read counts as absent")
	}
}
