// SPDX-License-Identifier: Apache-2.0

package podsets

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	queue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/controller/jobs/appwrapper"
	"sigs.k8s.io/kueue/pkg/workload"
)

// pods is what controller/admissionrules says of the pods of an AppWrapper.
type pods struct {
	Defaults  *corev1.LimitRangeItem         `json:"defaults"`
	Overheads map[string]corev1.ResourceList `json:"overheads"`
	Pod       map[string]any                 `json:"pod"`
	Requested corev1.ResourceList            `json:"requested"`
	Counted   corev1.ResourceList            `json:"counted"`
	Stored    map[string]any                 `json:"stored"`
}

// A field that Kueue begins to see, or no longer sees, is one that our rules have to count differently.
func TestKueueCountsWhatPodsRequest(t *testing.T) {
	var cases map[string]pods
	decode(t, "../../../../../controller/admissionrules/testdata/requests.out.yaml", &cases)
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			asWritten := c.countedOf(t, c.Pod)
			if exceeds(c.Counted, asWritten) || exceeds(asWritten, c.Counted) {
				t.Errorf("we think that Kueue counts %v, and it counts %v", c.Counted, asWritten)
			}
			if missing := exceeds(c.Requested, asWritten); missing != (c.Stored != nil) {
				t.Errorf("Kueue counts %v of %v, and an extra is added: %t", asWritten, c.Requested, c.Stored != nil)
			}
			if c.Stored == nil {
				return
			}
			if stored := c.countedOf(t, c.Stored); exceeds(c.Requested, stored) {
				t.Errorf("with the extra, Kueue counts %v of %v", stored, c.Requested)
			}
		})
	}
}

// exceeds tells whether one is more than the other of any resource.
func exceeds(one, other corev1.ResourceList) bool {
	for name, amount := range one {
		if amount.Cmp(other[name]) > 0 {
			return true
		}
	}
	return false
}

// countedOf asks Kueue what it counts for a pod of an AppWrapper.
func (p pods) countedOf(t *testing.T, pod map[string]any) corev1.ResourceList {
	t.Helper()
	job := map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "j"}, "spec": map[string]any{"template": map[string]any{"spec": pod}}}
	encoded, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"components": []any{map[string]any{"template": job}}}})
	if err != nil {
		t.Fatal(err)
	}
	aw := appwrapper.NewJob()
	if err := json.Unmarshal(encoded, aw.Object()); err != nil {
		t.Fatal(err)
	}
	found, err := aw.PodSets(context.Background(), nil)
	if err != nil || len(found) != 1 {
		t.Fatalf("%d pod sets, %v", len(found), err)
	}
	wl := &queue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "a"}, Spec: queue.WorkloadSpec{PodSets: found}}
	workload.AdjustResources(context.Background(), p.cluster(t), wl)
	return workload.NewInfo(wl).TotalRequests[0].Requests.ToResourceList(nil)
}

// cluster has the LimitRange and the RuntimeClasses.
func (p pods) cluster(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, nodev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var objects []client.Object
	if p.Defaults != nil {
		item := *p.Defaults.DeepCopy()
		item.Type = corev1.LimitTypeContainer
		objects = append(objects, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "limits"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}})
	}
	for name, overhead := range p.Overheads {
		objects = append(objects, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: name, Overhead: &nodev1.Overhead{PodFixed: overhead}})
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.LimitRange{}, indexer.LimitRangeHasContainerOrPodType, indexer.IndexLimitRangeHasContainerOrPodType).Build()
}
