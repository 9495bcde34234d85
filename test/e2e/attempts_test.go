// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// What attacks do, and to what.

const ofAppWrappers = "workload.codeflare.dev/v1beta2"

// door is a small AppWrapper whose quota others use.
var door = wrapper("door", 1, lingers)

// bare is a PyTorchJob that no AppWrapper wraps.
var bare = unwrapped("bare")

func unwrapped(name string) victim {
	return victim{
		object: func(s *story) client.Object { return s.unwrapped("pytorchjob", name) },
		ready:  hasPods("training.kubeflow.org/job-name="+name, 2),
	}
}

// counted is an AppWrapper that does not wait long before it is reset.
var counted = victim{
	object: func(*story) client.Object {
		return wrapped("counted", job("counted", "50m", "linger", "0s"), map[string]string{workload.FailureGracePeriodDurationAnnotation: "1s"})
	},
	ready: hasPods(workload.AppWrapperLabel+"=counted", 1),
}

// wrapper is an AppWrapper with so many pods.
func wrapper(name string, pods int, object func(*story, string) any) victim {
	return victim{
		object: func(s *story) client.Object { return wrapped(name, object(s, name), nil) },
		ready:  hasPods(workload.AppWrapperLabel+"="+name, pods),
	}
}

// handed is an AppWrapper that exists for as long as the test likes after its deletion.
var handed = victim{
	object: func(s *story) client.Object { return wrapped("handed", holdsOut(s, "handed"), nil) },
	ready:  func(s *story, ctx context.Context) (string, error) { return s.listening(ctx, "handed", 1) },
}

// lingers is a Job whose pod ends at once when it is told to, and holdsOut one whose pod does so only
// after the test, or when goesNow removes it.
func lingers(_ *story, name string) any { return job(name, "50m", "linger", "0s") }

func holdsOut(_ *story, name string) any {
	stubborn := job(name, "50m", "linger", "1h")
	stubborn.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(3600))
	return stubborn
}

// goesNow removes the pods of an AppWrapper that holds out.
func (s *story) goesNow(ctx context.Context, name string) {
	s.t.Helper()
	err := s.admin.GetControllerRuntimeClient().DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.namespace),
		client.MatchingLabels{workload.AppWrapperLabel: name}, client.GracePeriodSeconds(0))
	if err != nil {
		s.t.Error(err)
	}
}

// hostile is an object of testdata/hostile, and ofKind one of testdata/kinds.
func hostile(kind string) func(*story, string) any {
	return func(s *story, name string) any { return s.hostile(kind, name) }
}

func ofKind(kind string) func(*story, string) any {
	return func(s *story, name string) any { return s.manifestOf(kind, name, "0") }
}

// rayVictim is Ray work of which KubeRay knows that all its pods run.
func rayVictim(w rayWork, changes ...func(*unstructured.Unstructured)) victim {
	return victim{
		object: func(s *story) client.Object {
			object := s.unwrapped(w.kind, w.name)
			for _, change := range changes {
				change(object)
			}
			return object
		},
		ready: func(s *story, ctx context.Context) (string, error) { return s.rayIsReady(ctx, w) },
	}
}

// hostile is an object whose pods run until they are deleted.
func (s *story) hostile(kind, name string) *unstructured.Unstructured {
	s.t.Helper()
	object := &unstructured.Unstructured{}
	s.read(filepath.Join("hostile", kind+".yaml"), map[string]string{"NAME": name, "IMAGE": here.Workload.Name, "RAY": here.Ray.Name}, &object.Object)
	return object
}

// unwrapped is such an object that Kueue queues itself.
func (s *story) unwrapped(kind, name string) *unstructured.Unstructured {
	s.t.Helper()
	object := s.hostile(kind, name)
	object.SetNamespace(s.namespace)
	object.SetLabels(map[string]string{"kueue.x-k8s.io/queue-name": "default-queue"})
	return object
}

// with sets a field of an object.
func with(object *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		panic(err) // a mistake in the test: its object has no such field
	}
	return object
}

// withArgs sets what the program of a role does.
func withArgs(object *unstructured.Unstructured, args []any, role ...string) *unstructured.Unstructured {
	path := append(slices.Clone(role), "template", "spec", "containers")
	containers, _, err := unstructured.NestedSlice(object.Object, path...)
	if err != nil {
		panic(err) // a mistake in the test: its object has no such role
	}
	containers[0].(map[string]any)["args"] = args
	return with(object, containers, path...)
}

// pyTorchJob is one of a single pod, which has a change.
func (s *story) pyTorchJob(name string, change func(*corev1.PodSpec)) *unstructured.Unstructured {
	s.t.Helper()
	pod := corev1.PodSpec{Containers: []corev1.Container{container("pytorch", requests("10m", "32Mi", ""), "linger", "0s")}}
	change(&pod)
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
	if err != nil {
		s.t.Fatal(err)
	}
	object := s.unwrapped("pytorchjob", name)
	unstructured.RemoveNestedField(object.Object, "spec", "pytorchReplicaSpecs", "Worker")
	return with(object, spec, "spec", "pytorchReplicaSpecs", "Master", "template", "spec")
}

// sends creates an object that the story removes.
func (s *story) sends(ctx context.Context, object client.Object) error {
	object.SetNamespace(s.namespace)
	err := s.user.Create(ctx, object)
	if err == nil {
		s.created = append(s.created, object)
	}
	return err
}

// wraps creates an AppWrapper of the name of what it wraps.
func (s *story) wraps(ctx context.Context, object client.Object) error {
	return s.sends(ctx, wrapped(object.GetName(), object, nil))
}

// runsPod submits a wrapped pod.
func (s *story) runsPod(ctx context.Context, name string, change func(*corev1.PodSpec)) error {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	pod.Spec = job(name, "50m", "linger", "0s").Spec.Template.Spec
	change(&pod.Spec)
	return s.wraps(ctx, pod)
}

// spoof creates an object that claims to belong to the AppWrapper door.
func (s *story) spoof(ctx context.Context, kind string) error {
	return s.belongs(ctx, s.hostile(kind, kind))
}

// belongs creates an object that names an admitted AppWrapper as its controller. It does not block
// the owner's deletion: the API server asks for a right to do that.
func (s *story) belongs(ctx context.Context, object client.Object) error {
	owner := &workload.AppWrapper{}
	if err := s.user.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "door"}, owner); err != nil {
		return err
	}
	reference := metav1.NewControllerRef(owner, workload.GroupVersion.WithKind(workload.AppWrapperKind))
	reference.BlockOwnerDeletion = nil
	object.SetOwnerReferences([]metav1.OwnerReference{*reference})
	return s.sends(ctx, object)
}

// posing is a PyTorchJob with quota of its own, whose pods carry the label of another AppWrapper.
func (s *story) posing() *unstructured.Unstructured {
	object := s.unwrapped("pytorchjob", "posing")
	for _, role := range []string{"Master", "Worker"} {
		with(object, "counted", "spec", "pytorchReplicaSpecs", role, "template", "metadata", "labels", workload.AppWrapperLabel)
	}
	return object
}

func (s *story) patch(ctx context.Context, version, resource, name, patch string) error {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(version)
	object.SetKind(resource)
	object.SetNamespace(s.namespace)
	object.SetName(name)
	kind := types.MergePatchType
	if strings.HasPrefix(patch, "[") {
		kind = types.JSONPatchType
	}
	return s.user.Patch(ctx, object, client.RawPatch(kind, []byte(patch)))
}

// orphan deletes an AppWrapper, but nothing that it owns.
func (s *story) orphan(ctx context.Context, name string) error {
	aw := &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
	return s.user.Delete(ctx, aw, client.PropagationPolicy(metav1.DeletePropagationOrphan))
}

// deletesAndKeeps gives a PyTorchJob a finalizer, and deletes it.
func (s *story) deletesAndKeeps(ctx context.Context) error {
	if err := s.patch(ctx, "kubeflow.org/v1", "PyTorchJob", "undead", `{"metadata":{"finalizers":["example.com/keep"]}}`); err != nil {
		return err
	}
	return s.user.Delete(ctx, s.unwrapped("pytorchjob", "undead"))
}

// changesWhileDeleted deletes an AppWrapper and then changes it.
func (s *story) changesWhileDeleted(ctx context.Context, name, patch string) error {
	aw := &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
	if err := s.user.Delete(ctx, aw); err != nil {
		return err
	}
	return s.patch(ctx, ofAppWrappers, "AppWrapper", name, patch)
}

// scale is done by somebody with the role edit: a member may not.
func (s *story) scale(ctx context.Context, name string, replicas int32) error {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	return s.editor.SubResource("scale").Update(ctx, deployment, client.WithSubResourceBody(scale))
}

// disowns labels a RayCluster as one of a RayService. KubeRay finds it invalid then, and does nothing
// more for it. Kueue stops work whose number of pods changes.
func (s *story) disowns(ctx context.Context) error {
	for _, patch := range []string{
		`[{"op":"add","path":"/metadata/labels/ray.io~1originated-from-crd","value":"RayService"}]`,
		`[{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":0},{"op":"replace","path":"/spec/workerGroupSpecs/0/minReplicas","value":0}]`,
	} {
		if err := s.patch(ctx, "ray.io/v1", "RayCluster", disownedCluster.name, patch); err != nil {
			return err
		}
	}
	return nil
}

// toleratesMore adds a toleration to a pod that exists, which Kubernetes allows.
func (s *story) toleratesMore(ctx context.Context) error {
	pods, err := s.pods(ctx, "tolerating")
	if err != nil || len(pods) == 0 {
		return fmt.Errorf("there are %d pods (%w)", len(pods), err)
	}
	return s.editor.Patch(ctx, &pods[0], client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/tolerations/-","value":{"operator":"Exists"}}]`)))
}

// upgrade makes KubeRay believe that the cluster of the RayService upgraded is that of another spec.
func (s *story) upgrade(ctx context.Context) error {
	cluster, err := s.clusterOf(ctx, rayWork{name: "upgraded"})
	if err != nil {
		return err
	}
	return s.patch(ctx, "ray.io/v1", "RayCluster", cluster.Name, `{"metadata":{"annotations":{"ray.io/hash-without-replicas-and-workers-to-delete":"another"}}}`)
}

// startsLarger creates a RayCluster of no workers, of which KubeRay makes one of two.
func (s *story) startsLarger(ctx context.Context) error {
	cluster := s.unwrapped("raycluster", "larger")
	groups, _, err := unstructured.NestedSlice(cluster.Object, "spec", "workerGroupSpecs")
	if err != nil {
		return err
	}
	groups[0].(map[string]any)["replicas"] = int64(0)
	return s.sends(ctx, with(cluster, groups, "spec", "workerGroupSpecs"))
}

// wrapsOlder wraps a RayCluster in an old version, and declares its head. That version has one host
// for each worker.
func (s *story) wrapsOlder(ctx context.Context) error {
	cluster := s.hostile("raycluster", "older")
	cluster.SetAPIVersion("ray.io/v1alpha1")
	aw := wrapped("older", cluster, nil)
	aw.Spec.Components[0].DeclaredPodSets = []workload.AppWrapperPodSet{{Path: "template.spec.headGroupSpec.template"}}
	return s.sends(ctx, aw)
}

// leavesWorkers creates a PyTorchJob whose master ends, and whose worker does not.
func (s *story) leavesWorkers(ctx context.Context) error {
	object := s.unwrapped("pytorchjob", "leaving")
	unstructured.RemoveNestedField(object.Object, "spec", "runPolicy")
	return s.sends(ctx, withArgs(object, []any{"sleep", "5s"}, "spec", "pytorchReplicaSpecs", "Master"))
}

// submitsWithGPUs creates a RayJob that fails. KubeRay never deletes the submitter of such a one.
func (s *story) submitsWithGPUs(ctx context.Context) error {
	object := &unstructured.Unstructured{}
	s.read(filepath.Join("hostile", "submitter.yaml"), map[string]string{"IMAGE": here.Workload.Name, "RAY": here.Ray.Name}, &object.Object)
	return s.sends(ctx, object)
}

// keepsQuota wraps a Job that fails, and a ConfigMap that nobody can remove.
func (s *story) keepsQuota(ctx context.Context) error {
	kept := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "keeping", "finalizers": []any{"example.com/mine"}}}
	aw := wrapped("keeping", job("keeping", "50m", "exit", "1"), map[string]string{workload.FailureGracePeriodDurationAnnotation: "1s"})
	aw.Spec.Components = append(aw.Spec.Components, wrapped("", kept, nil).Spec.Components...)
	return s.sends(ctx, aw)
}

// wrapsAnOpenService wraps a Job and a Service, for which the Job would get quota.
func (s *story) wrapsAnOpenService(ctx context.Context) error {
	open := map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "wrapped-port"},
		"spec": map[string]any{"type": "NodePort", "ports": []any{map[string]any{"port": 80}}}}
	aw := wrapped("wrapped-port", job("wrapped-port", "50m", "linger", "0s"), nil)
	aw.Spec.Components = append(aw.Spec.Components, wrapped("", open, nil).Spec.Components...)
	return s.sends(ctx, aw)
}

// roots is a PyTorchJob whose pods have rights of their nodes.
func roots(name, answer, evidence string, change func(*corev1.PodSpec)) attack {
	return attack{
		name: "a PyTorchJob with rights of its nodes: " + name, answer: answer,
		try:   func(s *story, ctx context.Context) error { return s.sends(ctx, s.pyTorchJob(name, change)) },
		won:   hasPods("training.kubeflow.org/job-name="+name, 1),
		found: found{"node-access", "Pod " + name, evidence},
	}
}

// opens is a Service that can be reached from outside.
func opens(what, name, answer string, spec corev1.ServiceSpec) attack {
	spec.Ports = []corev1.ServicePort{{Port: 80}}
	return attack{
		name: what, answer: answer,
		try: func(s *story, ctx context.Context) error {
			return s.sends(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
		},
		won: func(s *story, ctx context.Context) (string, error) {
			return "", s.admin.Get(ctx, name, s.namespace, &corev1.Service{})
		},
		found: found{"open-port", "Service " + name, ""},
	}
}

// takeNode has a pod run on all GPUs of a node.
func takeNode(p *corev1.PodSpec, node string) {
	p.NodeSelector = map[string]string{corev1.LabelHostname: node}
	p.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
	p.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests("50m", "16Mi", "8"), Limits: requests("50m", "16Mi", "8")}
}

// intrude has a pod run on a node that a taint keeps for others.
func intrude(p *corev1.PodSpec, node string) {
	p.NodeSelector = map[string]string{corev1.LabelHostname: node}
	p.Tolerations = []corev1.Toleration{
		{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists},
		{Key: "example.com/reserved-for", Operator: corev1.TolerationOpExists},
	}
}

// repel has the scheduler keep pods of all namespaces from the nodes of a pod. Nobody has the label, so that no other
// test waits.
func repel(p *corev1.PodSpec) {
	p.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/repelled": "true"}},
		NamespaceSelector: &metav1.LabelSelector{}, TopologyKey: corev1.LabelOSStable,
	}}}}
}

// hasPods asks whether at least so many pods with a label exist.
func hasPods(label string, want int) func(*story, context.Context) (string, error) {
	return func(s *story, ctx context.Context) (string, error) { return s.podsOf(ctx, label, want) }
}
