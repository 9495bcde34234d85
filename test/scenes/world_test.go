// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package scenes_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
)

// world is the cluster.
type world struct {
	admin  client.WithWatch
	reader client.Client // as mlbatch connects
	config *rest.Config
}

// place is a namespace of one scene, with queues of its own.
type place struct {
	*testing.T
	*world
	namespace string
	// kind is that of the work, if its name does not do.
	kind string
}

const (
	queueName = "queue"
	// flavor is on all nodes.
	flavor = "default"
	urgent = "urgent"
	pool   = "scenes.mlbatch.dev/pool"
	member = "frank"
)

// newPlace makes the namespace of a scene, which is called as its code.
func (w *world) newPlace(t *testing.T, code explain.Code) *place {
	t.Helper()
	p := &place{T: t, world: w, namespace: dashed(string(code))}
	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace, Labels: maps.Clone(sandbox.Team)}})
	return p
}

// dashed makes a-name of AName.
func dashed(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// create creates an object, in the namespace of the scene if it is in one.
func (p *place) create(o client.Object) {
	p.Helper()
	if namespaced, err := p.admin.IsObjectNamespaced(o); err == nil && namespaced && o.GetNamespace() == "" {
		o.SetNamespace(p.namespace)
	}
	if err := p.admin.Create(p.Context(), o); err != nil {
		p.Fatalf("cannot create %T %s: %v", o, o.GetName(), err)
	}
}

// patch changes an object of the namespace.
func (p *place) patch(o client.Object, format string, args ...any) {
	p.Helper()
	if err := p.admin.Patch(p.Context(), o, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))); err != nil {
		p.Fatalf("cannot change %T %s: %v", o, o.GetName(), err)
	}
}

func (p *place) patchStatus(o client.Object, format string, args ...any) {
	p.Helper()
	if err := p.admin.Status().Patch(p.Context(), o, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))); err != nil {
		p.Fatalf("cannot change the status of %T %s: %v", o, o.GetName(), err)
	}
}

func (p *place) remove(o client.Object) {
	p.Helper()
	if err := p.admin.Delete(p.Context(), o, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		p.Fatalf("cannot delete %T %s: %v", o, o.GetName(), err)
	}
}

// until waits until nothing is missing.
func (p *place) until(condition func() error) {
	p.Helper()
	if err := sandbox.Within(p.Context(), limit, condition); err != nil {
		p.Fatal(err)
	}
}

// named is the metadata of an object of the namespace.
func (p *place) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.namespace, Name: name}
}

// asMember connects as a member of the team.
func (p *place) asMember() client.Client {
	p.Helper()
	p.create(&rbacv1.RoleBinding{
		ObjectMeta: p.named("members"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mlbatch-edit"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: member}},
	})
	config := rest.CopyConfig(p.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: member, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: why.Mapper()})
	if err != nil {
		p.Fatal(err)
	}
	return c
}

// prepare makes what several scenes need.
func (w *world) prepare(t *testing.T) {
	t.Helper()
	sandbox.Create(t, w.admin, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: flavor}})
	sandbox.Create(t, w.admin, &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: urgent}, Value: 100})
	sandbox.Create(t, w.admin, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: urgent}, Value: 100})
	sizes := runplan.DefaultSizes()
	sizes.Name = "default"
	sandbox.Create(t, w.admin, &sizes)
	for i, name := range pools {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("gpu-%d", nodes-1-i)}}
		patch := fmt.Appendf(nil, `{"metadata": {"labels": {%q: %q}}, "spec": {"taints": [{"key": %q, "value": %q, "effect": "NoSchedule"}]}}`, pool, name, pool, name)
		if err := w.admin.Patch(t.Context(), node, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
}

// pools are the names of nodes that one scene has for itself, in the order of nodes from the last one.
var pools = []string{"full", "pieces", "pieces", "racks", "racks", "preempting", "preempted", "tainted", "bad", "beyond", "large"}

// onlyIn lets a pod run in a pool.
func onlyIn(name string) func(*work) {
	return inPod(func(spec *corev1.PodSpec) {
		spec.NodeSelector = map[string]string{pool: name}
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: pool, Value: name})
	})
}

// flavorOf makes a flavor of the nodes of a pool, which is called as the namespace.
func (p *place) flavorOf(name string, topology *kueue.TopologyReference) {
	p.Helper()
	p.create(&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}, Spec: kueue.ResourceFlavorSpec{
		NodeLabels: map[string]string{pool: name}, Tolerations: []corev1.Toleration{{Key: pool, Value: name}}, TopologyName: topology,
	}})
}

// quota is so much of a resource.
func quota(name corev1.ResourceName, amount string) kueue.ResourceGroup {
	return quotaOf(flavor, name, amount)
}

func quotaOf(flavor string, name corev1.ResourceName, amount string) kueue.ResourceGroup {
	return kueue.ResourceGroup{
		CoveredResources: []corev1.ResourceName{name},
		Flavors: []kueue.FlavorQuotas{{
			Name: kueue.ResourceFlavorReference(flavor), Resources: []kueue.ResourceQuota{{Name: name, NominalQuota: resource.MustParse(amount)}},
		}},
	}
}

// ofFlavor gives a queue CPUs of a flavor.
func ofFlavor(name, cpus string) func(*kueue.ClusterQueue) {
	return func(q *kueue.ClusterQueue) {
		q.Spec.ResourceGroups = []kueue.ResourceGroup{quotaOf(name, corev1.ResourceCPU, cpus)}
	}
}

// ofGPUs gives a queue GPUs instead of CPUs.
func ofGPUs(q *kueue.ClusterQueue) {
	q.Spec.ResourceGroups = []kueue.ResourceGroup{quota("nvidia.com/gpu", "8")}
}

func amount(text string) *resource.Quantity {
	if text == "" {
		return nil
	}
	return new(resource.MustParse(text))
}

// queue makes the LocalQueue and the ClusterQueue of the namespace, with 4 CPUs unless a change says otherwise.
func (p *place) queue(changes ...func(*kueue.ClusterQueue)) {
	p.Helper()
	p.queueAt(p.namespace, queueName, changes...)
}

// queueAt makes a ClusterQueue, and a LocalQueue for it.
func (p *place) queueAt(clusterQueue, localQueue string, changes ...func(*kueue.ClusterQueue)) {
	p.Helper()
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: clusterQueue}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{}, ResourceGroups: []kueue.ResourceGroup{quota(corev1.ResourceCPU, "4")},
	}}
	for _, change := range changes {
		change(q)
	}
	p.create(q)
	p.localQueue(localQueue, clusterQueue)
}

func (p *place) localQueue(name, clusterQueue string) {
	p.Helper()
	p.create(&kueue.LocalQueue{ObjectMeta: p.named(name), Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(clusterQueue)}})
}

func (p *place) clusterQueue() *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
}

// its is the Workload of an AppWrapper.
func (p *place) its(name string) *kueue.Workload {
	p.Helper()
	var found *kueue.Workload
	p.until(func() error {
		all := &kueue.WorkloadList{}
		if err := p.admin.List(p.Context(), all, client.InNamespace(p.namespace)); err != nil {
			return err
		}
		for i := range all.Items {
			if owner := metav1.GetControllerOf(&all.Items[i]); owner != nil && owner.Kind == workload.AppWrapperKind && owner.Name == name {
				found = &all.Items[i]
				return nil
			}
		}
		return fmt.Errorf("%s has none of %d Workloads", name, len(all.Items))
	})
	return found
}
