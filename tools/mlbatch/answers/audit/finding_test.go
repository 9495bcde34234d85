// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// noon is the time of all rows; everything has been as it is for an hour.
var (
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	past = metav1.NewTime(noon.Add(-time.Hour))
)

// honest is a cluster with the AppWrapper train: a Job with one pod, which has one GPU.
func honest() Moment {
	aw := given.AppWrapper("train").WithFinalizer().InPhase(workload.AppWrapperRunning).Build()
	aw.Namespace, aw.UID = "blue", "the-appwrapper"
	w := given.Admitted("1")
	w.OwnerReferences[0].UID = aw.UID
	w.OwnerReferences[0].Controller = new(true)
	w.Spec.PodSets = []kueue.PodSet{{Name: "train-0", Count: 1}}
	w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadAdmitted, Status: metav1.ConditionTrue})
	for i := range w.Status.Conditions {
		w.Status.Conditions[i].LastTransitionTime = past
	}
	job := owner("Job", "train", "first-attempt")
	job.OwnerReferences = controlledBy("AppWrapper", "train", aw.UID)
	queue := kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "blue-cluster-queue", CreationTimestamp: metav1.NewTime(past.Add(-time.Hour))}}
	queue.Spec.ResourceGroups = []kueue.ResourceGroup{{
		CoveredResources: []corev1.ResourceName{"nvidia.com/gpu", "cpu"},
		Flavors: []kueue.FlavorQuotas{{Name: "h100", Resources: []kueue.ResourceQuota{
			{Name: "nvidia.com/gpu", NominalQuota: resource.MustParse("2")}, {Name: "cpu", NominalQuota: resource.MustParse("9")},
		}}},
	}}
	flavor := kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "h100"}, Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"gpu": "h100"}}}
	return Moment{
		Revision: "7", Time: noon, Namespaces: []string{"blue"}, Unread: map[string]string{},
		Pods: []corev1.Pod{given.Pod("a")}, Workloads: []kueue.Workload{w}, AppWrappers: []workload.AppWrapper{*aw},
		Owners: []metav1.PartialObjectMetadata{job},
		Queues: []kueue.ClusterQueue{queue}, Flavors: []kueue.ResourceFlavor{flavor},
		Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "gpu-0", Labels: map[string]string{"gpu": "h100"}}}},
	}
}

func owner(kind, name string, uid types.UID) metav1.PartialObjectMetadata {
	o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: name, UID: uid}}
	o.Kind = kind
	return o
}

func controlledBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	version := "v1"
	if kind == workload.AppWrapperKind {
		version = workload.GroupVersion.String()
	}
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: uid, Controller: new(true)}}
}

// below is a pod that an object controls, without labels.
func below(name string, uid types.UID, changes ...func(*corev1.Pod)) corev1.Pod {
	return given.Pod(name, append(changes, func(p *corev1.Pod) {
		p.Labels, p.OwnerReferences = nil, controlledBy("Job", "above", uid)
	})...)
}

func bare(p *corev1.Pod) { p.Labels, p.OwnerReferences = nil, nil }

// endedSince is a pod whose time was up that long ago.
func endedSince(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon.Add(-ago)} }
}

// cases are an honest cluster with one change each. The key is a sentence; what is found is in
// testdata/findings.txt.
var cases = []struct {
	name   string
	change func(*Moment)
}{
	{"an honest cluster", func(*Moment) {}},

	{"two GPUs are admitted in a queue of one", func(m *Moment) { *quotaAt(m, 0) = resource.MustParse("0") }},
	{"a quota was lowered while its work runs", func(m *Moment) {
		*quotaAt(m, 0) = resource.MustParse("0")
		lowered := metav1.NewTime(noon.Add(-time.Minute))
		m.Queues[0].ManagedFields = []metav1.ManagedFieldsEntry{{Time: &lowered}}
	}},
	{"Kueue has written the status of a queue that is too small", func(m *Moment) {
		*quotaAt(m, 0) = resource.MustParse("0")
		m.Queues[0].ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: noon}, Subresource: "status"}}
	}},
	{"a Workload that has given half of its pods back fits", func(m *Moment) {
		w := &m.Workloads[0]
		w.Status.Admission.PodSetAssignments[0].ResourceUsage["nvidia.com/gpu"] = resource.MustParse("4")
		w.Status.Admission.PodSetAssignments[0].Count = new(int32(4))
		w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "train-0", Count: 2}}
	}},
	{"a deactivated Workload uses no quota", func(m *Moment) {
		*quotaAt(m, 0) = resource.MustParse("0")
		given.Deactivated(&m.Workloads[0])
	}},

	{"a Job has more pods than its Workload", func(m *Moment) { m.Pods = append(m.Pods, given.Pod("b"), given.Pod("c")) }},
	{"a PyTorchJob names an admitted AppWrapper as its owner", func(m *Moment) {
		spoofed := owner("PyTorchJob", "spoofed", "spoofed")
		spoofed.OwnerReferences = controlledBy("AppWrapper", "train", "the-appwrapper")
		m.Owners = append(m.Owners, spoofed)
		m.Pods = append(m.Pods, below("spoofed-0", "spoofed"))
	}},
	{"a pod ends beside the one that replaces it", func(m *Moment) { m.Pods = append(m.Pods, given.Pod("b", endedSince(-time.Second))) }},
	{"a pod that should have ended long ago", func(m *Moment) {
		m.Pods = append(m.Pods, given.Pod("b", given.OfAttempt("gone"), endedSince(time.Hour)))
	}},
	{"a resource without quota in the queue is free", func(m *Moment) { request(m, "main", "example.com/nic") }},
	{"a resource with quota in the queue is not", func(m *Moment) { request(m, "main", "cpu") }},
	{"the CPU of a container that a webhook has added is free", func(m *Moment) { request(m, "proxy", "cpu") }},
	{"the GPU of a container that a webhook has added is not", func(m *Moment) { request(m, "proxy", "nvidia.com/gpu") }},
	{"hundreds of pods too many", func(m *Moment) {
		for i := range 100 {
			m.Pods = append(m.Pods, given.Pod(fmt.Sprintf("p%02d", i)))
		}
	}},

	{"a bare pod", func(m *Moment) { m.Pods = append(m.Pods, given.Pod("stray", bare)) }},
	{"a bare pod that ends", func(m *Moment) { m.Pods = append(m.Pods, given.Pod("stray", bare, endedSince(time.Minute))) }},
	{"a bare pod that should have ended long ago", func(m *Moment) { m.Pods = append(m.Pods, given.Pod("stray", bare, endedSince(3*time.Minute))) }},
	{"a bare pod that has no node, and one that has ended", func(m *Moment) {
		m.Pods = append(m.Pods, given.Pod("waits", bare, given.Unbound), given.Pod("over", bare, given.Ended))
	}},
	{"a Job whose Workload waits", func(m *Moment) { given.Evicted(&m.Workloads[0]) }},
	{"a Job whose Workload has released its quota", func(m *Moment) { given.Finished(&m.Workloads[0]) }},
	{"a Job without a Workload", func(m *Moment) {
		m.Owners = append(m.Owners, owner("Job", "above", "above"))
		m.Pods = append(m.Pods, below("above-0", "above"), below("above-1", "above"))
	}},
	{"a Job that is excepted", func(m *Moment) {
		m.Owners = append(m.Owners, owner("DaemonSet", "exporter", "above"))
		m.Pods = append(m.Pods, below("exporter-0", "above"))
	}},
	{"a pod whose controller is gone", func(m *Moment) { m.Pods = append(m.Pods, below("left", "gone")) }},
	{"a pod whose controller cannot be read", func(m *Moment) {
		m.Pods = append(m.Pods, below("left", "gone"))
		m.Unread["Job"] = "you may not list jobs.batch"
	}},
	{"a pod of an AppWrapper that is gone", func(m *Moment) {
		m.Pods = append(m.Pods, given.Pod("left", func(p *corev1.Pod) { p.Labels[workload.AppWrapperLabel], p.OwnerReferences = "gone", nil }))
	}},
	{"controllers in a circle", func(m *Moment) {
		a, b := owner("Job", "a", "a"), owner("Job", "b", "b")
		a.OwnerReferences, b.OwnerReferences = controlledBy("Job", "b", "b"), controlledBy("Job", "a", "a")
		m.Owners = append(m.Owners, a, b)
		m.Pods = append(m.Pods, below("circular", "a"))
	}},
	{"the pods of a group have a Workload together", func(m *Moment) {
		m.Pods[0].OwnerReferences, m.Pods[0].Labels = nil, map[string]string{quota.PodSetLabel: "train-0"}
		m.Workloads[0].OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "a", UID: "uid-of-a"}, {Kind: "Pod", Name: "z", UID: "uid-of-z"}}
	}},
	{"a pod below another pod, as LeaderWorkerSets have them", func(m *Moment) {
		m.Pods = append(m.Pods, given.Pod("leader", given.Requesting("nvidia.com/gpu", "0"), func(p *corev1.Pod) { p.OwnerReferences = controlledBy("AppWrapper", "train", "the-appwrapper") }))
		m.Pods[0].OwnerReferences = controlledBy("Pod", "leader", "uid-of-leader")
		delete(m.Pods[0].Labels, workload.AppWrapperLabel)
	}},
	{"the submitter that KubeRay adds", func(m *Moment) { submitter(m, "cpu", "500m") }},
	{"a submitter with a GPU", func(m *Moment) { submitter(m, "nvidia.com/gpu", "1") }},
	{"a submitter that is larger than KubeRay's", func(m *Moment) { submitter(m, "cpu", "2") }},

	{"a Workload that belongs to nothing", func(m *Moment) { m.Pods, m.Workloads[0].OwnerReferences = nil, nil }},
	{"a Workload of nothing that is being deleted", func(m *Moment) {
		m.Pods, m.Workloads[0].OwnerReferences, m.Workloads[0].Spec.PodSets[0].Count = nil, nil, 0
		m.Workloads[0].DeletionTimestamp = &metav1.Time{Time: noon.Add(-time.Minute)}
	}},
	{"a Workload that the garbage collector has not found yet", func(m *Moment) { m.AppWrappers = nil }},
	{"a Workload that was deleted with its owner", func(m *Moment) {
		m.AppWrappers, m.Workloads[0].DeletionTimestamp = nil, &metav1.Time{Time: noon.Add(-time.Minute)}
	}},
	{"a Workload that was deleted with its owner, and stays", func(m *Moment) {
		m.AppWrappers, m.Workloads[0].DeletionTimestamp = nil, &past
	}},
	{"a Workload of another namespace whose owner was not read", func(m *Moment) {
		m.Workloads[0].Namespace, m.Pods, m.AppWrappers = "red", nil, nil
		m.Workloads[0].DeletionTimestamp = &past
	}},
	{"a Workload that was deleted long ago, and whose owner cannot be read", func(m *Moment) {
		m.Workloads[0].DeletionTimestamp = &past
		m.AppWrappers, m.Unread["AppWrapper"] = nil, "you may not list appwrappers"
	}},
	{"an AppWrapper without its finalizer", func(m *Moment) { m.AppWrappers[0].Finalizers = nil }},
	{"an AppWrapper without its finalizer that has ended", func(m *Moment) {
		m.AppWrappers[0].Finalizers, m.AppWrappers[0].Status.Phase = nil, workload.AppWrapperSucceeded
	}},
	{"an AppWrapper of another controller without our finalizer", func(m *Moment) {
		m.AppWrappers[0].Finalizers, m.AppWrappers[0].Spec.ManagedBy = nil, new("example.com/other")
	}},

	{"quota without pods", func(m *Moment) { m.Pods = nil }},
	{"quota without pods, but the AppWrapper has just been reset", func(m *Moment) {
		m.Pods = nil
		m.AppWrappers[0].Status.Conditions = []metav1.Condition{{Type: "ResourcesDeployed", LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute))}}
	}},
	{"quota whose pods have ended", func(m *Moment) { m.Pods = []corev1.Pod{given.Pod("a", given.Ended)} }},
	{"quota whose pods run on another cluster", func(m *Moment) { m.Pods, m.Workloads[0].Status.ClusterName = nil, new("east") }},
	{"quota that waits for an admission check", func(m *Moment) { m.Pods, m.Workloads[0].Status.Conditions[1].Status = nil, metav1.ConditionFalse }},

	{"a pod of a PyTorchJob with quota of its own, and with the label of an AppWrapper", func(m *Moment) {
		posing := *m.Workloads[0].DeepCopy()
		posing.Name, posing.OwnerReferences = "posing", controlledBy("PyTorchJob", "posing", "posing")
		m.Workloads, *quotaAt(m, 0) = append(m.Workloads, posing), resource.MustParse("9")
		m.Owners = append(m.Owners, owner("PyTorchJob", "posing", "posing"))
		m.Pods = append(m.Pods, given.Pod("posing-0", func(p *corev1.Pod) { p.OwnerReferences = controlledBy("PyTorchJob", "posing", "posing") }))
	}},

	{"a pod on a node of another flavor", func(m *Moment) { m.Nodes[0].Labels["gpu"] = "a100" }},
	{"a pod on a node that is gone", func(m *Moment) { m.Nodes = nil }},
	{"a pod on a control plane", func(m *Moment) {
		m.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
	}},
	{"a pod on a node that a taint keeps for another team", func(m *Moment) {
		m.Tolerations = map[string][]string{"blue": {"nvidia.com/gpu"}}
		keepFor(m, "example.com/reserved-for", "medical")
	}},
	{"a pod on a node that a taint keeps for its team", func(m *Moment) {
		m.Tolerations = map[string][]string{"blue": {"example.com/reserved-for=blue"}}
		keepFor(m, "example.com/reserved-for", "blue")
	}},
	{"a pod on a node with a taint of its flavor", func(m *Moment) {
		m.Tolerations = map[string][]string{"blue": nil}
		keepFor(m, "nvidia.com/gpu", "")
		m.Flavors[0].Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
	}},
	{"a pod that was there before the taint", func(m *Moment) {
		m.Tolerations = map[string][]string{"blue": nil}
		keepFor(m, "example.com/reserved-for", "medical")
		m.Pods[0].Spec.Tolerations = nil
	}},
	{"a pod that keeps those of other teams away", func(m *Moment) {
		m.Pods[0].Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelOSStable, NamespaceSelector: &metav1.LabelSelector{}},
		}}}
	}},
	{"a team whose namespace lists nothing", func(m *Moment) { keepFor(m, "example.com/reserved-for", "medical") }},
	{"a template that names a node", func(m *Moment) { m.Workloads[0].Spec.PodSets[0].Template.Spec.NodeName = "gpu-0" }},

	{"a pod with the rights of its node", func(m *Moment) {
		m.Pods[0].Spec.HostNetwork, m.Pods[0].Spec.HostPID = true, true
		m.Pods[0].Spec.Containers[0].Name = "main"
		m.Pods[0].Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	}},
	{"a pod with folders of its node, one of which its team is given", func(m *Moment) {
		for _, path := range []string{"/", "/mnt/nvme"} {
			m.Pods[0].Spec.Volumes = append(m.Pods[0].Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}})
		}
		m.HostPaths = map[string][]string{"blue": {"/mnt/nvme"}}
	}},
	{"a pod that is more important than the system", func(m *Moment) { m.Pods[0].Spec.PriorityClassName = "system-node-critical" }},
	{"work that is more important than the system, whose pods are not", func(m *Moment) {
		m.Workloads[0].Spec.PriorityClassRef = kueue.NewPodPriorityClassRef("system-node-critical")
	}},
	{"work that was so important, and has ended", func(m *Moment) {
		m.Pods, m.Workloads[0].Spec.PriorityClassRef = nil, kueue.NewPodPriorityClassRef("system-node-critical")
		given.Finished(&m.Workloads[0])
	}},
	{"work of a class of Kueue's", func(m *Moment) {
		m.Workloads[0].Spec.PriorityClassRef = kueue.NewWorkloadPriorityClassRef("system-tests")
	}},
	{"Services that are open, and one that is not", func(m *Moment) {
		for i, spec := range []corev1.ServiceSpec{
			{Type: corev1.ServiceTypeNodePort}, {Type: corev1.ServiceTypeLoadBalancer}, {ExternalIPs: []string{"192.0.2.1"}}, {Type: corev1.ServiceTypeClusterIP},
		} {
			m.Services = append(m.Services, corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: fmt.Sprintf("s%d", i)}, Spec: spec})
		}
	}},
	{"an Ingress that KubeRay has made, and one of an administrator", func(m *Moment) {
		opened := networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "ray", OwnerReferences: controlledBy("RayCluster", "ray", "ray")}}
		m.Ingresses = []networkingv1.Ingress{opened, {ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "site"}}}
	}},
}

// keepFor taints the node of a pod that tolerates it.
func keepFor(m *Moment, key, value string) {
	m.Nodes[0].Spec.Taints = []corev1.Taint{{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}}
	m.Pods[0].Spec.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
}

func quotaAt(m *Moment, i int) *resource.Quantity {
	return &m.Queues[0].Spec.ResourceGroups[0].Flavors[0].Resources[i].NominalQuota
}

// request adds a container to the pod, which requests one of a resource. The template has main.
func request(m *Moment, container string, name corev1.ResourceName) {
	m.Workloads[0].Spec.PodSets[0].Template.Spec.Containers = []corev1.Container{{Name: "main"}}
	m.Pods[0].Spec.Containers[0].Name = "main"
	m.Pods[0].Spec.Containers = append(m.Pods[0].Spec.Containers, corev1.Container{
		Name: container, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse("1")}},
	})
}

// submitter adds the pod of a Job that belongs to a wrapped RayJob.
func submitter(m *Moment, name corev1.ResourceName, amount string) {
	ray, job := owner("RayJob", "ray", "ray"), owner("Job", "ray", "submit")
	ray.OwnerReferences, job.OwnerReferences = controlledBy("AppWrapper", "train", "the-appwrapper"), controlledBy("RayJob", "ray", "ray")
	m.Owners = append(m.Owners, ray, job)
	m.Pods = append(m.Pods, below("submitter", "submit", given.Requesting(name, amount)))
}

func TestFindings(t *testing.T) {
	var got strings.Builder
	broken := map[string]bool{}
	for _, c := range cases {
		m := honest()
		c.change(&m)
		fmt.Fprintf(&got, "%s\n", c.name)
		found := m.Findings(Tolerance{Grace: 2 * time.Minute, Except: []string{"blue/DaemonSet/*"}})
		for _, f := range found {
			broken[f.Rule] = true
			fmt.Fprintf(&got, "    %s, note %t: %s: %s\n", f.Rule, f.Note, f.Object, f.Evidence)
		}
		if len(found) == 0 {
			fmt.Fprintln(&got, "    -")
		}
	}
	golden.Compare(t, filepath.Join("testdata", "findings.txt"), []byte(got.String()))
	for _, r := range rules {
		if !broken[r.name] {
			t.Errorf("no case breaks the rule %s", r.name)
		}
	}
}

func TestSightings(t *testing.T) {
	finding := func(object, evidence string) Finding {
		return Finding{Rule: "no-quota", Object: object, Evidence: evidence}
	}
	var s Sightings
	for i, look := range []struct{ now, appeared, gone []Finding }{
		{now: []Finding{finding("a", "1 pod"), finding("b", "")}},
		{now: []Finding{finding("a", "2 pods")}, appeared: []Finding{finding("a", "2 pods")}},
		{now: []Finding{finding("a", "3 pods"), finding("b", "")}},
		{now: []Finding{finding("b", "")}, appeared: []Finding{finding("b", "")}, gone: []Finding{finding("a", "2 pods")}},
		{gone: []Finding{finding("b", "")}},
		{},
	} {
		appeared, gone := s.Next(look.now)
		if diff := cmp.Diff(look.appeared, appeared, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("look %d, appeared: %s", i, diff)
		}
		if diff := cmp.Diff(look.gone, gone, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("look %d, gone: %s", i, diff)
		}
	}
}

func TestTheDocumentationHasEveryRule(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "audit.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| rule | what is found |\n|---|---|\n")
	var documented []string
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| `") {
			break
		}
		documented = append(documented, strings.Split(line, "`")[1])
	}
	var names []string
	for _, r := range rules {
		names = append(names, r.name)
	}
	if diff := cmp.Diff(names, documented); diff != "" {
		t.Error(diff)
	}
}
