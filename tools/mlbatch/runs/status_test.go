// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

var (
	key   = client.ObjectKey{Namespace: "blue", Name: "a"}
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// accepted is a Run with an AppWrapper.
func accepted(name string, phase v1alpha1.RunPhase, message string) *v1alpha1.Run {
	r := runOf(name, phase, message)
	r.CreationTimestamp = metav1.NewTime(start)
	r.Status.Resolved = &v1alpha1.Resolved{Size: "sm", Workers: 2, PriorityClass: "default-priority", PerWorker: map[corev1.ResourceName]resource.Quantity{
		"cpu": resource.MustParse("1"), "memory": resource.MustParse("8Gi"),
	}}
	r.Status.AppWrapper = &v1alpha1.AppWrapperReference{Name: name, UID: types.UID("aw-" + name)}
	return r
}

// wrapper is a Run's AppWrapper, and its Workload.
func wrapper(run *v1alpha1.Run, phase v1beta2.AppWrapperPhase, waits string) []client.Object {
	uid := types.UID("aw-" + run.Name)
	aw := &v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: run.Name, UID: uid}, Status: v1beta2.AppWrapperStatus{Phase: phase}}
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: "w", Labels: map[string]string{"kueue.x-k8s.io/job-uid": string(uid)}, OwnerReferences: []metav1.OwnerReference{{UID: uid}}}}
	w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: "False", Message: waits}}
	return []client.Object{aw, w}
}

// pod is a pod of Run a with one container, which has a state.
func pod(name, role string, labels map[string]string, phase corev1.PodPhase, state corev1.ContainerState) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: name, Labels: map[string]string{v1alpha1.RunLabel: "a", v1alpha1.RoleLabel: role}}}
	for name, value := range labels {
		p.Labels[name] = value
	}
	p.Spec.NodeName = "node-1"
	p.Spec.Containers = []corev1.Container{{Name: "main"}, {Name: "sidecar"}}
	p.Status = corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: state}}}
	return p
}

func status(t *testing.T, c client.Client) string {
	t.Helper()
	report, err := runs.Status(t.Context(), c, key)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := runs.WriteStatus(&out, report); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTheStatusSaysWhyARunWaits(t *testing.T) {
	waiting := accepted("a", v1alpha1.RunQueued, "it waits for quota")
	waiting.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.Accepted, Status: "True", Reason: "Planned"},
		{Type: v1alpha1.QuotaReserved, Status: "False", Reason: "WaitsForQuota", Message: "it waits for quota"},
	}
	c := cluster(t, interceptor.Funcs{}, append(wrapper(waiting, v1beta2.AppWrapperSuspended, "couldn't assign flavors:\n insufficient quota for cpu"), waiting)...)
	want := `Run a in namespace blue is Queued
  it waits for quota
  QuotaReserved is False (WaitsForQuota)
Application  survey
Size         sm: 2 workers of 1 cpu, 8Gi memory
Queue        the default one
AppWrapper   a (Suspended)
Waits        couldn't assign flavors: insufficient quota for cpu
`
	if diff := cmp.Diff(want, status(t, c)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTheStatusSaysWhyARunFailed(t *testing.T) {
	code := int32(137)
	failed := accepted("a", v1alpha1.RunFailed, "1 pod failed")
	failed.Status.Resolved.Queue, failed.Status.Retries = "fast", 3
	failed.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.Accepted, Status: "False", Reason: "Old"},
		{Type: v1alpha1.Failed, Status: "True", Reason: "Unhealthy", Message: "the last try failed"},
	}
	failed.Status.LastFailure = &v1alpha1.LastFailure{Attempt: 4, Pod: "a-master-0", Container: "pytorch", ExitCode: &code, Reason: "OOMKilled", Message: "epoch 1\n\x1b[2Jepoch 2\n"}
	objects := []client.Object{
		failed,
		pod("a-worker-0", "worker", map[string]string{"training.kubeflow.org/replica-index": "0"}, corev1.PodRunning, corev1.ContainerState{}),
		pod("a-master-0", "master", map[string]string{"training.kubeflow.org/replica-index": "0"}, corev1.PodFailed, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}),
	}
	want := `Run a in namespace blue is Failed
  1 pod failed
  Failed is True (Unhealthy): the last try failed
Application  survey
Size         sm: 2 workers of 1 cpu, 8Gi memory
Queue        fast
AppWrapper   a (gone)
Retries      3

WORKER  ROLE    POD         NODE    STATE
0       master  a-master-0  node-1  Failed: OOMKilled, exit code 137
1       worker  a-worker-0  node-1  Running

The last failure was attempt 4: container pytorch of pod a-master-0: OOMKilled, exit code 137
  epoch 1
   [2Jepoch 2
`
	if diff := cmp.Diff(want, status(t, cluster(t, interceptor.Funcs{}, objects...))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestARunThatNobodyLookedAt(t *testing.T) {
	got := status(t, cluster(t, interceptor.Funcs{}, runOf("a", "", "")))
	if want := "Run a in namespace blue is new: no controller of Runs has looked at it; if it stays so, ask an administrator whether codeflare is enabled\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got %s", got)
	}
}

func TestThePodsSayWhyTheyDoNotRun(t *testing.T) {
	unschedulable := pod("p", "worker", nil, corev1.PodPending, corev1.ContainerState{})
	unschedulable.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: "False", Reason: "Unschedulable", Message: "0/3 nodes are available"}}
	evicted := pod("p", "worker", nil, corev1.PodFailed, corev1.ContainerState{})
	evicted.Status.Reason, evicted.Status.Message = "Evicted", "the node was low on memory"
	leaving := pod("p", "worker", nil, corev1.PodRunning, corev1.ContainerState{})
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: start}, []string{"f/f"}
	for want, p := range map[string]*corev1.Pod{
		"Pending: 0/3 nodes are available":         unschedulable,
		"Failed: the node was low on memory":       evicted,
		"Running, being deleted":                   leaving,
		"Pending: ContainerCreating":               pod("p", "worker", nil, corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}),
		"Pending: ImagePullBackOff: no such image": pod("p", "worker", nil, corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such\n image"}}),
		"Succeeded": pod("p", "worker", nil, corev1.PodSucceeded, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}),
		"Pending":   pod("p", "worker", nil, "", corev1.ContainerState{}),
	} {
		report, err := runs.Status(t.Context(), cluster(t, interceptor.Funcs{}, runOf("a", v1alpha1.RunRunning, ""), p), key)
		if err != nil || len(report.Pods) != 1 || report.Pods[0].State != want {
			t.Errorf("got %+v, %v, want %s", report.Pods, err, want)
		}
	}
}

// A viewer may read Runs, and not all that belongs to them.
func TestWhatCannotBeReadIsUnknown(t *testing.T) {
	waiting := accepted("a", v1alpha1.RunQueued, "")
	objects := append(wrapper(waiting, v1beta2.AppWrapperSuspended, "too little"), waiting)
	no := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no role"))
	}
	lists := cluster(t, interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
		return no(strings.ToLower(strings.TrimSuffix(fmt.Sprintf("%T", list), "List")))
	}}, objects...)
	got := status(t, lists)
	for _, want := range []string{"AppWrapper   a (Suspended)\n", "\nunknown: cannot list the Workloads, which say why a Run waits: ", "\nunknown: cannot list the pods of Run a: "} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	wrappers := cluster(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if _, is := o.(*v1beta2.AppWrapper); is {
			return no("appwrappers")
		}
		return c.Get(ctx, key, o, options...)
	}}, objects...)
	if got := status(t, wrappers); !strings.Contains(got, "AppWrapper   a (unknown)\n") || !strings.Contains(got, "\nunknown: cannot read AppWrapper a: appwrappers") {
		t.Errorf("got %s", got)
	}
}

func TestTheStatusAsJSON(t *testing.T) {
	waiting := accepted("a", v1alpha1.RunQueued, "")
	managed := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		err := c.Get(ctx, key, o, options...)
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}})
		return err
	}}
	c := cluster(t, managed, append(wrapper(waiting, v1beta2.AppWrapperSuspended, "too little"), waiting)...)
	report, err := runs.Status(t.Context(), c, key)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := printing.JSON(&text, report); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Run struct {
			Kind     string
			Metadata map[string]any
		}
		AppWrapper, Waits string
		Pods              []any
	}
	if err := json.Unmarshal([]byte(text.String()), &got); err != nil || got.Run.Kind != "Run" || got.AppWrapper != "Suspended" || got.Waits != "too little" || got.Pods == nil {
		t.Errorf("got %s, %v", &text, err)
	}
	if got.Run.Metadata["managedFields"] != nil {
		t.Error("it has managedFields")
	}
}

func TestTheListIsATable(t *testing.T) {
	plain := runOf("b", "", "")
	plain.CreationTimestamp = metav1.NewTime(start)
	red := accepted("c", v1alpha1.RunSucceeded, "")
	red.Namespace = "red"
	c := cluster(t, interceptor.Funcs{}, accepted("a", v1alpha1.RunRunning, ""), plain, red)
	for namespace, want := range map[string]string{
		"blue": "NAME  APPLICATION  STATUS   SIZE  WORKERS  AGE\n" +
			"a     survey       Running  sm    2        90m\n" +
			"b     survey       -        -     -        90m\n",
		"": "NAMESPACE  NAME  APPLICATION  STATUS     SIZE  WORKERS  AGE\n" +
			"blue       a     survey       Running    sm    2        90m\n" +
			"blue       b     survey       -          -     -        90m\n" +
			"red        c     survey       Succeeded  sm    2        90m\n",
	} {
		list, err := runs.List(t.Context(), c, namespace)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := runs.WriteList(&out, list, namespace == "", start.Add(90*time.Minute)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if list.Kind != "RunList" || list.Items[0].Kind != "Run" {
			t.Errorf("as JSON it is a %s of %s", list.Kind, list.Items[0].Kind)
		}
	}
}

func TestWhatCannotBeShownIsOneSentence(t *testing.T) {
	refused := cluster(t, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden("runs")
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return forbidden("runs")
		},
	})
	for name, row := range map[string]struct {
		c            client.WithWatch
		one, several string
	}{
		"a Run that is not there":       {cluster(t, interceptor.Funcs{}), "there is no Run a in namespace blue: see 'mlbatch run list --namespace blue'", ""},
		"without the right":             {refused, `cannot read Run a: runs.codeflare.dev "survey" is forbidden: no role`, "cannot list the Runs of namespace blue: "},
		"no definitions":                {noDefinitions(t), "the cluster does not know Runs: an administrator sets codeflare.enabled", "the cluster does not know Runs: "},
		"definitions that were deleted": {definitionsGone(t), "the cluster does not know Runs: ", "the cluster does not know Runs: "},
		"no cluster":                    {gone(t), "cannot read Run a: ", "cannot list the Runs of namespace blue: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runs.Status(t.Context(), row.c, key)
			wording.OneSentence(t, "", err, row.one)
			if row.several == "" {
				return
			}
			_, err = runs.List(t.Context(), row.c, "blue")
			wording.OneSentence(t, "", err, row.several)
		})
	}
}
