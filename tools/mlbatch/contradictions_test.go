// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/top"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
)

// place is a random cluster. Its queues report what its Workloads reserve, and each Workload has its pod.
type place struct {
	nodes     []corev1.Node
	pods      []corev1.Pod
	queues    []kueue.ClusterQueue
	cohorts   []kueue.Cohort
	flavors   []kueue.ResourceFlavor
	workloads []kueue.Workload
	work      []v1beta2.AppWrapper
}

const gpu corev1.ResourceName = "nvidia.com/gpu"

var theTime = time.Date(2026, 11, 22, 10, 30, 0, 0, time.UTC)

func drawPlace(t *rapid.T) place {
	p := place{cohorts: []kueue.Cohort{{ObjectMeta: metav1.ObjectMeta{Name: "below"}, Spec: kueue.CohortSpec{ParentName: "all"}}}}
	if rapid.Bool().Draw(t, "cohort has quota") {
		p.cohorts = append(p.cohorts, kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: kueue.CohortSpec{ResourceGroups: drawQuota(t)}})
	}
	for _, name := range []string{"a", "b"} {
		p.flavors = append(p.flavors, kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"pool": name}}})
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		p.nodes = append(p.nodes, drawNode(t, fmt.Sprintf("n%d", i)))
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "queues") {
		p.queues = append(p.queues, drawQueue(t, fmt.Sprintf("q%d", i)))
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "workloads") {
		p.admit(t, fmt.Sprintf("w%d", i))
	}
	if len(p.nodes) > 0 && rapid.Bool().Draw(t, "others") {
		p.pods = append(p.pods, podOn(rapid.SampledFrom(p.nodes).Draw(t, "others on").Name, "other", rapid.Int64Range(0, 4).Draw(t, "others use"), nil))
	}
	return p
}

func drawQuota(t *rapid.T) []kueue.ResourceGroup {
	group := kueue.ResourceGroup{CoveredResources: []corev1.ResourceName{gpu}}
	for _, flavor := range []kueue.ResourceFlavorReference{"a", "b"} {
		own := kueue.ResourceQuota{Name: gpu, NominalQuota: *resource.NewQuantity(rapid.Int64Range(0, 12).Draw(t, "quota"), resource.DecimalSI)}
		if rapid.Bool().Draw(t, "limited") {
			own.LendingLimit = resource.NewQuantity(rapid.Int64Range(0, 12).Draw(t, "lends"), resource.DecimalSI)
		}
		group.Flavors = append(group.Flavors, kueue.FlavorQuotas{Name: flavor, Resources: []kueue.ResourceQuota{own}})
	}
	return []kueue.ResourceGroup{group}
}

func drawNode(t *rapid.T, name string) corev1.Node {
	capacity := rapid.Int64Range(0, 8).Draw(t, "capacity")
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "pool")}}}
	n.Status.Capacity = corev1.ResourceList{gpu: *resource.NewQuantity(capacity, resource.DecimalSI)}
	n.Status.Allocatable = corev1.ResourceList{gpu: *resource.NewQuantity(rapid.Int64Range(0, capacity).Draw(t, "allocatable"), resource.DecimalSI)}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse}).Draw(t, "ready")}}
	n.Spec.Unschedulable = rapid.IntRange(0, 3).Draw(t, "cordoned") == 0
	if rapid.IntRange(0, 3).Draw(t, "control plane") == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
	}
	if rapid.IntRange(0, 5).Draw(t, "deleted") == 0 {
		n.DeletionTimestamp = &metav1.Time{Time: theTime}
	}
	return n
}

func drawQueue(t *rapid.T, name string) kueue.ClusterQueue {
	q := kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	q.Spec.CohortName = rapid.SampledFrom([]kueue.CohortReference{"", "all", "below"}).Draw(t, "cohort")
	q.Spec.ResourceGroups = drawQuota(t)
	active := rapid.SampledFrom([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}).Draw(t, "active")
	q.Status.Conditions = []metav1.Condition{{Type: kueue.ClusterQueueActive, Status: active, Reason: "Why", Message: "because"}}
	if rapid.Bool().Draw(t, "slack") {
		q.Annotations = map[string]string{v1beta2.LoweredLendingLimitsAnnotation: "{}"}
	}
	for _, flavor := range q.Spec.ResourceGroups[0].Flavors {
		q.Status.FlavorsReservation = append(q.Status.FlavorsReservation, kueue.FlavorUsage{Name: flavor.Name, Resources: []kueue.ResourceUsage{{Name: gpu}}})
	}
	return q
}

// admit adds an AppWrapper with quota in a queue, and with one pod that uses all of it.
func (p *place) admit(t *rapid.T, name string) {
	q := &p.queues[rapid.IntRange(0, len(p.queues)-1).Draw(t, "queue")]
	flavor := rapid.IntRange(0, 1).Draw(t, "flavor")
	use := &q.Status.FlavorsReservation[flavor].Resources[0]
	n := rapid.Int64Range(1, 4).Draw(t, "uses")
	use.Total.Add(*resource.NewQuantity(n, resource.DecimalSI))
	if own := q.Spec.ResourceGroups[0].Flavors[flavor].Resources[0].NominalQuota; use.Total.Cmp(own) > 0 {
		use.Borrowed = use.Total.DeepCopy()
		use.Borrowed.Sub(own)
	}
	owner := metav1.OwnerReference{APIVersion: v1beta2.GroupVersion.String(), Kind: "AppWrapper", Name: name, UID: types.UID(name), Controller: new(true)}
	p.work = append(p.work, v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: name, UID: owner.UID}})
	p.workloads = append(p.workloads, kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: name, OwnerReferences: []metav1.OwnerReference{owner}},
		Status: kueue.WorkloadStatus{
			Conditions: []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue}},
			Admission: &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(q.Name), PodSetAssignments: []kueue.PodSetAssignment{{
				Name: "main", Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{gpu: q.Spec.ResourceGroups[0].Flavors[flavor].Name},
				ResourceUsage: corev1.ResourceList{gpu: *resource.NewQuantity(n, resource.DecimalSI)},
			}}},
		},
	})
	if len(p.nodes) > 0 {
		p.pods = append(p.pods, podOn(rapid.SampledFrom(p.nodes).Draw(t, "on").Name, name, n, map[string]string{"kueue.x-k8s.io/podset": "main", v1beta2.AppWrapperLabel: name}))
	}
}

func podOn(node, name string, gpus int64, labels map[string]string) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: name, Labels: labels}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}}}}
	return p
}

func (p place) top(view top.View) top.Overview {
	return top.Judge(top.Objects{ClusterQueues: p.queues, Cohorts: p.cohorts, Flavors: p.flavors, Nodes: p.nodes, Pods: append([]corev1.Pod{}, p.pods...), Signs: nodesigns.Default()}, view)
}

func (p place) check() checkup.Report {
	return checkup.Find(checkup.Objects{
		Now: theTime, Nodes: p.nodes, Pods: p.pods, ClusterQueues: p.queues, Cohorts: p.cohorts, Flavors: p.flavors, Workloads: p.workloads, AppWrappers: p.work,
		Signs: nodesigns.Default(), Unread: map[checkup.Kind]string{},
	})
}

func has(r checkup.Report, code checkup.Code, subject string) bool {
	return slices.ContainsFunc(r.Findings, func(f checkup.Finding) bool { return f.Code == code && f.Subject == subject })
}

// What top and check say of quota and of nodes is the same: a cell is short for both, or for neither.
func TestTopAndCheckAgreeAboutQuotaAndNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlace(t)
		overview, report := p.top(""), p.check()
		stranded := false
		for _, f := range overview.Flavors {
			cell := "ResourceFlavor " + f.Name + ", " + f.Resource
			without, beyond := has(report, "FlavorWithoutNodes", "ResourceFlavor "+f.Name), has(report, "QuotaBeyondNodes", cell)
			if f.Total != nil && !f.Quota.IsZero() && (f.Quota.Cmp(*f.Total) > 0) != (beyond || without) {
				t.Errorf("%s: top has quota %s of %s, and check finds that it is beyond the nodes: %t", cell, &f.Quota, f.Total, beyond)
			}
			noted := slices.ContainsFunc(overview.Notes, func(n string) bool { return strings.Contains(n, "in flavor "+f.Name+" that can be used") })
			if short := has(report, "QuotaBeyondUsable", cell); short && !noted || noted && !short && !beyond && !without {
				t.Errorf("%s: top notes that it is short: %t; check finds that: %t", cell, noted, short)
			}
			stranded = stranded || f.Stranded != nil && !f.Stranded.IsZero()
		}
		for _, f := range report.Findings {
			if everywhere := !slices.ContainsFunc(p.top(top.ByNode).Nodes, func(n top.Node) bool { return len(n.Flavors) == 0 }); f.Code == "DevicesStranded" && everywhere && !stranded {
				t.Errorf("check finds stranded devices %v, and top none", f.Evidence)
			}
		}
		for _, team := range overview.Teams {
			if found := has(report, "ClusterQueueInactive", "ClusterQueue "+team.Name); found != (team.Inactive != "") {
				t.Errorf("%s is inactive for top: %t, for check: %t", team.Name, team.Inactive != "", found)
			}
		}
	})
}

// What top says that a queue uses is what its holders hold, for an audit and for usage.
func TestUseIsTheSameForAllAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlace(t)
		held, used := map[string]int64{}, map[string]int64{}
		moment := audit.Moment{Time: theTime, Namespaces: []string{"blue"}, Pods: p.pods, Workloads: p.workloads, AppWrappers: p.work, Queues: p.queues, Cohorts: p.cohorts, Flavors: p.flavors, Nodes: p.nodes}
		for _, u := range moment.Usages() {
			if u.Queue != "" && u.Resource == gpu {
				held[u.Queue+"/"+string(u.Flavor)] += u.Held.Value()
			}
		}
		for _, team := range p.top("").Teams {
			for _, c := range team.Quota {
				used[team.Name+"/"+c.Flavor] = c.Used.Value()
			}
		}
		for cell, n := range used {
			if len(p.nodes) > 0 && held[cell] != n {
				t.Errorf("%s: top has %d, the audit finds holders of %d", cell, n, held[cell])
			}
		}
		for _, note := range usage.Count(usage.Objects{AppWrappers: p.work, Workloads: p.workloads}, usage.Query{By: "team"}, theTime).Notes {
			if strings.Contains(note, "no AppWrapper wraps") {
				t.Errorf("usage does not find the holders that an audit finds: %s", note)
			}
		}
	})
}

// What why says of a queue and of nodes is in the tables of top, and what it finds check finds.
func TestWhySaysWhatTopAndCheckSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlace(t)
		queue := rapid.SampledFrom(p.queues).Draw(t, "waits in")
		o := explain.Objects{Now: theTime, ClusterQueues: p.queues, Cohorts: p.cohorts, LocalQueue: &kueue.LocalQueue{Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(queue.Name)}}}
		o.Workload = &kueue.Workload{Status: kueue.WorkloadStatus{Conditions: []metav1.Condition{{
			Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse, Reason: "Pending", Message: "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor a, 2 more needed",
		}}}}
		overview := p.top("")
		team := overview.Teams[slices.IndexFunc(overview.Teams, func(t top.Team) bool { return t.Name == queue.Name })]
		inactive := false
		for _, cause := range explain.Explain(o).Causes {
			inactive = inactive || strings.HasPrefix(string(cause.Code), "Queue") && cause.Evidence[0].Object == "ClusterQueue "+queue.Name
			for _, n := range cause.Numbers {
				if c := team.Quota[0]; n.Flavor == c.Flavor && n.Own != "" && (n.Own != c.Quota.String() || n.Used != c.Used.String()) {
					t.Errorf("why has %s of %s used in %s, top %s of %s", n.Used, n.Own, queue.Name, &c.Used, &c.Quota)
				}
			}
		}
		if inactive != (team.Inactive != "") {
			t.Errorf("%s is inactive for why: %t, for top: %t", queue.Name, inactive, team.Inactive != "")
		}
		p.compareRoom(t, overview)
	})
}

// compareRoom asks why of a pod for which no node has enough.
func (p place) compareRoom(t *rapid.T, overview top.Overview) {
	flavor := p.flavors[0]
	waits := podOn("", "waits", rapid.Int64Range(1, 8).Draw(t, "needs"), nil)
	waits.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.",
	}}}
	waits.Spec.NodeSelector = flavor.Spec.NodeLabels
	o := explain.Objects{
		Now: theTime, ClusterQueues: p.queues, Cohorts: p.cohorts, Nodes: p.nodes, Placed: append([]corev1.Pod{}, p.pods...), Flavor: &flavor, Pods: []corev1.Pod{waits},
		AppWrapper: &v1beta2.AppWrapper{Status: v1beta2.AppWrapperStatus{Phase: v1beta2.AppWrapperResuming}},
	}
	full, beyond, nodes := false, false, p.top(top.ByNode).Nodes
	for _, cause := range explain.Explain(o).Causes {
		full, beyond = full || cause.Code == "NodesFull", beyond || cause.Code == "QuotaBeyondNodes"
		for _, e := range cause.Evidence {
			name, _ := strings.CutPrefix(e.Object, "Node ")
			i := slices.IndexFunc(nodes, func(n top.Node) bool { return n.Name == name })
			if i < 0 || len(nodes[i].Resources) == 0 || nodes[i].Resources[0].Unusable != "" {
				continue
			}
			if r := nodes[i].Resources[0]; e.Value != r.Free.String()+" of "+r.Usable.String() {
				t.Errorf("why has %s free on %s, top %s of %s", e.Value, name, r.Free, &r.Usable)
			}
		}
	}
	if found := has(p.check(), "QuotaBeyondNodes", "ResourceFlavor a, nvidia.com/gpu"); beyond && !found || full && found && !beyond {
		t.Errorf("the quota is beyond the nodes for why: %t, for check: %t", beyond, found)
	}
}
