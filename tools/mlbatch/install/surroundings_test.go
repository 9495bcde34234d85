// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/mlbatch/mlbatch/test/fakecluster"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
)

// around is what a cluster may have that an installation does not fit to.
func around() []runtime.Object {
	return []runtime.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: helmrelease.DefaultNamespace, Name: "company"}, Type: corev1.SecretTypeOpaque},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: helmrelease.DefaultNamespace, Name: "right"}, Type: corev1.SecretTypeDockerConfigJson},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "unlabelled"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "labelled", Labels: map[string]string{teamLabel: "true"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leaving", DeletionTimestamp: &metav1.Time{}, Finalizers: []string{"x"}}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "normal"}, GlobalDefault: true},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{Capacity: corev1.ResourceList{
			"cpu": resource.MustParse("8"), "amd.com/gpu": resource.MustParse("8"), "hugepages-2Mi": resource.MustParse("0"),
		}}},
	}
}

// surrounded renders objects for a cluster that has all of that, and looks.
func surrounded(t *testing.T, typed *fake.Clientset, manifest string) (preflight.Facts, seen) {
	t.Helper()
	objects, err := helmrelease.Decode(manifest)
	if err != nil {
		t.Fatal(err)
	}
	d := &delivery{Release: helmrelease.Release{Name: "teams", Namespace: helmrelease.DefaultNamespace}, objects: objects}
	api := fakecluster.API(typed)
	var f preflight.Facts
	if err := surroundings(t.Context(), api, []*delivery{d}, &f); err != nil {
		t.Fatal(err)
	}
	if err := d.observeOtherNamespaces(t.Context(), api); err != nil {
		t.Fatal(err)
	}
	return f, d.seen
}

const surrounding = `
kind: Deployment
metadata: {name: a, namespace: mlbatch-system}
spec: {template: {spec: {imagePullSecrets: [{name: company}, {name: right}, {name: gone}]}}}
---
kind: Deployment
metadata: {name: b}
spec: {template: {spec: {imagePullSecrets: [{name: gone}]}}}
---
kind: PriorityClass
metadata: {name: default-priority}
globalDefault: true
---
kind: PriorityClass
metadata: {name: low-priority}
globalDefault: false
---
kind: ResourceQuota
metadata: {name: mlbatch-priorities, namespace: labelled}
spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}, {scopeName: PriorityClass, operator: NotIn, values: [low-priority]}]}}
---
kind: ResourceQuota
metadata: {name: mlbatch-priorities, namespace: unlabelled}
spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [low-priority, normal]}]}}
---
kind: Namespace
metadata: {name: created}
---
kind: LocalQueue
metadata: {name: q, namespace: created}
---
kind: LocalQueue
metadata: {name: q, namespace: labelled}
---
kind: LocalQueue
metadata: {name: q, namespace: unlabelled}
---
kind: LocalQueue
metadata: {name: q, namespace: leaving}
---
kind: RoleBinding
metadata: {name: b, namespace: gone}
`

func TestWhatTheReleasesNeedAndDoNotBringIsSeen(t *testing.T) {
	facts, namespaces := surrounded(t, fake.NewClientset(around()...), surrounding)
	want := preflight.Facts{
		PullSecrets:  []preflight.PullSecret{{Name: "company", Type: "Opaque"}, {Name: "gone"}},
		DefaultClass: preflight.DefaultClass{Name: "normal", Rival: "default-priority", Refused: []string{"labelled"}},
		Devices:      []string{"amd.com/gpu"},
	}
	if diff := cmp.Diff(want, facts); diff != "" {
		t.Error(diff)
	}
	wanted := seen{absent: []string{"gone"}, unlabelled: []string{"unlabelled"}, leaving: []preflight.Object{{Kind: "Namespace", Name: "leaving"}}}
	if diff := cmp.Diff(wanted, namespaces, cmp.AllowUnexported(seen{})); diff != "" {
		t.Error(diff)
	}
}

// Whoever may install and not read more than that, is refused nothing.
func TestWhatMayNotBeReadIsNoFinding(t *testing.T) {
	typed := fake.NewClientset()
	typed.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: action.GetResource().Resource}, "", nil)
	})
	facts, namespaces := surrounded(t, typed, surrounding)
	if diff := cmp.Diff(preflight.Facts{}, facts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(seen{}, namespaces, cmp.AllowUnexported(seen{})); diff != "" {
		t.Error(diff)
	}
}

func TestValuesOfTheOtherChartAreTold(t *testing.T) {
	for chart, want := range map[string][]string{"mlbatch": {"cohorts", "teams"}, "teams": {"appwrapper", "roles"}} {
		values := map[string]any{"teams": nil, "cohorts": nil, "roles": nil, "appwrapper": nil, "global": nil, "priorities": nil, "networkPolicy": nil, "misspelt": nil}
		if diff := cmp.Diff(want, foreign(chart, values)); diff != "" {
			t.Errorf("%s: %s", chart, diff)
		}
	}
}
