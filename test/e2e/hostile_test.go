// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// attack is a way past the platform's limits, with no rights but a member's.
type attack struct {
	name string
	// answer is part of what the API server says when it refuses the attack.
	answer string
	// prepare makes what is attacked, with quota.
	prepare func(*story, context.Context)
	// try returns what is said if it is refused.
	try func(*story, context.Context) error
	// won returns "" once the attack has succeeded, and otherwise what is missing.
	won func(*story, context.Context) (string, error)
	// found is what mlbatch audit says about a successful attack; nothing if no quota is exceeded.
	found found
}

// found is a rule, the beginning of an object's kind and name, and a part of the evidence.
type found struct{ rule, object, evidence string }

// attacks are refused by the defences of the charts, and succeed without them.
var attacks = []attack{
	{
		name:   "an AppWrapper that names another one as its owner",
		answer: "only controllers may create objects that another object controls",
		try: func(s *story, ctx context.Context) error {
			return s.belongs(ctx, wrapped("second", job("second", "50m", "linger", "0s"), nil))
		},
		won: func(s *story, ctx context.Context) (string, error) {
			return s.podsOf(ctx, workload.AppWrapperLabel+"=second", 1)
		},
		found: found{"over-reservation", "AppWrapper door", "second-"},
	},
	{
		name:   "a PyTorchJob that names an AppWrapper as its owner",
		answer: "only controllers may create objects that another object controls",
		try:    func(s *story, ctx context.Context) error { return s.spoof(ctx, "pytorchjob") },
		won: func(s *story, ctx context.Context) (string, error) {
			return s.podsOf(ctx, "training.kubeflow.org/job-name=pytorchjob", 2)
		},
		found: found{"over-reservation", "AppWrapper door", "pytorchjob-master-0"},
	},
	{
		name:   "a RayCluster that names an AppWrapper as its owner",
		answer: "only controllers may create objects that another object controls",
		try:    func(s *story, ctx context.Context) error { return s.spoof(ctx, "raycluster") },
		won: func(s *story, ctx context.Context) (string, error) {
			return s.podsOf(ctx, "ray.io/cluster=raycluster", 3)
		},
		found: found{"over-reservation", "AppWrapper door", "raycluster-"},
	},
	{
		name:   "a PyTorchJob of an AppWrapper that gets more workers",
		answer: "it belongs to AppWrapper grown, which got quota for its spec as it is",
		prepare: func(s *story, ctx context.Context) {
			s.admit(ctx, wrapped("grown", s.victim("pytorchjob", "grown"), nil), 2)
		},
		try: func(s *story, ctx context.Context) error {
			return s.patch(ctx, "kubeflow.org/v1", "PyTorchJob", "grown", `{"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":3}}}}`)
		},
		won: func(s *story, ctx context.Context) (string, error) {
			return s.podsOf(ctx, "training.kubeflow.org/job-name=grown", 4)
		},
		found: found{"over-reservation", "AppWrapper grown", "grown-worker-2"},
	},
	{
		name:   "a RayCluster of an AppWrapper that gets more workers",
		answer: "it belongs to AppWrapper swollen, which got quota for its spec as it is",
		prepare: func(s *story, ctx context.Context) {
			s.admit(ctx, wrapped("swollen", s.victim("raycluster", "swollen"), nil), 3)
		},
		try: func(s *story, ctx context.Context) error {
			return s.patch(ctx, "ray.io/v1", "RayCluster", "swollen", `[
				{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":2},
				{"op":"replace","path":"/spec/workerGroupSpecs/0/maxReplicas","value":2}
			]`)
		},
		won:   func(s *story, ctx context.Context) (string, error) { return s.podsOf(ctx, "ray.io/cluster=swollen", 4) },
		found: found{"over-reservation", "AppWrapper swollen", ""},
	},
	{
		name:   "a Job that is left behind by its AppWrapper",
		answer: "only controllers may remove the finalizer of an AppWrapper",
		prepare: func(s *story, ctx context.Context) {
			s.admit(ctx, wrapped("left", job("left", "50m", "linger", "0s"), nil), 1)
		},
		try: func(s *story, ctx context.Context) error {
			if err := s.patch(ctx, "workload.codeflare.dev/v1beta2", "AppWrapper", "left", `{"metadata":{"finalizers":null}}`); err != nil {
				return err
			}
			return s.orphan(ctx, "left")
		},
		won:   func(s *story, ctx context.Context) (string, error) { return s.outlived(ctx, "left") },
		found: found{"no-quota", "Job left", ""},
	},
	{
		name:    "a PyTorchJob that is deleted without its pods",
		answer:  "cannot be deleted without its pods",
		prepare: (*story).admitBare,
		try: func(s *story, ctx context.Context) error {
			return s.user.Delete(ctx, s.bare(), client.PropagationPolicy(metav1.DeletePropagationOrphan))
		},
		won:   (*story).bareOutlived,
		found: found{"no-quota", "Pod bare-", ""},
	},
	{
		name:    "a RayJob that KubeRay gives up",
		answer:  "Kueue has started this Ray cluster or job",
		prepare: func(s *story, ctx context.Context) { s.admitRay(ctx, abandonedJob) },
		try: func(s *story, ctx context.Context) error {
			return s.patch(ctx, "ray.io/v1", "RayJob", abandonedJob.name, `{"spec":{"activeDeadlineSeconds":-1}}`)
		},
		won:   func(s *story, ctx context.Context) (string, error) { return s.rayOutlived(ctx, abandonedJob) },
		found: found{"no-quota", "RayJob " + abandonedJob.name, "has no quota"},
	},
	{
		name:    "a RayCluster that KubeRay gives up",
		answer:  "Kueue has started this Ray cluster or job",
		prepare: func(s *story, ctx context.Context) { s.admitRay(ctx, abandonedCluster) },
		// Kueue stops work whose number of pods changes. KubeRay does nothing more for invalid work.
		try: func(s *story, ctx context.Context) error {
			return s.patch(ctx, "ray.io/v1", "RayCluster", abandonedCluster.name, `[
				{"op":"add","path":"/spec/headGroupSpec/rayStartParams","value":{"labels":"a=b"}},
				{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":0},
				{"op":"replace","path":"/spec/workerGroupSpecs/0/minReplicas","value":0}
			]`)
		},
		won:   func(s *story, ctx context.Context) (string, error) { return s.rayOutlived(ctx, abandonedCluster) },
		found: found{"no-quota", "RayCluster " + abandonedCluster.name, ""},
	},
	{
		name:   "a container with all rights on its node",
		answer: "the namespace enforces the Pod Security level baseline",
		try: func(s *story, ctx context.Context) error {
			return s.runsPod(ctx, "root", func(p *corev1.PodSpec) {
				p.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
			})
		},
		won: func(s *story, ctx context.Context) (string, error) {
			return s.podsOf(ctx, workload.AppWrapperLabel+"=root", 1)
		},
		found: found{"node-access", "Pod root", ""},
	},
	{
		name:   "a pod that is more important than the system",
		answer: "may not have the priorityClassName system-node-critical",
		try: func(s *story, ctx context.Context) error {
			return s.runsPod(ctx, "critical", func(p *corev1.PodSpec) { p.PriorityClassName = "system-node-critical" })
		},
		won: func(s *story, ctx context.Context) (string, error) {
			return s.podsOf(ctx, workload.AppWrapperLabel+"=critical", 1)
		},
		found: found{"system-priority", "Pod critical", ""},
	},
	{
		name:   "a pod on a node that its flavor does not have",
		answer: "may not name their node",
		try: func(s *story, ctx context.Context) error {
			return s.runsOn(ctx, "elsewhere", here.Simulated[0])
		},
		won: func(s *story, ctx context.Context) (string, error) {
			return s.podsOf(ctx, "training.kubeflow.org/job-name=elsewhere", 1)
		},
		found: found{"misplaced", "PyTorchJob elsewhere", ""},
	},
	{
		name:   "a port on every node",
		answer: "cannot have the type LoadBalancer or NodePort",
		try: func(s *story, ctx context.Context) error {
			open := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: "open", Namespace: s.namespace},
				Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}},
			}
			err := s.user.Create(ctx, open)
			if err == nil {
				s.created = append(s.created, open)
			}
			return err
		},
		won: func(s *story, ctx context.Context) (string, error) {
			return "", s.admin.Get(ctx, "open", s.namespace, &corev1.Service{})
		},
		found: found{"open-port", "Service open", ""},
	},
	{
		name:   "pods that count as those of an AppWrapper",
		answer: "only controllers may write the label workload.codeflare.dev/appwrapper into a pod template",
		prepare: func(s *story, ctx context.Context) {
			s.admit(ctx, wrapped("counted", job("counted", "50m", "linger", "0s"), nil), 1)
		},
		try: func(s *story, ctx context.Context) error {
			err := s.user.Create(ctx, s.posing())
			if err == nil {
				s.created = append(s.created, s.posing())
			}
			return err
		},
		won: (*story).countedIsReset,
	},
}

// Everything here was done on a running platform before it had policies.
func TestAHostileMemberRunsNothingWithoutQuota(t *testing.T) {
	testenv.Test(t, features.New("hostile").Assess("every attack is refused", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		auditing.expect(t, "e2e-hostile") // until the story is over, and its objects are gone
		s := tell(t, cfg, "e2e-hostile", "mallory", needs.Pods, needs.RayPods, needs.Machine)
		for _, name := range []string{"second", "grown", "swollen", "left", "elsewhere", "counted"} {
			quota.Expect(types.NamespacedName{Namespace: s.namespace, Name: name})
		}
		s.admit(ctx, wrapped("door", job("door", "50m", "linger", "0s"), nil), 1)
		s.untilTypesFit(ctx)
		for _, a := range attacks {
			t.Run(a.name, func(t *testing.T) {
				within := s.in(t)
				defer func() { s.created = within.created }()
				within.withstands(ctx, a)
			})
		}
		return ctx
	}).Feature())
}

// withstands tries one attack with the policies and, to see that it is one, without them.
func (s *story) withstands(ctx context.Context, a attack) {
	s.t.Helper()
	if a.prepare != nil {
		a.prepare(s, ctx)
	}
	s.until(ctx, "nothing of the last attack is there", func(ctx context.Context) (string, error) {
		if w := s.world(ctx); strings.Contains(w, "deleted: true") {
			return w, nil
		}
		return "", nil
	})
	before := s.world(ctx)
	if err := a.try(s, ctx); err == nil || !strings.Contains(err.Error(), a.answer) {
		s.t.Errorf("the API server answers: %v", err)
	}
	s.until(ctx, "the world is as before", func(ctx context.Context) (string, error) {
		if after := s.world(ctx); after != before {
			return fmt.Sprintf("it was\n%s\nand is\n%s", before, after), nil
		}
		return "", nil
	})
	restore := s.withoutDefences(ctx)
	defer restore()
	s.until(ctx, "without defences nobody refuses it", func(ctx context.Context) (string, error) {
		if err := a.try(s, ctx); err != nil {
			return err.Error(), nil
		}
		return "", nil
	})
	if a.found != (found{}) {
		s.until(ctx, "mlbatch audit finds it", func(ctx context.Context) (string, error) {
			return s.auditFinds(ctx, a.found.rule, a.found.object, a.found.evidence)
		})
	}
	s.until(ctx, "without defences it succeeds", func(ctx context.Context) (string, error) { return a.won(s, ctx) })
}

// untilTypesFit waits until the API server has checked the policies against the schemas of what
// they judge. An expression that does not fit some kind would refuse all objects of that kind.
func (s *story) untilTypesFit(ctx context.Context) {
	s.t.Helper()
	s.until(ctx, "the policies fit the schemas", func(ctx context.Context) (string, error) {
		policies := &admissionv1.ValidatingAdmissionPolicyList{}
		err := s.admin.GetControllerRuntimeClient().List(ctx, policies, client.MatchingLabels{"app.kubernetes.io/part-of": "mlbatch"})
		for _, p := range policies.Items {
			if p.Status.TypeChecking == nil || p.Status.ObservedGeneration != p.Generation {
				return p.Name + " was not checked", err
			}
			for _, w := range p.Status.TypeChecking.ExpressionWarnings {
				s.t.Errorf("%s, %s: %s", p.Name, w.FieldRef, w.Warning)
			}
		}
		return "", err
	})
}

// admit runs an AppWrapper until all its pods exist.
func (s *story) admit(ctx context.Context, aw *workload.AppWrapper, pods int) {
	s.t.Helper()
	s.runs(ctx, aw)
	s.until(ctx, fmt.Sprintf("%s has %d pods", aw.Name, pods), func(ctx context.Context) (string, error) {
		return s.podsOf(ctx, workload.AppWrapperLabel+"="+aw.Name, pods)
	})
}

// victim is an object whose pods run until they are deleted.
func (s *story) victim(kind, name string) map[string]any {
	s.t.Helper()
	object := map[string]any{}
	s.read(filepath.Join("hostile", kind+".yaml"), map[string]string{"NAME": name, "IMAGE": here.Workload.Name, "RAY": here.Ray.Name}, &object)
	return object
}

// unwrapped is a victim that Kueue queues itself.
func (s *story) unwrapped(kind, name string) *unstructured.Unstructured {
	s.t.Helper()
	object := &unstructured.Unstructured{Object: s.victim(kind, name)}
	object.SetNamespace(s.namespace)
	object.SetLabels(map[string]string{"kueue.x-k8s.io/queue-name": "default-queue"})
	return object
}

// runsPod submits a wrapped pod. If that fails, it returns the reason, and the AppWrapper is gone.
func (s *story) runsPod(ctx context.Context, name string, change func(*corev1.PodSpec)) error {
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	pod.Spec = job(name, "50m", "linger", "0s").Spec.Template.Spec
	change(&pod.Spec)
	aw := wrapped(name, pod, map[string]string{workload.RetryLimitAnnotation: "0", workload.AdmissionGracePeriodDurationAnnotation: "1s"})
	aw.Namespace = s.namespace
	if err := s.user.Create(ctx, aw); err != nil {
		return err
	}
	s.created = append(s.created, aw)
	s.until(ctx, name+" runs or fails", func(ctx context.Context) (string, error) {
		err := s.admin.Get(ctx, name, s.namespace, aw)
		if aw.Status.Phase == workload.AppWrapperFailed || aw.Status.Phase == workload.AppWrapperRunning {
			return "", err
		}
		return fmt.Sprintf("it is %s", aw.Status.Phase), err
	})
	if aw.Status.Phase == workload.AppWrapperRunning {
		return nil
	}
	reasons := fmt.Errorf("%+v", aw.Status.Conditions)
	s.remove(ctx, aw)
	s.until(ctx, name+" is gone", func(ctx context.Context) (string, error) { return s.stillThere(ctx, aw) })
	return reasons
}

// runsOn submits a PyTorchJob for one node. The policy of the API server judges it; wrapped, it
// would be the webhook, which stays as it is configured.
func (s *story) runsOn(ctx context.Context, name, node string) error {
	job := s.unwrapped("pytorchjob", name)
	for _, role := range []string{"Master", "Worker"} {
		if err := unstructured.SetNestedField(job.Object, node, "spec", "pytorchReplicaSpecs", role, "template", "spec", "nodeName"); err != nil {
			return err
		}
	}
	err := s.user.Create(ctx, job)
	if err == nil {
		s.created = append(s.created, job)
	}
	return err
}

// spoof creates an object that claims to belong to the AppWrapper door.
func (s *story) spoof(ctx context.Context, kind string) error {
	return s.belongs(ctx, &unstructured.Unstructured{Object: s.victim(kind, kind)})
}

// belongs creates an object that names an admitted AppWrapper as its controller.
func (s *story) belongs(ctx context.Context, object client.Object) error {
	door := &workload.AppWrapper{}
	if err := s.user.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "door"}, door); err != nil {
		return err
	}
	object.SetNamespace(s.namespace)
	object.SetOwnerReferences([]metav1.OwnerReference{controlledBy(door)})
	err := s.user.Create(ctx, object)
	if err == nil {
		s.created = append(s.created, object)
	}
	return err
}

// controlledBy does not block the owner's deletion: the API server asks for a right to do that.
func controlledBy(aw *workload.AppWrapper) metav1.OwnerReference {
	owner := metav1.NewControllerRef(aw, workload.GroupVersion.WithKind(workload.AppWrapperKind))
	owner.BlockOwnerDeletion = nil
	return *owner
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

// podsOf returns "" if at least so many pods with a label exist.
func (s *story) podsOf(ctx context.Context, label string, want int) (string, error) {
	list := &corev1.PodList{}
	err := s.admin.List(ctx, list, resources.WithLabelSelector(label))
	if len(list.Items) >= want {
		return "", err
	}
	return fmt.Sprintf("%d of %d pods exist", len(list.Items), want), err
}

// outlived returns "" once a Job and its pod run on without their AppWrapper, and then removes
// them.
func (s *story) outlived(ctx context.Context, name string) (string, error) {
	if missing, err := s.stillThere(ctx, &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: name}}); missing != "" || err != nil {
		return missing, err
	}
	left := &batchv1.Job{}
	if err := s.admin.Get(ctx, name, s.namespace, left); err != nil {
		return "", broken(err.Error())
	}
	if left.Status.Active != 1 {
		return fmt.Sprintf("%d pods are active", left.Status.Active), nil
	}
	if err := s.forget(ctx, "appwrapper-"+name); err != nil {
		return "", err
	}
	return "", s.admin.GetControllerRuntimeClient().Delete(ctx, left, client.PropagationPolicy(metav1.DeletePropagationForeground))
}

// bare is a PyTorchJob that no AppWrapper wraps.
func (s *story) bare() *unstructured.Unstructured { return s.unwrapped("pytorchjob", "bare") }

const podsOfBare = "training.kubeflow.org/job-name=bare"

func (s *story) admitBare(ctx context.Context) {
	s.t.Helper()
	s.create(ctx, s.bare())
	s.until(ctx, "the PyTorchJob has its pods", func(ctx context.Context) (string, error) { return s.podsOf(ctx, podsOfBare, 2) })
}

// bareOutlived returns "" once the pods of the PyTorchJob run on without it, and then removes
// what nobody looks after any more.
func (s *story) bareOutlived(ctx context.Context) (string, error) {
	if err := s.admin.GetControllerRuntimeClient().Get(ctx, client.ObjectKeyFromObject(s.bare()), s.bare()); !apierrors.IsNotFound(err) {
		return "the PyTorchJob exists", err
	}
	if missing, err := s.podsOf(ctx, podsOfBare, 2); missing != "" || err != nil {
		return missing, err
	}
	label := client.MatchingLabels{"training.kubeflow.org/job-name": "bare"}
	admin, in := s.admin.GetControllerRuntimeClient(), client.InNamespace(s.namespace)
	return "", errors.Join(
		admin.DeleteAllOf(ctx, &corev1.Pod{}, in, label),
		client.IgnoreNotFound(admin.Delete(ctx, &podgroup.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "bare", Namespace: s.namespace}})),
		deleteEach(ctx, admin, &corev1.ServiceList{}, in, label),
		s.forget(ctx, "pytorchjob-bare"),
	)
}

// posing is a PyTorchJob with quota of its own, whose pods carry the label of another AppWrapper.
func (s *story) posing() *unstructured.Unstructured {
	object := s.unwrapped("pytorchjob", "posing")
	for _, role := range []string{"Master", "Worker"} {
		labels := []string{"spec", "pytorchReplicaSpecs", role, "template", "metadata", "labels", workload.AppWrapperLabel}
		if err := unstructured.SetNestedField(object.Object, "counted", labels...); err != nil {
			s.t.Fatal(err)
		}
	}
	return object
}

// countedIsReset returns "" once the AppWrapper is reset because of pods that are not its own, and
// its events say so. It then removes them.
func (s *story) countedIsReset(ctx context.Context) (string, error) {
	aw := &workload.AppWrapper{}
	if err := s.admin.Get(ctx, "counted", s.namespace, aw); err != nil {
		return "", err
	}
	unhealthy := meta.FindStatusCondition(aw.Status.Conditions, string(workload.Unhealthy))
	if aw.Status.Retries != 1 || unhealthy == nil || unhealthy.Reason != workload.ReasonSurplusPods {
		return fmt.Sprintf("it is %s, after %d retries, with %+v", aw.Status.Phase, aw.Status.Retries, aw.Status.Conditions), nil
	}
	events := &corev1.EventList{}
	err := s.admin.List(ctx, events, resources.WithFieldSelector("reason="+workload.ReasonSurplusPods))
	if err != nil || len(events.Items) == 0 {
		return "there is no event", err
	}
	return "", s.admin.GetControllerRuntimeClient().Delete(ctx, s.posing(), client.PropagationPolicy(metav1.DeletePropagationForeground))
}

// deleteEach is for kinds that cannot be deleted as a collection.
func deleteEach(ctx context.Context, admin client.Client, list client.ObjectList, which ...client.ListOption) error {
	if err := admin.List(ctx, list, which...); err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error { return admin.Delete(ctx, item.(client.Object)) })
}

// forget removes the Workload that an object without a keeper has left.
func (s *story) forget(ctx context.Context, name string) error {
	remains := &kueue.WorkloadList{}
	if err := s.admin.List(ctx, remains); err != nil {
		return err
	}
	for i, w := range remains.Items {
		if strings.HasPrefix(w.Name, name) {
			s.created = append(s.created, &remains.Items[i])
		}
	}
	return nil
}

// world is what an attack could change: objects, their specs, keepers and quota. Operators create
// Services and PodGroups at times of their own.
func (s *story) world(ctx context.Context) string {
	s.t.Helper()
	var lines []string
	for _, list := range kinds() {
		switch list.(type) {
		case *corev1.ServiceList, *podgroup.PodGroupList:
			continue
		}
		if err := s.admin.List(ctx, list); err != nil && !meta.IsNoMatchError(err) {
			s.t.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			o, err := meta.Accessor(item)
			if err == nil {
				lines = append(lines, fmt.Sprintf("%T %s of generation %d, kept by %q, deleted: %t, with quota for %d pods",
					item, o.GetName(), o.GetGeneration(), o.GetFinalizers(), o.GetDeletionTimestamp() != nil, podsWithQuota(item)))
			}
			return err
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return strings.Join(lines, "\n")
}

// withoutDefences takes the policies of the cluster and of the namespace out of force. The API
// server notices a moment later.
func (s *story) withoutDefences(ctx context.Context) (restore func()) {
	s.t.Helper()
	bindings := &admissionv1.ValidatingAdmissionPolicyBindingList{}
	if err := s.admin.GetControllerRuntimeClient().List(ctx, bindings, client.MatchingLabels{"app.kubernetes.io/part-of": "mlbatch"}); err != nil || len(bindings.Items) == 0 {
		s.t.Fatalf("there are %d policies (%v)", len(bindings.Items), err)
	}
	priorities := &corev1.ResourceQuota{}
	if err := s.admin.Get(ctx, "mlbatch-priorities", s.namespace, priorities); err != nil {
		s.t.Fatal(err)
	}
	defences := []client.Object{priorities}
	for i := range bindings.Items {
		defences = append(defences, &bindings.Items[i])
	}
	for _, d := range defences {
		if err := s.admin.GetControllerRuntimeClient().Delete(ctx, d); err != nil {
			s.t.Fatal(err)
		}
	}
	s.defend(ctx, "privileged", nil)
	s.judge(ctx, `{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["`+s.namespace+`"]}]}`)
	return func() {
		ctx := context.Background()
		s.judge(ctx, `{}`)
		for _, d := range defences {
			d.SetResourceVersion("")
			if err := s.admin.GetControllerRuntimeClient().Create(ctx, d); err != nil {
				s.t.Error(err)
			}
		}
		s.defend(ctx, "baseline", "low-priority,default-priority,high-priority")
		s.untilDefended(ctx)
	}
}

// judge sets the namespaces whose AppWrappers our webhook judges.
func (s *story) judge(ctx context.Context, namespaces string) {
	s.t.Helper()
	webhooks := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "appwrapper-validating-webhook-configuration"}}
	patch := `[{"op":"add","path":"/webhooks/0/namespaceSelector","value":` + namespaces + `}]`
	if err := s.admin.GetControllerRuntimeClient().Patch(ctx, webhooks, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		s.t.Error(err)
	}
}

// defend sets the level of Pod Security and the priorities of the story's namespace.
func (s *story) defend(ctx context.Context, level string, priorities any) {
	s.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels":      map[string]any{"pod-security.kubernetes.io/enforce": level},
		"annotations": map[string]any{"mlbatch-priorities": priorities},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.admin.GetControllerRuntimeClient().Patch(ctx, namespace, client.RawPatch(types.MergePatchType, patch)); err != nil {
		s.t.Error(err)
	}
}

// untilDefended asks, without doing anything, until each defence refuses something.
func (s *story) untilDefended(ctx context.Context) {
	s.t.Helper()
	door := &workload.AppWrapper{}
	if err := s.admin.Get(ctx, "door", s.namespace, door); err != nil {
		s.t.Fatal(err)
	}
	owned := &unstructured.Unstructured{Object: s.victim("pytorchjob", "probe")}
	owned.SetNamespace(s.namespace)
	owned.SetOwnerReferences([]metav1.OwnerReference{controlledBy(door)})
	growing := s.unwrapped("raycluster", "probe")
	if err := unstructured.SetNestedField(growing.Object, true, "spec", "enableInTreeAutoscaling"); err != nil {
		s.t.Fatal(err)
	}
	open := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "open", Namespace: s.namespace}}
	open.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}}
	pod := func(change func(*corev1.PodSpec)) client.Object {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: s.namespace}}
		p.Spec = job("probe", "50m", "linger", "0s").Spec.Template.Spec
		change(&p.Spec)
		return p
	}
	twice := wrapped("probe", job("probe", "50m"), nil)
	twice.Namespace, twice.Spec.Components = s.namespace, append(twice.Spec.Components, twice.Spec.Components[0])
	admin := s.admin.GetControllerRuntimeClient()
	probes := map[string]func() error{
		"mlbatch-ownership": func() error { return s.user.Create(ctx, owned.DeepCopy(), client.DryRunAll) },
		"mlbatch-exposure":  func() error { return s.user.Create(ctx, open.DeepCopy(), client.DryRunAll) },
		"mlbatch-placement": func() error {
			return admin.Create(ctx, pod(func(p *corev1.PodSpec) { p.NodeName = "n" }), client.DryRunAll)
		},
		"mlbatch-priorities": func() error {
			return admin.Create(ctx, pod(func(p *corev1.PodSpec) { p.PriorityClassName = "system-node-critical" }), client.DryRunAll)
		},
		"PodSecurity": func() error {
			return admin.Create(ctx, pod(func(p *corev1.PodSpec) { p.HostNetwork = true }), client.DryRunAll)
		},
		"mlbatch-growth":    func() error { return s.user.Create(ctx, growing.DeepCopy(), client.DryRunAll) },
		"vappwrapper.kb.io": func() error { return s.user.Create(ctx, twice.DeepCopy(), client.DryRunAll) },
		"mlbatch-labels":    func() error { return s.user.Create(ctx, s.posing(), client.DryRunAll) },
		"mlbatch-lifecycle": func() error {
			return s.user.Patch(ctx, door.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)), client.DryRunAll)
		},
	}
	s.until(ctx, "all defences are in force", func(context.Context) (string, error) {
		for name, probe := range probes {
			if refusal := probe(); refusal == nil || !strings.Contains(refusal.Error(), name) {
				return fmt.Sprintf("%s: the API server answers: %v", name, refusal), nil
			}
		}
		return "", nil
	})
}
