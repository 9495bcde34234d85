// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/test/given"
)

// listedRules are of every source but labels.
var listedRules = nodehealth.Listed{
	Conditions: []nodehealth.ConditionRule{{Type: "GpuUnhealthy", Status: corev1.ConditionTrue, Reaction: gpuPodsLeave}},
	Taints: []nodehealth.TaintRule{{Key: "example.com/broken",
		Reaction: nodehealth.Reaction{Resources: []corev1.ResourceName{nodehealth.AllPods}, Effect: corev1.TaintEffectNoExecute}}},
	DevicesMissing: []nodehealth.Reaction{gpuPodsLeave},
}

var gpuPodsLeave = nodehealth.Reaction{Resources: []corev1.ResourceName{"nvidia.com/gpu"}, Effect: corev1.TaintEffectNoExecute}

// rulesWithAllSources are those of a configuration that lists rules.
func rulesWithAllSources() nodehealth.Rules {
	c := config.Default().AppWrapper
	c.NodeHealth.Listed = listedRules
	return c.NodeRules()
}

// livingNode is a node with GPUs that are all in order, at some heartbeat.
func livingNode(name string, heartbeat int64) *corev1.Node {
	node := gpuNode(name, "OK")
	node.ResourceVersion = fmt.Sprint(heartbeat)
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Unix(heartbeat, 0)},
		{Type: "GpuUnhealthy", Status: corev1.ConditionFalse, LastHeartbeatTime: metav1.Unix(heartbeat, 0), Message: fmt.Sprint(heartbeat)},
	}
	node.Status.Capacity = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), "cpu": resource.MustParse("96")}
	node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	return node
}

// nodeTroubles are what may become of a node, by the cause that is named.
var nodeTroubles = map[string]func(*corev1.Node){
	"NodeLabel autopilot.ibm.com/gpuhealth=EVICT": func(n *corev1.Node) { n.Labels["autopilot.ibm.com/gpuhealth"] = "EVICT" },
	"NodeCondition GpuUnhealthy=True":             func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionTrue },
	"NodeTaint example.com/broken:NoSchedule": func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "example.com/broken", Effect: corev1.TaintEffectNoSchedule}}
	},
	"DevicesMissing nvidia.com/gpu": func(n *corev1.Node) { n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("7") },
}

func TestAWorkloadLeavesANodeForEachCause(t *testing.T) {
	for cause, trouble := range nodeTroubles {
		t.Run(cause, func(t *testing.T) {
			w, node := onOneNode(t)
			trouble(node)
			w.becomes(node)
			w.reconcile()
			status := w.get().Status
			if status.Phase != v1beta2.AppWrapperResetting || status.Migrations != 1 {
				t.Fatalf("got %s after %d migrations", status.Phase, status.Migrations)
			}
			if message := condition(status, v1beta2.Unhealthy).Message; !strings.HasSuffix(message, ": n ("+cause+")") {
				t.Errorf("the condition says %q", message)
			}
			source, _, _ := strings.Cut(cause, " ")
			expectSample(t, w, `appwrapper_migrations_total{cause="`+source+`"} 1`)
		})
	}
}

// The work on a node that falls silent waits for it until the grace is over, and no longer.
func TestAWorkloadLeavesANodeThatIsNotReady(t *testing.T) {
	w, node := onOneNode(t)
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: w.now}}}
	w.becomes(node)
	if again := w.reconcile(); again.RequeueAfter != time.Minute {
		t.Fatalf("it looks again after %s", again.RequeueAfter)
	}
	w.expectPhase(v1beta2.AppWrapperRunning)
	w.now = w.now.Add(time.Minute)
	w.reconcile()
	if got := condition(w.get().Status, v1beta2.Unhealthy).Message; !strings.HasSuffix(got, ": n (NodeNotReady node.kubernetes.io/unreachable)") {
		t.Errorf("the condition says %q", got)
	}
	expectSample(t, w, `appwrapper_migrations_total{cause="NodeNotReady"} 1`)
}

// A pod that its node rejects costs no retry, whatever its component says of it.
func TestARejectedPodIsTheNodesFault(t *testing.T) {
	for sentence, tc := range map[string]struct {
		reason    string
		monitored bool
		want      int32
	}{
		"a node that rejects":   {"UnexpectedAdmissionError", true, 1},
		"a pod that fails":      {"", true, 0},
		"a monitor that is off": {"UnexpectedAdmissionError", false, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			aw := given.AppWrapper("a").Unsuspended().WithFinalizer().With(given.Job("train", 1)).Build()
			w := newWorld(t, aw, gpuNode("n", "OK"))
			c := config.Default().AppWrapper
			c.Autopilot.MonitorNodes = tc.monitored
			w.reconciler.rules = c.NodeRules()
			w.settle()
			p := pod("train-0", corev1.PodFailed)
			p.Spec.NodeName, p.Status.Reason = "n", tc.reason
			w.add(slimBy(w.reconciler.rules, p))
			w.setJobCondition("train", "Failed")
			w.settle()
			status := w.get().Status
			if status.Migrations != tc.want || status.Retries != 1-tc.want {
				t.Fatalf("got %d migrations and %d retries", status.Migrations, status.Retries)
			}
			if message := condition(status, v1beta2.Unhealthy).Message; tc.want > 0 && !strings.Contains(message, ": n (PodRejected UnexpectedAdmissionError); 1 of 1 components failed") {
				t.Errorf("the condition says %q", message)
			}
			if tc.want > 0 {
				expectSample(t, w, `appwrapper_migrations_total{cause="PodRejected"} 1`)
			}
		})
	}
}

// The next attempt keeps away from the node, by a name in the status that outlives this controller.
func TestTheNextAttemptAvoidsTheNodeThatRejectedAPod(t *testing.T) {
	aw := given.AppWrapper("a").Unsuspended().WithFinalizer().With(given.Job("train", 1)).Build()
	w := newWorld(t, aw)
	w.reconciler.rules = theRules
	w.settle()
	p := pod("train-0", corev1.PodFailed)
	p.Spec.NodeName, p.Status.Reason = "n", "UnexpectedAdmissionError"
	w.add(p)
	w.setJobCondition("train", "Failed")
	w.reconcile()
	if err := w.api.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.now = w.now.Add(2 * time.Minute)
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(jobKind)
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: given.Namespace, Name: "train"}, job); err != nil {
		t.Fatal(err)
	}
	got, _, _ := unstructured.NestedSlice(job.Object, "spec", "template", "spec", "affinity", "nodeAffinity",
		"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	not := map[string]any{"key": "metadata.name", "operator": "NotIn", "values": []any{"n"}}
	if diff := cmp.Diff([]any{map[string]any{"matchFields": []any{not}}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Whatever is found to be wrong with a node explains what failed there lately, and nothing else.
func TestANodeIsToBlameForWhatFailedOnItLately(t *testing.T) {
	broken := func(after time.Duration) func(*world, *corev1.Node) {
		return func(w *world, n *corev1.Node) {
			nodeTroubles["NodeCondition GpuUnhealthy=True"](n)
			n.Status.Conditions[1].LastTransitionTime = metav1.Time{Time: w.now.Add(after)}
		}
	}
	missing := func(w *world, n *corev1.Node) { nodeTroubles["DevicesMissing nvidia.com/gpu"](n) }
	for sentence, tc := range map[string]struct {
		becomes func(*world, *corev1.Node)
		passes  time.Duration
		want    string
	}{
		"a device that the failed pods needed":           {missing, 0, "DevicesMissing nvidia.com/gpu"},
		"not a device that is missing long afterwards":   {missing, time.Hour, ""},
		"a condition that came before":                   {broken(-time.Hour), 0, "NodeCondition GpuUnhealthy=True"},
		"and one that was noticed only much later":       {broken(time.Minute), time.Hour, "NodeCondition GpuUnhealthy=True"},
		"not a condition that came long afterwards":      {broken(time.Hour), 2 * time.Hour, ""},
		"a label that is there now":                      {func(_ *world, n *corev1.Node) { nodeTroubles["NodeLabel autopilot.ibm.com/gpuhealth=EVICT"](n) }, 0, "NodeLabel autopilot.ibm.com/gpuhealth=EVICT"},
		"not a label that may have come long afterwards": {func(_ *world, n *corev1.Node) { nodeTroubles["NodeLabel autopilot.ibm.com/gpuhealth=EVICT"](n) }, time.Hour, ""},
		"that it was deleted":                            {nil, 0, "NodeGone deleted"},
		"not that it was deleted long afterwards":        {nil, time.Hour, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, node := onOneNode(t)
			w.fail("train-0", w.now)
			w.fail("train-1", w.now.Add(time.Second))
			if tc.becomes != nil {
				tc.becomes(w, node)
				w.becomes(node)
			} else if err := w.api.Delete(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			w.now = w.now.Add(tc.passes)
			w.setJobCondition("train", "Failed")
			w.reconcile()
			status := w.get().Status
			message := condition(status, v1beta2.Unhealthy).Message
			if named := strings.Contains(message, ": n ("+tc.want+");"); named != (tc.want != "") || status.Migrations+status.Retries != 1 || named != (status.Migrations == 1) {
				t.Errorf("after %d migrations and %d retries it says %q", status.Migrations, status.Retries, message)
			}
		})
	}
}

// fail ends a pod, as its cache sees it.
func (w *world) fail(name string, when time.Time) {
	w.Helper()
	p := &corev1.Pod{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: given.Namespace, Name: name}, p); err != nil {
		w.Fatal(err)
	}
	p.Status.Phase, p.Status.StartTime = corev1.PodFailed, &metav1.Time{Time: when.Add(-time.Hour)}
	ended := &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Time{Time: when}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: ended}}}
	p.Status = slimBy(w.reconciler.rules, p).(*corev1.Pod).Status
	if err := w.api.Status().Update(w.Context(), p); err != nil {
		w.Fatal(err)
	}
}

// A pod that was told for how long to stay on a silent node stays that long.
func TestAPodMayWaitLongerForItsNode(t *testing.T) {
	w, node := onOneNode(t)
	seconds := int64(600)
	for _, name := range []string{"train-0", "train-1"} {
		p := &corev1.Pod{}
		if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: given.Namespace, Name: name}, p); err != nil {
			t.Fatal(err)
		}
		p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, TolerationSeconds: &seconds}}
		if err := w.api.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: w.now}}}
	w.becomes(node)
	if again := w.reconcile(); again.RequeueAfter != 10*time.Minute {
		t.Fatalf("it looks again after %s", again.RequeueAfter)
	}
	w.expectPhase(v1beta2.AppWrapperRunning)
	node.Spec.Taints[0].TimeAdded = nil // so Kubernetes evicts the pods at a time that nobody knows
	w.becomes(node)
	w.now = w.now.Add(time.Hour)
	w.reconcile()
	w.expectPhase(v1beta2.AppWrapperRunning)
}

// onOneNode is a workload that runs with two pods of 4 GPUs on a node that has 8.
func onOneNode(t *testing.T) (*world, *corev1.Node) {
	t.Helper()
	aw, node := given.AppWrapper("a").Unsuspended().WithFinalizer().With(given.Job("train", 2)).Build(), livingNode("n", 1)
	node.ResourceVersion = ""
	w := newWorld(t, aw, node)
	w.reconciler.rules = rulesWithAllSources()
	w.settle()
	for _, name := range []string{"train-0", "train-1"} {
		p := gpuPod(name, "n", corev1.PodRunning)
		p.UID = types.UID(name)
		p.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"] = resource.MustParse("4")
		w.add(p)
	}
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
	return w, node
}

// becomes saves a node with its status.
func (w *world) becomes(node *corev1.Node) {
	w.Helper()
	status := node.Status
	err := w.api.Update(w.Context(), node)
	if err == nil {
		node.Status = status
		err = w.api.Status().Update(w.Context(), node)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// Nobody knows whose device is missing, so work stays unless its own pods need it.
func TestWorkThatMayHaveHealthyDevicesStays(t *testing.T) {
	for sentence, change := range map[string]func(w *world, node *corev1.Node){
		"the device plugin is away": func(_ *world, n *corev1.Node) { n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("0") },
		"enough are left": func(_ *world, n *corev1.Node) {
			n.Status.Capacity["nvidia.com/gpu"], n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("9"), resource.MustParse("8")
		},
		"the others are on another node": func(w *world, n *corev1.Node) {
			nodeTroubles["DevicesMissing nvidia.com/gpu"](n)
			elsewhere := &corev1.Pod{}
			if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: given.Namespace, Name: "train-1"}, elsewhere); err != nil {
				w.Fatal(err)
			}
			elsewhere.Spec.NodeName = "other"
			if err := w.api.Update(w.Context(), elsewhere); err != nil {
				w.Fatal(err)
			}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, node := onOneNode(t)
			change(w, node)
			w.becomes(node)
			w.settle()
			w.expectPhase(v1beta2.AppWrapperRunning)
		})
	}
}

// What has ended or is being deleted needs no device.
func TestDevicesInUse(t *testing.T) {
	o := &observation{}
	for i, change := range []func(*corev1.Pod){
		func(*corev1.Pod) {}, func(p *corev1.Pod) { p.Spec.NodeName = "m" }, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending },
		func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
	} {
		p := gpuPod(fmt.Sprint(i), "n", corev1.PodRunning)
		change(p)
		o.pods = append(o.pods, *p)
		o.snapshot.Pods = append(o.snapshot.Pods, o.podOf(p))
	}
	const gpu = "nvidia.com/gpu"
	if diff := cmp.Diff(map[deviceOfNode]int64{{"n", gpu}: 2, {"m", gpu}: 1}, o.devicesInUse(), cmp.AllowUnexported(deviceOfNode{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What pods used one after another was not in use at the same time.
func TestDevicesInUseWhenAPodEnded(t *testing.T) {
	o := &observation{}
	for i, minutes := range [][2]int64{{0, 10}, {0, 20}, {11, 30}, {5, 0}} {
		p := gpuPod(fmt.Sprint(i), "n", corev1.PodRunning)
		p.Status.StartTime = &metav1.Time{Time: time.Unix(60*(100+minutes[0]), 0)}
		if minutes[1] > 0 {
			p.Status.Phase = corev1.PodFailed
			end := &corev1.ContainerStateTerminated{FinishedAt: metav1.Unix(60*(100+minutes[1]), 0)}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: end}}}
		}
		o.pods = append(o.pods, *p)
		o.snapshot.Pods = append(o.snapshot.Pods, o.podOf(p))
	}
	for i, want := range []int64{3, 3, 2} {
		if got := o.inUseAtTheEnd(i, "nvidia.com/gpu"); got != want {
			t.Errorf("when pod %d ended: got %d, want %d", i, got, want)
		}
	}
}

// A heartbeat wakes nobody, and leaves nothing else in the cache than before.
func TestAHeartbeatCostsNothing(t *testing.T) {
	rules := rulesWithAllSources()
	changed, slim := nodeChanged(rules), slimNode(rules)
	kept := func(node *corev1.Node) *corev1.Node {
		object, err := slim(node)
		if err != nil {
			t.Fatal(err)
		}
		return object.(*corev1.Node)
	}
	all := maps.Clone(nodeTroubles)
	all["healthy"] = func(*corev1.Node) {}
	for health, trouble := range all {
		one, next := livingNode("n", 1), livingNode("n", 2)
		trouble(one)
		trouble(next)
		if changed.Update(event.UpdateEvent{ObjectOld: kept(one), ObjectNew: kept(next)}) {
			t.Errorf("%s: it wakes", health)
		}
		before, after := kept(one), kept(next)
		after.ResourceVersion = before.ResourceVersion
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s: (-before +after)\n%s", health, diff)
		}
		if turned := changed.Update(event.UpdateEvent{ObjectOld: kept(livingNode("n", 1)), ObjectNew: kept(next)}); turned != (health != "healthy") {
			t.Errorf("that it is %s now wakes: %t", health, turned)
		}
	}
}

// The cache keeps the node of every pod if any pod may have to leave, and of the tolerations
// those that let a pod stay.
func TestASlimPodStillTellsWhatMakesItLeave(t *testing.T) {
	whole := pod("p", corev1.PodRunning)
	whole.Spec.NodeName = "n"
	whole.Spec.Tolerations = []corev1.Toleration{{Key: "example.com/broken"}, {Key: "nvidia.com/gpu"}}
	for rules, want := range map[*nodehealth.Rules]corev1.PodSpec{
		ptr.To(rulesWithAllSources()): {NodeName: "n", Tolerations: whole.Spec.Tolerations[:1]},
		ptr.To(gpuRules):              {},
	} {
		slim, err := boundPods(newInterner(), *rules)(whole.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, slim.(*corev1.Pod).Spec); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
