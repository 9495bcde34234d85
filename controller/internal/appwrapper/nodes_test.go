// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/test/given"
)

// gpuNode is a node that Autopilot has labelled with this health.
func gpuNode(name, health string) *corev1.Node {
	node := &corev1.Node{}
	node.Name, node.Labels = name, map[string]string{"autopilot.ibm.com/gpuhealth": health, "zone": "a"}
	return node
}

// one GPU, for example.
var one = resource.MustParse("1")

// gpuPod requests GPUs in an ordinary container. It is bound to a node unless that is empty.
func gpuPod(name, node string, phase corev1.PodPhase) *corev1.Pod {
	p := pod(name, phase)
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": one}}}}
	return p
}

func TestPodsHaveToLeaveNodesWhereWhatTheyUseIsUnhealthy(t *testing.T) {
	inInit := gpuPod("p", "bad", corev1.PodPending)
	inInit.Spec.InitContainers, inInit.Spec.Containers = inInit.Spec.Containers, nil
	inInit.Spec.InitContainers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{"nvidia.com/gpu": one}}
	ofNothing := gpuPod("p", "bad", corev1.PodRunning)
	ofNothing.Spec.Containers[0].Resources.Limits = nil
	for sentence, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"on a node that is marked it has to leave":       {gpuPod("p", "bad", corev1.PodRunning), "bad"},
		"one that asks in an init container has to, too": {inInit, "bad"},
		"on another node it may stay":                    {gpuPod("p", "good", corev1.PodRunning), ""},
		"on a node that is gone it may stay":             {gpuPod("p", "lost", corev1.PodRunning), ""},
		"one that is nowhere yet has nothing to leave":   {gpuPod("p", "", corev1.PodPending), ""},
		"one that uses nothing of the kind may stay":     {ofNothing, ""},
	} {
		for from, object := range map[string]*corev1.Pod{"the API server": tc.pod, "a cache": slim(tc.pod).(*corev1.Pod)} {
			t.Run(sentence+", from "+from, func(t *testing.T) {
				w := newWorld(t, gpuNode("bad", "EVICT"), gpuNode("good", "OK"))
				w.reconciler.rules = theRules
				o := &observation{pods: []corev1.Pod{*object}}
				o.snapshot.Pods = append(o.snapshot.Pods, o.podOf(object))
				if err := w.reconciler.markMigrations(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				if got := o.snapshot.Pods[0].MigrateFrom; got != tc.want {
					t.Errorf("has to leave %q, want %q", got, tc.want)
				}
			})
		}
	}
}

func TestNobodyLooksAtNodesUnlessThatIsWanted(t *testing.T) {
	for sentence, change := range map[string]func(*config.AppWrapper){
		"the monitor is off": func(c *config.AppWrapper) { c.Autopilot.MonitorNodes = false },
		"no taint is about evicting, and who is not ready may keep its pods": func(c *config.AppWrapper) {
			c.Autopilot.ResourceTaints["nvidia.com/gpu"] = c.Autopilot.ResourceTaints["nvidia.com/gpu"][:2]
			c.NodeHealth.NotReady.Leave = false
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := config.Default().AppWrapper
			change(&c)
			if got := c.NodeRules().Resources(); len(got) > 0 {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAWorkloadMigratesOffANode(t *testing.T) {
	aw := given.AppWrapper("a").Unsuspended().WithFinalizer().With(given.Job("train", 1)).Build()
	w := newWorld(t, aw, gpuNode("n", "OK"))
	w.reconciler.rules = theRules
	w.settle()
	w.add(gpuPod("train-0", "n", corev1.PodRunning))
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
	bad := gpuNode("n", "EVICT")
	if err := w.api.Update(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	status := w.get().Status
	if status.Phase != v1beta2.AppWrapperResetting || status.Migrations != 1 || status.Retries != 0 {
		t.Errorf("got %s after %d migrations and %d retries", status.Phase, status.Migrations, status.Retries)
	}
}

func TestNodesWakeWhoeverMayHaveToLeaveThem(t *testing.T) {
	bad, good, alive := gpuNode("n", "EVICT"), gpuNode("n", "OK"), gpuNode("n", "EVICT")
	alive.ResourceVersion = "2"
	alive.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now()}}
	changed := nodeChanged(theRules)
	for sentence, tc := range map[string]struct{ got, want bool }{
		"one that appears in order is no news":     {changed.Create(event.CreateEvent{Object: good}), false},
		"one that appears broken is":               {changed.Create(event.CreateEvent{Object: bad}), true},
		"that it is alive is no news":              {changed.Update(event.UpdateEvent{ObjectOld: bad, ObjectNew: alive}), false},
		"that it breaks is":                        {changed.Update(event.UpdateEvent{ObjectOld: good, ObjectNew: bad}), true},
		"that it is mended is":                     {changed.Update(event.UpdateEvent{ObjectOld: bad, ObjectNew: good}), true},
		"that it goes is said by its pods, not it": {changed.Delete(event.DeleteEvent{Object: bad}), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("got %t", tc.got)
			}
		})
	}
}

func TestANodeWakesOnlyTheAppWrappersWithPodsOnIt(t *testing.T) {
	w := newWorld(t)
	others := pod("d-0", corev1.PodRunning) // requests nothing that can become unhealthy
	others.Labels[v1beta2.AppWrapperLabel] = "d"
	others.Spec.NodeName = "n"
	for name, node := range map[string]string{"a": "n", "b": "elsewhere", "c": ""} {
		p := gpuPod(name+"-0", node, corev1.PodRunning)
		p.Labels[v1beta2.AppWrapperLabel] = name
		w.add(slimBy(gpuRules, p))
	}
	w.add(slimBy(gpuRules, others))
	got := wakeAppWrappersOnNode(w.api)(t.Context(), gpuNode("n", "EVICT"))
	if len(got) != 1 || got[0].NamespacedName != (client.ObjectKey{Namespace: given.Namespace, Name: "a"}) {
		t.Errorf("woke %v", got)
	}
}

func TestAPodThatIsBoundIsNewsIfItMayHaveToLeave(t *testing.T) {
	for sentence, tc := range map[string]struct {
		make func(node string) *corev1.Pod
		want bool
	}{
		"a pod with a GPU":  {func(node string) *corev1.Pod { return gpuPod("p", node, corev1.PodPending) }, true},
		"a pod without any": {func(node string) *corev1.Pod { p := pod("p", corev1.PodPending); p.Spec.NodeName = node; return p }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			appears := podChanged().Create(event.CreateEvent{Object: slimBy(gpuRules, tc.make("n"))})
			is := podChanged().Update(event.UpdateEvent{ObjectOld: slimBy(gpuRules, tc.make("")), ObjectNew: slimBy(gpuRules, tc.make("n"))})
			if appears != tc.want || is != tc.want {
				t.Errorf("appears %t, is bound %t", appears, is)
			}
		})
	}
}

// A part of a GPU counts by its own name, and what is wrong with the GPU is wrong with it.
func TestPodsWithPartsOfDevicesKeepTheirNode(t *testing.T) {
	p := gpuPod("p", "n", corev1.PodRunning)
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/mig-1g.10gb": resource.MustParse("2")}
	kept, err := boundPods(newInterner(), nodehealth.Rules{Labels: theRules.Labels})(p)
	if err != nil {
		t.Fatal(err)
	}
	slim := kept.(*corev1.Pod)
	if diff := cmp.Diff(map[string]int64{"nvidia.com/mig-1g.10gb": 2}, devicesOfPod(slim)); diff != "" || slim.Spec.NodeName != "n" {
		t.Errorf("on %q (-want +got):\n%s", slim.Spec.NodeName, diff)
	}
}

func TestWhatSlimPodsUseIsKeptOnceForAll(t *testing.T) {
	transform := boundPods(newInterner(), theRules)
	var kept []*corev1.ResourceRequirements
	for _, name := range []string{"p", "q"} {
		p := gpuPod(name, "n", corev1.PodRunning)
		p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0])
		slim, err := transform(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := transform(slim)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(slim, again); diff != "" {
			t.Errorf("(-once +twice):\n%s", diff)
		}
		kept = append(kept, slim.(*corev1.Pod).Spec.Resources)
	}
	if kept[0] == nil || kept[0] != kept[1] {
		t.Errorf("two pods have %p and %p", kept[0], kept[1])
	}
}

// The whole controller has an informer for nodes, and an index of pods by node.
func TestOnlyWhoeverIsOnANodeLeavesIt(t *testing.T) {
	c := newCluster(t, 1)
	c.submit(0, 2)
	c.start()
	c.await("both run", func() bool { return c.count(v1beta2.AppWrapperRunning) == 2 })
	c.stop()
	elsewhere := c.api.All("pods")[0]
	if err := c.api.Patch("pods", keyOf(elsewhere.Name), `{"spec":{"nodeName":"gpu-18"}}`); err != nil {
		t.Fatal(err)
	}
	c.mark("gpu-17", "OK")
	looked := reconciles(c)
	c.start()
	c.await("a look at each", func() bool { return reconciles(c)-looked >= 2 })
	c.mark("gpu-17", "EVICT")
	c.await("one leaves", func() bool { return c.count(v1beta2.AppWrapperResetting) == 1 })
	for _, aw := range c.api.All("appwrappers") {
		on18 := aw.GetName() == elsewhere.GetLabels()[v1beta2.AppWrapperLabel]
		if (phaseOf(aw) == v1beta2.AppWrapperRunning) != on18 {
			t.Errorf("%s, which is on gpu-18 (%t), is %s", aw.GetName(), on18, phaseOf(aw))
		}
	}
}

func (c *cluster) mark(node, health string) {
	c.Helper()
	object := gpuNode(node, health)
	object.SetGroupVersionKind(nodeKind)
	text, err := json.Marshal(object)
	if err == nil {
		err = c.api.Put(text)
	}
	if err != nil {
		c.Fatal(err)
	}
}
