// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"
)

// The value and the preemptionPolicy of a PriorityClass are immutable, so an upgrade that renders
// others fails.
func TestUpgradesKeepTheirPriorities(t *testing.T) {
	const never, preempts = corev1.PreemptNever, corev1.PreemptLowerPriority
	class := func(name string, value int32, policy corev1.PreemptionPolicy, globalDefault bool) schedulingv1.PriorityClass {
		return schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: globalDefault, PreemptionPolicy: &policy}
	}
	older := []schedulingv1.PriorityClass{class("default-priority", 5, preempts, true), class("high-priority", 10, preempts, false), class("low-priority", 1, preempts, false)}
	ours := []schedulingv1.PriorityClass{class("default-priority", 0, never, false), class("high-priority", 5, never, false), class("low-priority", -5, never, false)}
	for name, c := range map[string]struct {
		values      string
		there, want []schedulingv1.PriorityClass
	}{
		"a new cluster":                   {"{}", nil, ours},
		"an upgrade":                      {"{}", older, older},
		"the next upgrade":                {"{}", ours, ours},
		"one class was deleted":           {"{}", older[:2], append(older[:2:2], ours[2])},
		"older classes without a cluster": {"{priorities: {values: {low-priority: 1, default-priority: 5, high-priority: 10}, preemptionPolicy: PreemptLowerPriority, globalDefault: true}}", nil, older},
		"a default that is switched off":  {"{}", []schedulingv1.PriorityClass{class("default-priority", 0, never, true), ours[1], ours[2]}, ours},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, prioritiesIn(t, values(t, []byte(c.values)), c.there)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// prioritiesIn renders the PriorityClasses for a cluster that has some.
func prioritiesIn(t *testing.T, given map[string]any, there []schedulingv1.PriorityClass) (found []schedulingv1.PriorityClass) {
	t.Helper()
	chart := load(t, "mlbatch")
	if err := chartutil.ProcessDependencies(chart, given); err != nil {
		t.Fatal(err)
	}
	kubernetes := must(chartutil.ParseKubeVersion(must(versions())(t).LocalCluster.Kubernetes))(t)
	options := chartutil.ReleaseOptions{Name: "mlbatch", Namespace: namespace}
	merged := must(chartutil.ToRenderValues(chart, given, options, &chartutil.Capabilities{KubeVersion: *kubernetes, APIVersions: chartutil.DefaultVersionSet}))(t)
	rendered := must(engine.RenderWithClientProvider(chart, merged, clusterWith(there)))(t)
	for _, document := range strings.Split(rendered["mlbatch/templates/priorities.yaml"], "\n---\n") {
		var class schedulingv1.PriorityClass
		if err := yaml.Unmarshal([]byte(document), &class); err != nil {
			t.Fatal(err)
		}
		if class.Name != "" {
			class.TypeMeta, class.Labels, class.Description = metav1.TypeMeta{}, nil, ""
			found = append(found, class)
		}
	}
	return found
}

// clusterWith answers the function lookup of templates.
type clusterWith []schedulingv1.PriorityClass

func (c clusterWith) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	scheme := runtime.NewScheme()
	if err := schedulingv1.AddToScheme(scheme); err != nil {
		return nil, false, err
	}
	var all []runtime.Object
	for i := range c {
		all = append(all, &c[i])
	}
	resource := schema.FromAPIVersionAndKind(apiVersion, kind).GroupVersion().WithResource(strings.ToLower(kind) + "es")
	return fake.NewSimpleDynamicClient(scheme, all...).Resource(resource), false, nil
}
