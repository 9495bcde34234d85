// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// healthLabel is where Autopilot writes what it thinks of the GPUs of a node.
const healthLabel = "autopilot.ibm.com/gpuhealth"

var rules = nodehealth.Rules{Labels: map[string][]corev1.Taint{string(gpu): {
	{Key: healthLabel, Value: "WARN", Effect: corev1.TaintEffectPreferNoSchedule},
	{Key: healthLabel, Value: "ERR", Effect: corev1.TaintEffectNoSchedule},
	{Key: healthLabel, Value: "EVICT", Effect: corev1.TaintEffectNoExecute},
}}}

// failer is a test, or a check of rapid.
type failer interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
}

// cluster has a slack queue, and what decides about it.
type cluster struct {
	failer
	rules   nodehealth.Rules
	flavors []kueue.ResourceFlavor
	nodes   map[string]*corev1.Node
	stored  map[string]string
	queue   *kueue.ClusterQueue
	version int
}

// newCluster has one flavor for all nodes, and a queue with so many GPUs.
func newCluster(t failer, nominal string, nodes ...*corev1.Node) *cluster {
	t.Helper()
	c := &cluster{failer: t, rules: rules, nodes: map[string]*corev1.Node{}, flavors: []kueue.ResourceFlavor{flavorOf("all", nil)}}
	c.queue = slackQueue(group("all", corev1.ResourceList{gpu: resource.MustParse(nominal)}))
	for _, n := range nodes {
		c.nodes[n.Name] = n
	}
	return c
}

func slackQueue(groups ...kueue.ResourceGroup) *kueue.ClusterQueue {
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "slack-cluster-queue", ResourceVersion: "1"}}
	q.Spec.CohortName, q.Spec.ResourceGroups = "research", groups
	return q
}

func flavorOf(name string, labels map[string]string) kueue.ResourceFlavor {
	return kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ResourceFlavorSpec{NodeLabels: labels}}
}

func group(flavor kueue.ResourceFlavorReference, nominal corev1.ResourceList) kueue.ResourceGroup {
	quotas := kueue.FlavorQuotas{Name: flavor}
	for _, name := range slices.Sorted(maps.Keys(nominal)) {
		quotas.Resources = append(quotas.Resources, kueue.ResourceQuota{Name: name, NominalQuota: nominal[name]})
	}
	return kueue.ResourceGroup{Flavors: []kueue.FlavorQuotas{quotas}}
}

func nodeOf(name string, devices int64) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("of-" + name), Labels: map[string]string{}}}
	n.Status.Capacity = corev1.ResourceList{gpu: count(devices), corev1.ResourceCPU: resource.MustParse("100"),
		corev1.ResourceMemory: resource.MustParse("1000Gi"), corev1.ResourcePods: count(110)}
	n.Status.Allocatable = corev1.ResourceList{gpu: count(devices), corev1.ResourceCPU: resource.MustParse("96"),
		corev1.ResourceMemory: resource.MustParse("960Gi"), corev1.ResourcePods: count(110)}
	return n
}

func amount(text string) resource.Quantity { return resource.MustParse(text) }

func count(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }

// all are the nodes, in no particular order.
func (c *cluster) all() []corev1.Node {
	var all []corev1.Node
	for _, n := range c.nodes {
		all = append(all, *n)
	}
	return all
}

// settle lets the controller do what it does after a change, and fails if that takes more than one
// write of the queue.
func (c *cluster) settle() {
	c.Helper()
	if wrote := c.reconcile(); wrote && c.reconcile() {
		c.Fatal("it writes again although nothing has changed")
	}
}

// reconcile tells whether it has written the queue. Nothing is kept but what is in the cluster.
func (c *cluster) reconcile() bool {
	c.Helper()
	nodes := c.all()
	devices := Parse(c.stored).Learn(nodes)
	stored := maps.Clone(c.stored)
	for name, text := range devices.Changes(c.stored) {
		if text == nil {
			delete(stored, name)
			continue
		}
		if stored == nil {
			stored = map[string]string{}
		}
		stored[name] = text.(string)
	}
	if c.stored = stored; len(Parse(stored).Learn(nodes).Changes(stored)) > 0 {
		c.Fatal("it stores the devices again although nothing has changed")
	}
	d := Decide(c.queue, Find(c.rules, c.flavors, nodes, devices))
	if d.Nothing() {
		return false
	}
	c.apply(d.Patch(c.queue))
	return true
}

// apply patches the queue as an API server does.
func (c *cluster) apply(text []byte) {
	c.Helper()
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		c.Fatal(string(text), err)
	}
	before, err := json.Marshal(c.queue)
	if err != nil {
		c.Fatal(err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		c.Fatal(string(text), err)
	}
	q := &kueue.ClusterQueue{}
	if err := json.Unmarshal(after, q); err != nil {
		c.Fatal(string(text), err)
	}
	if q.ResourceVersion != c.queue.ResourceVersion {
		c.Fatal("a conflict: ", string(text))
	}
	c.queue = q
	c.touch(FieldOwner)
}

// touch records who wrote the quotas last.
func (c *cluster) touch(manager string) {
	c.version++
	c.queue.ResourceVersion = fmt.Sprint(c.version)
	c.queue.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:resourceGroups":{}}}`)}}
}

// quota of a flavor and a resource.
func (c *cluster) quota(flavor kueue.ResourceFlavorReference, name corev1.ResourceName) *kueue.ResourceQuota {
	c.Helper()
	for i := range c.queue.Spec.ResourceGroups {
		for j, f := range c.queue.Spec.ResourceGroups[i].Flavors {
			for k := range f.Resources {
				if quota := &c.queue.Spec.ResourceGroups[i].Flavors[j].Resources[k]; f.Name == flavor && quota.Name == name {
					return quota
				}
			}
		}
	}
	c.Fatal("there is no quota for ", name, " of ", flavor)
	return nil
}

// lends checks a limit; "" is none.
func (c *cluster) lends(flavor kueue.ResourceFlavorReference, name corev1.ResourceName, want string) {
	c.Helper()
	got := ""
	if limit := c.quota(flavor, name).LendingLimit; limit != nil {
		got = limit.String()
	}
	if got != want {
		c.Errorf("the limit for %s of %s is %q, want %q", name, flavor, got, want)
	}
}

// limit is the administrator's change of a limit; "" removes it.
func (c *cluster) limit(flavor kueue.ResourceFlavorReference, name corev1.ResourceName, to string) {
	c.Helper()
	c.quota(flavor, name).LendingLimit = nil
	if to != "" {
		limit := resource.MustParse(to)
		c.quota(flavor, name).LendingLimit = &limit
	}
	c.touch("kubectl-edit")
}

func (c *cluster) mustHaveNoNote() {
	c.Helper()
	if text, ok := c.queue.Annotations[v1beta2.LoweredLendingLimitsAnnotation]; ok {
		c.Errorf("the annotation remains: %s", text)
	}
}
