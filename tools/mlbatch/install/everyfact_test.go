// SPDX-License-Identifier: Apache-2.0

package install

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"

	"github.com/mlbatch/mlbatch/test/fakecluster"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
)

// The tests of preflight fill in the facts themselves. So a field that nothing else sets passes them all. Here,
// the cluster has everything that there is a fact about. If this test fails for a new field, add what the field
// is about to the cluster or to the charts.
func TestEveryFactIsSet(t *testing.T) {
	platform := packaged(t, "mlbatch", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cohorts.kueue.x-k8s.io}
spec: {versions: [{name: v1beta2}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kueue-controller-manager}
spec: {template: {spec: {imagePullSecrets: [{name: company}]}}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high-priority}
value: 10
globalDefault: true
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: default-queue, namespace: nowhere}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: default-queue, namespace: unlabelled}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: mlbatch-priorities, namespace: unlabelled}
spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [high-priority]}]}}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: kueue}
`)
	platform.History = helmrelease.History{Last: fakecluster.Revision(1, release.StatusDeployed, nil), Elsewhere: "queues"} // see history_test.go
	platform.values = map[string]any{"flavors": []any{}}
	teams := packaged(t, "teams", `{{ fail "name a team" }}`)
	var all []preflight.Facts
	for _, may := range []func(authorizationv1.ResourceAttributes) bool{
		fakecluster.Everything,
		func(authorizationv1.ResourceAttributes) bool { return false }, // of whom only the rights are looked at
	} {
		j := &job{Installer: Installer{TakeOwnership: true}, api: everything(t, may), all: []*delivery{platform, teams}}
		if err := j.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		facts, err := j.facts(t.Context(), j.api, j.all)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, facts)
	}
	set := map[string]bool{}
	noteSet(reflect.ValueOf(all), set)
	for _, field := range slices.Sorted(maps.Keys(set)) {
		if !set[field] {
			t.Errorf("nothing sets %s", field)
		}
	}
}

// packaged is the delivery of a chart whose part kueue has one template.
func packaged(t *testing.T, name, template string) *delivery {
	t.Helper()
	part := &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: "v2", Name: "kueue", Version: "0.1.0"},
		Templates: []*chart.File{{Name: "templates/all.yaml", Data: []byte(template)}},
	}
	whole := &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: name, Version: "0.1.0"}, Values: map[string]any{"kueue": map[string]any{}}}
	whole.AddDependency(part)
	path, err := chartutil.Save(whole, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return &delivery{Release: helmrelease.Release{Name: name, Namespace: helmrelease.DefaultNamespace}, archive: archive, chart: whole.Metadata}
}

// everything is an OpenShift with somebody's Kueue, and with an object for each that the platform brings.
func everything(t *testing.T, may func(authorizationv1.ResourceAttributes) bool) access.API {
	t.Helper()
	queues := preflight.Owner{Name: "queues", Namespace: "kueue-system"}
	typed := fakecluster.User(may)
	typed.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{Major: "1", Minor: "34", GitVersion: "v1.34.4"}
	if err := typed.Tracker().Add(kueueDeployment("registry.k8s.io/kueue/kueue:v0.16.1", queues)); err != nil {
		t.Fatal(err)
	}
	if err := typed.Tracker().Add(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: "kueue-manager-config"},
		Data:       map[string]string{"controller_manager_config.yaml": kueueConfiguration + "waitForPodsReady: {enable: true}\n"},
	}); err != nil {
		t.Fatal(err)
	}
	for _, o := range around() {
		if err := typed.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}

	leaving := kueueDeployment("", queues)
	leaving.Namespace = helmrelease.DefaultNamespace
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"foregroundDeletion"}
	class := schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}
	priority := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "high-priority"}, "value": int64(1000)}}
	priority.SetGroupVersionKind(class)
	return fakecluster.Serving(typed, []schema.GroupVersionKind{
		class,
		{Group: "config.openshift.io", Version: "v1", Kind: "ClusterVersion"},
		{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"},
		{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "ClusterQueue"},
	}, fakecluster.ConvertedCRD(helmrelease.DefaultNamespace, "v1alpha1"), leaving, priority)
}

// noteSet notes for each field of the structs in a value whether some struct of its type has it set.
func noteSet(v reflect.Value, set map[string]bool) {
	switch v.Kind() {
	case reflect.Struct:
		for n := range v.NumField() {
			name, field := v.Type().String()+"."+v.Type().Field(n).Name, v.Field(n)
			empty := (field.Kind() == reflect.Slice || field.Kind() == reflect.Map) && field.Len() == 0
			set[name] = set[name] || !field.IsZero() && !empty
			noteSet(field, set)
		}
	case reflect.Slice:
		for n := range v.Len() {
			noteSet(v.Index(n), set)
		}
	}
}
