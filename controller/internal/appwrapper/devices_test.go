// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/test/given"
)

// gpuJob is a Job of two pods with 8 GPUs each, and an AppWrapper that has recorded that.
func gpuJob() *v1beta2.AppWrapper {
	container := map[string]any{"name": "main", "resources": map[string]any{"limits": map[string]any{"cpu": "1", "example.com/gpu": "8"}}}
	aw := given.AppWrapper("a").With(given.Component(map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "j"},
		"spec": map[string]any{"parallelism": int64(2), "template": map[string]any{"spec": map[string]any{"containers": []any{container}}}},
	})).InPhase(v1beta2.AppWrapperRunning).Build()
	aw.Status.ComponentStatus = []v1beta2.AppWrapperComponentStatus{{Name: "j", PodSets: []v1beta2.AppWrapperPodSet{{Path: "template.spec.template", Replicas: new(int32(2))}}}}
	return aw
}

// A cached AppWrapper has no templates.
func TestDeclaredDevicesSurviveTheCache(t *testing.T) {
	r := &Reconciler{devices: devicesOf(config.Default().AppWrapper.Autopilot)}
	want := map[string]int64{"example.com/gpu": 16, "nvidia.com/gpu": 0}
	for name, annotations := range map[string]map[string]string{
		"an AppWrapper":                         nil,
		"one whose author writes what we keep":  {declaredDevicesAnnotation: `{"example.com/gpu": 1000}`},
		"one with other annotations":            {v1beta2.RetryLimitAnnotation: "7"},
		"one whose author writes what is wrong": {declaredDevicesAnnotation: "?"},
	} {
		t.Run(name, func(t *testing.T) {
			aw := gpuJob()
			aw.Annotations = maps.Clone(annotations)
			in := newInterner()
			for range 2 { // a cache may do it again
				if _, err := in.slimAppWrapper(aw); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, r.countedDevices(aw, admissionrules.Decode(aw).Templates)); diff != "" {
				t.Errorf("in the cache (-want +got)\n%s", diff)
			}
		})
	}
	whole := gpuJob()
	if diff := cmp.Diff(want, r.countedDevices(whole, admissionrules.Decode(whole).Templates)); diff != "" {
		t.Errorf("in the API server (-want +got)\n%s", diff)
	}
}

func TestEqualPodsShareTheirDevices(t *testing.T) {
	in := newInterner()
	a, b := in.share(map[corev1.ResourceName]int64{"a/x": 1, "a/y": 2}), in.share(map[corev1.ResourceName]int64{"a/y": 2, "a/x": 1})
	if a != b || a == in.share(map[corev1.ResourceName]int64{"a/x": 2, "a/y": 2}) {
		t.Error("equal ones are not the same, or different ones are")
	}
	for i := range int64(2 * mostInterned) {
		in.share(map[corev1.ResourceName]int64{"a/x": i})
	}
	if len(in.requirements) > mostInterned {
		t.Errorf("members can fill the memory: %d are kept", len(in.requirements))
	}
}

// More devices than declared end the attempt, and no request is sent before that.
func TestMoreDevicesThanDeclaredAreSurplus(t *testing.T) {
	aw := gpuJob()
	aw.Spec.Suspend = false
	w := newWorld(t, aw, job("j", "a"))
	for i := range 2 {
		p := pod(fmt.Sprintf("p%d", i), corev1.PodRunning)
		p.Status.StartTime = &metav1.Time{Time: w.now}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"example.com/gpu": resource.MustParse("9")}}}}
		w.add(p)
	}
	w.settle()
	w.liveReads, w.writes = nil, nil
	if wait := w.reconcile().RequeueAfter; wait != time.Minute || len(w.liveReads)+len(w.writes) > 0 {
		t.Errorf("it waits for %s, reads %v and writes %v", wait, w.liveReads, w.writes)
	}
	w.now = w.now.Add(time.Minute)
	w.reconcile()
	w.expectPhase(v1beta2.AppWrapperResetting)
	if got := condition(w.get().Status, v1beta2.Unhealthy); got.Reason != v1beta2.ReasonSurplusPods {
		t.Errorf("the reason is %s: %s", got.Reason, got.Message)
	}
	expectSample(t, w, `appwrapper_surplus_total{} 1`)
}

// An older release counted too few pods, so that nothing is wrong with those that there are.
func TestSurplusOfAnOlderCountIsOnlyReported(t *testing.T) {
	aw := gpuJob()
	aw.Status.ComponentStatus[0].PodSets[0].Replicas = new(int32(1))
	aw.Spec.Suspend = false
	cached := aw.DeepCopy()
	if _, err := newInterner().slimAppWrapper(cached); err != nil || !undercounted(admissionrules.Decode(cached)) {
		t.Errorf("the cache does not know that it was counted with fewer pods (%v)", err)
	}
	forged := gpuJob()
	forged.Annotations = map[string]string{undercountedAnnotation: "true"}
	if _, err := newInterner().slimAppWrapper(forged); err != nil || undercounted(admissionrules.Decode(forged)) {
		t.Errorf("its author can say so (%v)", err)
	}
	w := newWorld(t, aw, job("j", "a"))
	for i := range 2 {
		p := pod(fmt.Sprintf("p%d", i), corev1.PodRunning)
		p.Status.StartTime = &metav1.Time{Time: w.now}
		w.add(p)
	}
	w.settle()
	w.now = w.now.Add(time.Minute)
	w.reconcile()
	w.expectPhase(v1beta2.AppWrapperRunning)
	expectSample(t, w, `appwrapper_surplus_total{} 1`)
}

func TestDevicesThatAPodAsksFor(t *testing.T) {
	type devices = map[corev1.ResourceName]int64
	requests := func(name corev1.ResourceName, n string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse(n)}}}
	}
	limits := func(name corev1.ResourceName, n string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{name: resource.MustParse(n)}}}
	}
	sideCar := limits("a.b/gpu", "1")
	always := corev1.ContainerRestartPolicyAlways
	sideCar.RestartPolicy = &always
	type containers = []corev1.Container
	for name, c := range map[string]struct {
		init, main containers
		want       devices
	}{
		"none":                                     {nil, containers{requests("cpu", "1"), limits("memory", "1Gi"), limits("hugepages-2Mi", "1Gi")}, devices{}},
		"zero is none":                             {nil, containers{limits("a.b/gpu", "0")}, devices{}},
		"a request and a limit":                    {nil, containers{requests("a.b/gpu", "8"), limits("a.b/gpu", "2"), limits("a.b/nic", "1")}, devices{"a.b/gpu": 10, "a.b/nic": 1}},
		"init containers come before":              {containers{limits("a.b/gpu", "4")}, containers{limits("a.b/gpu", "2")}, devices{"a.b/gpu": 4}},
		"side-cars run along":                      {containers{sideCar}, containers{limits("a.b/gpu", "2")}, devices{"a.b/gpu": 3}},
		"as many as a number can have, or so":      {nil, containers{limits("a.b/gpu", "9223372036854775807")}, devices{"a.b/gpu": 9223372036854775807}},
		"the CPU of the same container is not one": {nil, containers{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1"), "a.b/gpu": resource.MustParse("1")}}}}, devices{"a.b/gpu": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, requestedDevices(&corev1.PodSpec{InitContainers: c.init, Containers: c.main})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
