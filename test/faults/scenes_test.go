// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// bystanders are healthy jobs of one GPU each, four on a node. Every other one asks to be watched for hangs.
type bystanders struct {
	jobs []*job
	uids []types.UID
}

const howMany = 20

func newBystanders(t *testing.T) *bystanders {
	t.Helper()
	b := &bystanders{}
	for i := range howMany {
		j := &job{T: t, name: fmt.Sprintf("bystander-%d", i), pods: 1, gpus: "1", edit: func(spec *corev1.PodSpec) {
			spec.NodeSelector = map[string]string{corev1.LabelHostname: fmt.Sprintf("gpu-%d", i/4)}
		}}
		if i%2 == 0 {
			place := j.edit
			j.annotations, j.edit = hangsFor("10s"), func(spec *corev1.PodSpec) { place(spec); probed(spec) }
		}
		j.submit()
		b.jobs = append(b.jobs, j)
	}
	for _, j := range b.jobs {
		j.await("runs", 2*time.Minute, time.Time{}, running)
		b.uids = append(b.uids, j.itsPods()[0].UID)
	}
	return b
}

// areUntouched: they run in the same pods, and Kueue has given away what they use and nothing else.
func (b *bystanders) areUntouched(t *testing.T, after string) {
	t.Helper()
	for i, j := range b.jobs {
		pods := j.itsPods()
		if len(pods) != 1 || pods[0].UID != b.uids[i] || pods[0].Status.Phase != corev1.PodRunning {
			t.Errorf("after %q, %s has the pods %v", after, j.name, pods)
		}
		wasTouched := func(aw *workload.AppWrapper) bool {
			return aw.Status.Migrations+aw.Status.Retries > 0 || aw.Status.Phase == workload.AppWrapperResetting || len(lostTo(aw)) > 0
		}
		if l, touched := j.first(time.Time{}, wasTouched); touched {
			t.Errorf("after %q, %s is touched: %s", after, j.name, why(l.aw))
		}
	}
	// A Workload goes with the garbage collector, which may need half a minute to learn of kinds that were just installed.
	until(t, time.Minute, "the quota is exact after "+after, func(ctx context.Context) error {
		got, err := reserved(ctx)
		if err == nil && got != howMany {
			err = fmt.Errorf("%d GPUs are given away, not %d", got, howMany)
		}
		return err
	})
}

// unrelated: a node rejects pods of three AppWrappers. The node gets an event, and the fourth
// prefers other nodes.
func unrelated(t *testing.T) {
	const node = "gpu-28"
	for i := range 3 {
		failsOn(&job{T: t, name: fmt.Sprintf("unrelated-%d", i), pods: 1, gpus: gpusOfAPod, edit: prefer(node, 50)}, node, rejected, 0)
	}
	until(t, seconds, "the node has an event", func(ctx context.Context) error { return reported(ctx, node) })
	fourth := &job{T: t, name: "unrelated-4", pods: 1, gpus: "5", edit: prefer(node, 50)}
	t.Cleanup(fourth.end)
	begin := time.Now()
	fourth.submit()
	fourth.await("runs", time.Minute, begin, running)
	if on := fourth.itsNodes(); on[0] == node {
		t.Errorf("the fourth is on %s, too", node)
	}
}

// failsOn lets a job run on a node and then fail there, with this reason and exit code, and returns its reset.
func failsOn(j *job, node, reason string, code int32) (reset look) {
	j.Helper()
	j.Cleanup(j.end)
	begin := time.Now()
	j.submit()
	j.await("runs", time.Minute, begin, running)
	pods := j.itsPods()
	if pods[0].Spec.NodeName != node {
		j.Fatalf("%s is on %s", j.name, pods[0].Spec.NodeName)
	}
	begin = time.Now()
	fail(j.T, &pods[0], reason, code)
	return j.await("is reset", seconds, begin, in(workload.AppWrapperResetting))
}

const rejected = "UnexpectedAdmissionError"

// cordoned: a node rejects pods of three AppWrappers of two teams, and an administrator lets one node be
// cordoned for that. Then they repair and uncordon it, and it starts afresh.
func cordoned(t *testing.T) {
	const node = "gpu-26"
	t.Cleanup(func() { heal(t, node) })
	for i, team := range []string{"blue", "red", "blue"} {
		isUncordoned(t, node)
		failsOn(&job{T: t, name: fmt.Sprintf("refused-%d", i), team: team, pods: 1, gpus: gpusOfAPod, edit: prefer(node, 50)}, node, rejected, 0)
	}
	marked := func(annotation string, unschedulable bool) {
		until(t, seconds, "the node is marked as "+annotation, func(ctx context.Context) error {
			n, err := getNode(ctx, node)
			if err == nil && (n.Annotations[annotation] == "" || n.Spec.Unschedulable != unschedulable) {
				err = fmt.Errorf("unschedulable: %t, annotations: %v", n.Spec.Unschedulable, n.Annotations)
			}
			return err
		})
	}
	marked(workload.CordonedAnnotation, true)
	change(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	marked(workload.UncordonedAnnotation, false)
}

func isUncordoned(t *testing.T, node string) {
	t.Helper()
	if n, err := getNode(t.Context(), node); err != nil || n.Spec.Unschedulable {
		t.Fatalf("node %s is cordoned, or cannot be read: %v", node, err)
	}
}

// programsFail: programs of two teams fail on a node, and succeed elsewhere.
func programsFail(t *testing.T) {
	const node = "gpu-27"
	for i, team := range []string{"blue", "red", "blue"} {
		j := &job{T: t, name: fmt.Sprintf("exits-%d", i), team: team, pods: 1, gpus: gpusOfAPod, edit: prefer(node, 50)}
		reset := failsOn(j, node, "", 1)
		if err := reported(t.Context(), node); err == nil {
			t.Errorf("the node has an event although %s may fail everywhere", j.name)
		}
		j.await("runs again", time.Minute, reset.at, running)
		pods := j.itsPods()
		if pods[0].Spec.NodeName == node {
			t.Fatalf("%s is on %s again", j.name, node)
		}
		succeed(t, &pods[0])
		j.await("has succeeded", time.Minute, reset.at, in(workload.AppWrapperSucceeded))
	}
	until(t, seconds, "the node has an event", func(ctx context.Context) error { return reported(ctx, node) })
	if n, err := getNode(t.Context(), node); err != nil || n.Spec.Unschedulable {
		t.Errorf("node %s is cordoned, or cannot be read: %v", node, err)
	}
}

func succeed(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	ended := &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "registry.example/work:1", State: corev1.ContainerState{Terminated: ended}}}
	pod.Status.Phase, pod.ResourceVersion = corev1.PodSucceeded, ""
	if err := admin.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

func reported(ctx context.Context, node string) error {
	events := &eventsv1.EventList{}
	if err := admin.List(ctx, events, client.InNamespace("default")); err != nil {
		return err
	}
	for _, e := range events.Items {
		if e.Regarding.Kind == "Node" && e.Regarding.Name == node && e.Reason == "FailsUnrelatedWork" {
			return nil
		}
	}
	return fmt.Errorf("there are %d events, and none is it", len(events.Items))
}

// prefer makes a node the first choice.
func prefer(node string, weight int32) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		is := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{is}}},
		}}}
	}
}

// stop ends the controller.
func stop(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { scale(t, 1) })
	scale(t, 0)
	until(t, time.Minute, "the controller has ended", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		err := admin.List(ctx, pods, client.InNamespace(platform.Namespace))
		for _, p := range pods.Items {
			if strings.HasPrefix(p.Name, controller) {
				return fmt.Errorf("%s is there", p.Name)
			}
		}
		return err
	})
}

const controller = "appwrapper-controller-manager"

func scale(t *testing.T, replicas int) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = platform.Namespace, controller
	patch := fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas)
	if err := admin.Patch(context.Background(), deployment, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Error(err)
	}
}
