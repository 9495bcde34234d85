// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"testing"

	helm "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

func TestOnlyWhatTheReleaseHasMadeIsRemoved(t *testing.T) {
	release := helmrelease.Release{Name: "guests", Namespace: "default"}
	object := func(name, owner, namespace string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			"meta.helm.sh/release-name": owner, "meta.helm.sh/release-namespace": namespace, "helm.sh/resource-policy": "keep",
		}}}
	}
	api := fake.NewClientBuilder().WithObjects(
		object("ours", "guests", "default"),
		object("kept-when-it-left-the-list", "guests", "default"),
		object("taken-over", "teams", "default"),
		object("of-a-namesake", "guests", "elsewhere"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "made-by-hand"}},
		object("not-in-the-manifest", "guests", "default"),
	).Build()
	const first = `---
{apiVersion: v1, kind: Namespace, metadata: {name: kept-when-it-left-the-list}}
`
	const second = `---
# Source: teams/templates/teams.yaml
{apiVersion: v1, kind: Namespace, metadata: {name: ours}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: taken-over}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: of-a-namesake}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: made-by-hand}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: gone-already}}
`
	history := []*helm.Release{{Manifest: first}, {Manifest: second}}
	objects, err := helmrelease.Decode(manifests(history))
	if err != nil {
		t.Fatal(err)
	}
	if err := removeObjects(t.Context(), api, release, objects, removeTimeout); err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{
		"ours": false, "kept-when-it-left-the-list": false, "taken-over": true, "of-a-namesake": true, "made-by-hand": true, "not-in-the-manifest": true,
	} {
		err := api.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{})
		if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == stays {
			t.Errorf("%s: %v, and it has to stay: %t", name, err, stays)
		}
	}
}
